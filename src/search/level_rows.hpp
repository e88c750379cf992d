// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/search_space.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace servetune {

/// Many configurations of one space: 4 bytes a parameter and 8 more a real each, where a
/// configuration with its names takes some 100 a parameter. Of twenty thousand configurations of
/// fifty parameters: 5 MB, not 110.
class LevelRows {
public:
    explicit LevelRows(const SearchSpace& space)
        : space_(space), by_name_(space.parameters().size()), ranks_(by_name_.size()) {
        std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
        std::sort(by_name_.begin(), by_name_.end(), [&](std::size_t a, std::size_t b) {
            return space_.parameters()[a].name < space_.parameters()[b].name;
        });
        for (std::size_t i = 0; i < by_name_.size(); ++i) {
            const Parameter& parameter = space_.parameters()[i];
            real_column_.push_back(reals_in_row_);
            if (parameter.continuous()) ++reals_in_row_;
            if (std::holds_alternative<ChoiceDomain>(parameter.domain))
                ranks_[i] = ranks_of(parameter);
        }
    }

    [[nodiscard]] std::size_t size() const { return size_; }

    /// False where it is no configuration of the space: nothing is added then.
    bool add(const Configuration& configuration) {
        for (std::size_t i = 0; i < by_name_.size(); ++i) {
            const Parameter& parameter = space_.parameters()[i];
            const Value* value = configuration.find(parameter.name);
            const double* real =
                value == nullptr || !parameter.continuous() ? nullptr : std::get_if<double>(value);
            const auto level =
                value == nullptr || real != nullptr ? std::nullopt : parameter.level_of(*value);
            if (value != nullptr && real == nullptr && !level) {
                levels_.resize(size_ * by_name_.size());
                reals_.resize(size_ * reals_in_row_);
                return false;
            }
            levels_.push_back(level             ? static_cast<std::uint32_t>(*level)
                              : real != nullptr ? is_real
                                                : inactive);
            if (parameter.continuous()) reals_.push_back(real != nullptr ? *real : 0);
        }
        ++size_;
        return true;
    }
    void remove_last() {
        --size_;
        levels_.resize(size_ * by_name_.size());
        reals_.resize(size_ * reals_in_row_);
    }

    [[nodiscard]] Configuration operator[](std::size_t row) const {
        std::vector<Configuration::Entry> entries;
        for (const std::size_t i : by_name_) {
            const Parameter& parameter = space_.parameters()[i];
            if (const std::uint32_t level = level_at(row, i); level == is_real)
                entries.emplace_back(parameter.name, real_at(row, i));
            else if (level != inactive)
                entries.emplace_back(parameter.name, parameter.level(level));
        }
        return Configuration(std::move(entries));
    }

    /// As the configurations compare.
    [[nodiscard]] bool before(std::size_t a, std::size_t b) const {
        for (std::size_t k = 0; k < by_name_.size(); ++k) {
            const std::size_t i = by_name_[k];
            const std::uint32_t mine = level_at(a, i);
            const std::uint32_t other = level_at(b, i);
            if (mine == other && (mine != is_real || real_at(a, i) == real_at(b, i))) continue;
            // Who has no value here goes on with a later name, or ends.
            if (mine == inactive) return !any_active(a, k + 1);
            if (other == inactive) return any_active(b, k + 1);
            if (mine == other) return real_at(a, i) < real_at(b, i);
            return rank_of(i, mine) < rank_of(i, other);
        }
        return false;
    }

private:
    static constexpr std::uint32_t inactive = 0xffffffffU;
    static constexpr std::uint32_t is_real = 0xfffffffeU;

    static std::vector<std::uint32_t> ranks_of(const Parameter& parameter) {
        std::vector<std::uint32_t> order(parameter.level_count());
        std::iota(order.begin(), order.end(), std::uint32_t{0});
        std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            return parameter.level(a) < parameter.level(b);
        });
        std::vector<std::uint32_t> ranks(order.size());
        for (std::size_t rank = 0; rank < order.size(); ++rank)
            ranks[order[rank]] = static_cast<std::uint32_t>(rank);
        return ranks;
    }
    [[nodiscard]] std::uint32_t level_at(std::size_t row, std::size_t i) const {
        return levels_[row * by_name_.size() + i];
    }
    [[nodiscard]] double real_at(std::size_t row, std::size_t i) const {
        return reals_[row * reals_in_row_ + real_column_[i]];
    }
    [[nodiscard]] std::uint32_t rank_of(std::size_t i, std::uint32_t level) const {
        return ranks_[i].empty() ? level : ranks_[i][level];
    }
    [[nodiscard]] bool any_active(std::size_t row, std::size_t from) const {
        for (std::size_t k = from; k < by_name_.size(); ++k)
            if (level_at(row, by_name_[k]) != inactive) return true;
        return false;
    }

    SearchSpace space_;
    std::vector<std::size_t> by_name_;  ///< parameters in the order of their names
    std::vector<std::vector<std::uint32_t>>
        ranks_;  ///< by parameter and level, among values; empty: the level itself
    std::vector<std::size_t> real_column_{};  ///< of continuous parameters
    std::size_t reals_in_row_ = 0;
    std::size_t size_ = 0;
    std::vector<std::uint32_t> levels_{};
    std::vector<double> reals_{};
};

/// A set of configurations of one space, kept as `LevelRows`.
class LevelRowSet {
public:
    explicit LevelRowSet(const SearchSpace& space) : rows_(space) {}
    LevelRowSet(const LevelRowSet&) = delete;  // the order looks at the rows
    LevelRowSet& operator=(const LevelRowSet&) = delete;
    LevelRowSet(LevelRowSet&&) = delete;
    LevelRowSet& operator=(LevelRowSet&&) = delete;
    ~LevelRowSet() = default;

    [[nodiscard]] std::size_t size() const { return order_.size(); }
    /// Whether it is new. What is no configuration of the space is always new, and not kept.
    bool insert(const Configuration& configuration) {
        if (!rows_.add(configuration)) return true;
        const bool is_new = order_.insert(rows_.size() - 1).second;
        if (!is_new) rows_.remove_last();
        return is_new;
    }
    /// In the order of configurations.
    template <class Visit>
    void for_each(const Visit& visit) const {
        for (const std::size_t row : order_) visit(rows_[row]);
    }

private:
    struct Before {
        const LevelRows* rows;
        bool operator()(std::size_t a, std::size_t b) const { return rows->before(a, b); }
    };

    LevelRows rows_;
    std::set<std::size_t, Before> order_{Before{&rows_}};
};

}  // namespace servetune
