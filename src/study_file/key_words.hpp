// SPDX-License-Identifier: Apache-2.0
#pragma once

// Words that stand under keys, with what they stand for, and types that several tables have.

#include "key.hpp"
#include "servetune/detail/perf/engine_traits.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/detail/search/bayesian_options.hpp"
#include "servetune/detail/trial/decision.hpp"
#include "servetune/engine.hpp"
#include "servetune/outcome.hpp"
#include "servetune/parameter.hpp"
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
inline constexpr KeyType infinity{
    .form = Form::word, .called = "inf", .words = keys::infinite_words};
inline constexpr KeyType rate{.form = Form::either,
                              .called = "number above 0 | inf",
                              .element = &positive,
                              .other = &infinity};
inline constexpr KeyType arrival_word{
    .form = Form::word, .called = "inf | timestamps", .words = keys::arrival_words};
inline constexpr KeyType arrival_rate{.form = Form::either,
                                      .called = "number above 0 | inf | timestamps",
                                      .element = &positive,
                                      .other = &arrival_word};
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
inline constexpr KeyType settings{
    .form = Form::mapping, .called = "settings", .element = &setting};
inline constexpr KeyType architecture_list{.form = Form::either,
                                           .called = "architecture or architectures",
                                           .element = &one_of<architectures>,
                                           .other = &list_of<one_of<architectures>>};

}  // namespace is
}  // namespace servetune
