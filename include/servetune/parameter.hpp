// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace servetune {

/// How the numbers of a domain are spread. `log`: ratios count, not differences, where numbers are
/// drawn, stepped and compared. `log2`: only low, 2 low, 4 low, ...
enum class Scale { linear, log, log2 };

struct BoolDomain {};

/// low, low + step, ... up to high (included when a step lands on it); with Scale::log2: low, 2
/// low, 4 low, ...
struct IntegerDomain {
    std::int64_t low = 0;
    std::int64_t high = 0;
    std::int64_t step = 1;
    Scale scale = Scale::linear;
};

/// The closed interval [low, high]; Scale::log2 is read as Scale::log.
struct RealDomain {
    double low = 0;
    double high = 0;
    Scale scale = Scale::linear;
};

/// One of a list. `ordered`: the list goes from less to more, and neighbours in it are alike.
struct ChoiceDomain {
    std::vector<Value> values;
    bool ordered = false;
};

/// Any text but the empty one, such as a path: it can be fixed, but has no levels to search.
struct TextDomain {};

using Domain = std::variant<BoolDomain, IntegerDomain, RealDomain, ChoiceDomain, TextDomain>;

/// "The parent is active and has one of these values." A parameter is active when all its
/// conditions hold.
struct Condition {
    std::string parent;
    std::vector<Value> values;
};

/// One thing that can be set: a name, the values it can take, its default, and when it exists at
/// all.
///
/// Its *levels* are its discrete values, numbered from 0: first `Unset` when `offers_unset`, then
/// the domain's in ascending (or listed) order. A real parameter has no levels but `Unset`; it is
/// `continuous()`.
///
///     Parameter seqs = Parameter::integer("max_num_seqs", 16, 4096, Scale::log2).or_unset();
///     Parameter tokens = Parameter::integer("num_speculative_tokens", 1, 8).with_default(3)
///                            .when("speculative_method", {"ngram", "mtp"});
struct Parameter {
    std::string name;
    Domain domain;
    Value default_value;
    bool offers_unset = false;  ///< whether "pass no flag" is a level
    /// what the engine does by itself, where known: the place of `Unset` on the scale
    std::optional<Value> value_when_unset{};
    std::vector<Condition> active_when{};  ///< all must hold; empty: always active
    std::string
        concept_name{};  ///< the concept shared across engines ("max_concurrent_sequences"); empty: none
    std::string doc{};  ///< one sentence for people
    bool grows_memory =
        false;  ///< more of it never takes less of the device's memory, all else equal

    static Parameter boolean(std::string name, bool default_value = false);
    static Parameter integer(std::string name, std::int64_t low, std::int64_t high,
                             Scale scale = Scale::linear);
    static Parameter real(std::string name, double low, double high, Scale scale = Scale::linear);
    /// The first value is the default.
    static Parameter choice(std::string name, std::vector<Value> values, bool ordered = false);
    /// Always this value: in every configuration, never searched.
    static Parameter fixed(std::string name, Value value);

    // The same parameter but for one thing.
    /// Integers low, 2 low, 4 low, ...
    [[nodiscard]] Parameter log2() const;
    /// Numbers whose ratios count.
    [[nodiscard]] Parameter log() const;
    [[nodiscard]] Parameter with_default(Value value) const;
    /// Adds the level `Unset` and makes it the default.
    [[nodiscard]] Parameter or_unset(std::optional<Value> engine_default = std::nullopt) const;
    [[nodiscard]] Parameter growing_memory() const;
    [[nodiscard]] Parameter when(std::string parent, std::vector<Value> values) const;

    [[nodiscard]] bool continuous() const { return std::holds_alternative<RealDomain>(domain); }
    /// Whether neighbouring levels are alike (numbers, ordered choices).
    [[nodiscard]] bool ordered() const {
        const auto* choice = std::get_if<ChoiceDomain>(&domain);
        return choice != nullptr ? choice->ordered
                                 : std::holds_alternative<IntegerDomain>(domain) || continuous();
    }

    /// Whether it is an integer whose levels differ by ratios and are not spread so themselves.
    [[nodiscard]] bool by_ratio() const {
        const auto* range = std::get_if<IntegerDomain>(&domain);
        return range != nullptr && range->scale == Scale::log;
    }

    /// Number of levels, `Unset` included; of a continuous parameter 0 or 1.
    [[nodiscard]] std::size_t level_count() const {
        return (offers_unset ? 1U : 0U) + domain_levels();
    }
    /// Level `i` of [0, level_count()).
    [[nodiscard]] Value level(std::size_t i) const;
    /// Which level `value` is; nothing when it is none (always so for the reals of a continuous
    /// parameter).
    [[nodiscard]] std::optional<std::size_t> level_of(const Value& value) const;
    [[nodiscard]] bool contains(const Value& value) const;

    /// How much lies below level `i` of [0, level_count()], in levels: `i`. Only integers on a
    /// logarithmic scale weigh by their ratios, each up to the geometric means with its neighbours,
    /// and all together as many as they are.
    [[nodiscard]] double share_below(std::size_t i) const;
    /// The level in which a share of [0, level_count()) lies.
    [[nodiscard]] std::size_t level_at_share(double share) const;
    /// The level of an integer that is nearest to position `u` of [0, 1] on the domain's scale.
    [[nodiscard]] std::size_t level_at_position(double u) const;

    /// The real at position `u` of [0, 1] on the domain's scale. Continuous parameters only.
    [[nodiscard]] double at_position(double u) const;
    /// Where a number is on the domain's scale, in [0, 1] inside of it; not finite for one that a
    /// logarithmic scale has no place for. Reals and integers only.
    [[nodiscard]] double position_of(double value) const;

    /// `integer 16..4096 (log2)`, `one of none, fp8`, with `engine` where no flag is a level.
    [[nodiscard]] std::string domain_text() const;

private:
    [[nodiscard]] std::size_t domain_levels() const;
    [[nodiscard]] Parameter scaled(Scale scale) const;
};

Parameter flag(std::string name, bool default_value = false);
Parameter integer(std::string name, std::int64_t low, std::int64_t high);
Parameter real(std::string name, double low, double high);
/// The first value is the default.
Parameter choice(std::string name, std::vector<Value> values);

}  // namespace servetune
