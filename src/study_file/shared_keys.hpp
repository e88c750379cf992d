// SPDX-License-Identifier: Apache-2.0
#pragma once

// Words that stand under keys, with what they stand for; types and keys that several tables have,
// with one meaning wherever they stand: a table takes the keys by inheriting from what is here.

#include "key_reader.hpp"
#include "recipes.hpp"
#include "servetune/detail/perf/engine_traits.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/detail/search/bayesian_options.hpp"
#include "servetune/decision.hpp"
#include "servetune/engine.hpp"
#include "servetune/outcome.hpp"
#include "servetune/parameter.hpp"
#include "servetune/study_file.hpp"
#include "servetune/workload.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace servetune {
namespace keys {

template <class Meaning, std::size_t n>
using Words = std::array<std::pair<Meaning, std::string_view>, n>;

inline constexpr Words<Engine::FlagStyle, 2> flag_styles{
    {{Engine::FlagStyle::equals, "equals"}, {Engine::FlagStyle::separate, "separate"}}};
inline constexpr Words<Scale, 3> scales{
    {{Scale::linear, "linear"}, {Scale::log, "log"}, {Scale::log2, "log2"}}};
inline constexpr Words<Decision::Rule, 2> decision_rules{
    {{Decision::Rule::significant, "significant"}, {Decision::Rule::published, "published"}}};
inline constexpr Words<EngineTraits::FractionOf, 4> memory_fractions{
    {{EngineTraits::FractionOf::device, "device"},
     {EngineTraits::FractionOf::weights_cache, "weights_cache"},
     {EngineTraits::FractionOf::free, "free"},
     {EngineTraits::FractionOf::none, "none"}}};
inline constexpr Words<bool, 2> others_words{{{true, "search"}, {false, "default"}}};
inline constexpr std::array<std::string_view, 3> over_words{"mean", "worst", "each"};
inline constexpr Words<bool, 2> gain_units{{{false, "trial"}, {true, "second"}}};
/// Those with options stand under `strategy` as mappings too.
inline constexpr std::array<std::string_view, 6> strategies{
    "staged", "random", "exhaustive", "quasi_random", "local_search", "bayesian"};
inline constexpr Words<bool, 2> comparisons{{{false, "incumbent"}, {true, "baseline"}}};
inline constexpr Words<bool, 2> unmeasured_words{{{false, "fail"}, {true, "exclude"}}};
inline constexpr Words<bool, 2> copies{{{false, "one"}, {true, "fill"}}};
inline constexpr Words<bool, 2> on_off{{{true, "on"}, {false, "off"}}};
inline constexpr std::array<std::string_view, 3> audits{"enforce", "report", "off"};
inline constexpr std::array<std::string_view, 2> apis{"chat", "completions"};
inline constexpr std::array<std::string_view, 5> defect_kinds{
    "slow_start", "hang", "exit", "crash_under_load", "hang_under_load"};

inline constexpr std::array<std::string_view, 2> knowledge_words{"cost_model", "recipes"};
inline constexpr std::array<std::string_view, 2> recipe_goals{"throughput", "latency"};

/// Evaluators that need no options of their own.
inline constexpr std::array<std::string_view, 2> plain_evaluators{"deploy", "simulate"};
inline constexpr std::array<std::string_view, 2> infinite_words{"inf", ".inf"};
inline constexpr std::array<std::string_view, 3> arrival_words{"inf", ".inf", "timestamps"};

}  // namespace keys

// Types that several tables have.

/// `FOLDER/*.ENDING`.
inline std::string wrong_with_model_files(const std::string& text) {
    const std::string name = text.substr(text.rfind('/') + 1);
    return name.starts_with("*.") && name.size() > 2 ? ""
                                                     : "FOLDER/*.ENDING wanted, got '" + text + "'";
}
inline std::string wrong_with_server_path(const std::string& text) {
    return text.starts_with('/') ? ""
                                 : "a path such as /get_server_info wanted, got '" + text + "'";
}

namespace is {

/// Of a CPU: a set of cores has CPU_SETSIZE places.
inline constexpr KeyType core = integer_in<0, 1023>;
inline constexpr KeyType weight{Form::number, {},  "a positive number, at most a million,", 0,
                                most_weight,  true};
inline constexpr KeyType value_or_values{
    .form = Form::either, .called = "value or values", .element = &value, .other = &list_of<value>};
inline constexpr KeyType conditions{
    .form = Form::mapping, .called = "name -> value or values", .element = &value_or_values};
inline constexpr KeyType failure_kind{
    .form = Form::word, .called = "failure kind", .words = words_in<failure_kinds>};
/// Of requests a second, or in flight.
inline constexpr KeyType load{
    Form::number, {}, "a number from 1e-6 to 1e9", slowest_rate, fastest_rate};
inline constexpr KeyType replay_speed{
    Form::number, {}, "a number from 0.001 to 1000", slowest_replay, fastest_replay};
inline constexpr KeyType infinity{
    .form = Form::word, .called = "inf", .words = keys::infinite_words};
inline constexpr KeyType rate{.form = Form::either,
                              .called = "number above 0 | inf",
                              .element = &positive,
                              .other = &infinity};
inline constexpr KeyType arrival_rate{.form = Form::either,
                                      .called = "number above 0 | inf | timestamps",
                                      .element = &load,
                                      .other = &one_of<keys::arrival_words>};
inline constexpr KeyType short_budget{Form::text, "`N trials` or duration"};
inline constexpr KeyType limits{
    .form = Form::either, .called = "limit or limits", .element = &text, .other = &list_of<text>};
inline constexpr KeyType metrics{.form = Form::either,
                                 .called = "metric or metrics",
                                 .element = &metric,
                                 .other = &list_of<metric>};
/// Settings of a launcher, which knows them itself: values, lists and mappings of values.
inline constexpr KeyType setting_items{.form = Form::either,
                                       .called = "list or mapping",
                                       .element = &list_of<value>,
                                       .other = &mapping_of<value>};
inline constexpr KeyType setting{
    .form = Form::either, .called = "setting", .element = &value, .other = &setting_items};
inline constexpr KeyType settings{.form = Form::mapping, .called = "settings", .element = &setting};
inline constexpr KeyType architecture_list{.form = Form::either,
                                           .called = "architecture or architectures",
                                           .element = &one_of<architectures>,
                                           .other = &list_of<one_of<architectures>>};

}  // namespace is
}  // namespace servetune

namespace servetune::keys {

// Of engine files.

template <auto... path>
struct SinceKeys {
    Key since = row<path...>("since", is::version, "first version that has it");
};

template <auto... path>
struct UntilKeys {
    Key until = row<path...>("until", is::version, "last version that has it");
};

template <auto... path>
struct DestinationKeys {
    Key flag =
        row<path..., &Destination::flag>("flag", is::text, "the flag; of a bool: passed when true");
    Key off_flag =
        row<path..., &Destination::off_flag>("off_flag", is::text, "of a bool: passed when false");
    Key env = row<path..., &Destination::environment>("env", is::variable,
                                                      "an environment variable instead of a flag");
    Key option = row<path..., &Destination::option>(
        "option", is::dotted_path, "a place in the engine's options file instead of a flag");
};

template <auto... path>
struct WhenKeys {
    Key when = row<path...>("when", is::conditions,
                            "parent -> value or values; all must hold, or it is left out");
};

template <auto... path>
struct DocKeys {
    Key doc = row<path...>("doc", is::text, "for people: what it does, what it trades");
};

template <auto... path>
struct SourceKeys {
    Key source =
        row<path...>("source", is::text, "where it was seen or checked, or how it was computed");
};

template <auto... path>
struct ArchitecturesKeys {
    Key architectures = row<path...>("architectures", is::architecture_list,
                                     "the chips that it runs on, and its figures are of (all)");
};

// Of files with facts.

template <class Facts>
struct FactsKeys : SourceKeys<&Facts::source> {
    Key also = row<&Facts::also>("also", is::list_of<is::text>, "other names of it", required);
};

// Of workloads and studies.

struct OthersKeys {
    Key others{
        "others", is::one_of<others_words>,
        "parameters that `space` does not name (default where there is a `space`, else search)",
        resolved};
};

template <auto... dataset>
struct LengthKeys {
    Key input_tokens = row<dataset..., &Dataset::input_tokens>(
        "input_tokens", is::integer_from<1>,
        "per prompt; shared_prefix: behind the prefix; multi_turn: per turn");
    Key output_tokens = row<dataset..., &Dataset::output_tokens>(
        "output_tokens", is::integer_from<1>,
        "per answer; sharegpt, trace, prompts: instead of what the file says");
};

// Of evaluators.

template <auto... path>
struct TableKeys {
    Key table = row<path...>("table", is::file, "CSV: parameters, `status`, metrics",
                             resolved | short_form);
};

template <auto... path>
struct NoiseKeys {
    Key noise = row<path...>("noise", is::share,
                             "seeded noise of each measurement, as a coefficient of variation (0)");
};

template <auto... path>
struct EnvironmentKeys {
    Key environment = row<path...>("environment", is::variables,
                                   "of what is started, beside this program's own", resolved);
};

template <auto... path>
struct ReadyWithinKeys {
    Key ready_within = row<path...>("ready_within", is::positive_duration,
                                    "after that the trial has failed: not_ready_in_time (20min)");
};

template <auto... path>
struct TrialKeys {
    Key trial_within = row<path...>("trial_within", is::positive_duration,
                                    "start to end; a longer trial has failed: hung (2h)");
};

template <auto... path>
struct StopKeys {
    Key stop_within = row<path...>("stop_within", is::duration,
                                   "for what was started to end once it was told (20s)", ignored);
};

/// `Choice` has the options of an evaluator that load-tests a server.
template <class Choice>
struct LoadTestKeys : TrialKeys<&Choice::options, &decltype(Choice::options)::measure,
                                &MeasureOptions::trial_within_seconds> {
    using Options = decltype(Choice::options);
    Key api_key_env = row<&Choice::api_key_environment>(
        "api_key_env", is::variable,
        "the environment variable that holds the bearer token of our requests", ignored);
    Key stall_timeout = row<&Choice::options, &Options::measure, &MeasureOptions::load,
                            &LoadOptions::stall_timeout_seconds>(
        "stall_timeout", is::positive_duration,
        "a request without an event of its answer for so long has failed (300s)");
    Key warm_up = row<&Choice::options, &Options::measure, &MeasureOptions::warm_up_requests>(
        "warm_up", is::integer_in<0, 1'000'000>,
        "requests before the first workload, at least; more until the server is steady "
        "(16; 0: none)");
    Key give_up = row<&Choice::options, &Options::measure, &MeasureOptions::give_up>(
        "give_up", is::share,
        "a trial ends early once it is surely slower than the best by so much; 0: never (10%)");
};

}  // namespace servetune::keys
