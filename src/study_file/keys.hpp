// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every key that users may write, one table for each kind of mapping: readers, errors, schema,
// FORMAT.md and the definition of a study are made from the rows. A table is declared after those
// that it refers to; words, types and keys that several tables have stand first. Mappings whose
// names are free (parameters, counters) have types for what stands under the names.

#include "key_reader.hpp"
#include "recipes.hpp"
#include "servetune/outcome.hpp"
#include "servetune/study_file.hpp"

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
namespace keys {

// Of engine files.

template <auto... path>
struct SinceKeys {
    Key since = row<path...>("since", is::version, "first version that has it", of_engine_flag);
};

template <auto... path>
struct UntilKeys {
    Key until = row<path...>("until", is::version, "last version that has it", of_engine_flag);
};

template <auto... path>
struct DestinationKeys {
    Key flag = row<path..., &Destination::flag>(
        "flag", is::text, "the flag; of a bool: passed when true", of_engine_flag);
    Key off_flag = row<path..., &Destination::off_flag>(
        "off_flag", is::text, "of a bool: passed when false", of_engine_flag);
    Key env = row<path..., &Destination::environment>(
        "env", is::variable, "an environment variable instead of a flag", of_engine_flag);
    Key option = row<path..., &Destination::option>(
        "option", is::dotted_path, "a place in the engine's options file instead of a flag",
        of_engine_flag);
};

template <auto... path>
struct WhenKeys {
    Key when =
        row<path...>("when", is::conditions,
                     "parent -> value or values; all must hold, or it is left out", of_engine);
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
    FREE_KEY(
        others, is::one_of<others_words>,
        "parameters that `space` does not name (default where there is a `space`, else search)",
        resolved);
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
};

// Parameters and rules, of engines and of studies.

inline constexpr struct RangeKeys {
    using T = IntegerDomain;
    static constexpr std::string_view called = "range";
    BOUND_KEY(low, is::integer, "smallest, included", required);
    BOUND_KEY(high, is::integer, "largest, included when a step lands on it", required);
    BOUND_KEY(step, is::integer, "distance of its values (1)");
    WORD_KEY(scale, scales, "log: ratios count; log2: only low, 2 low, 4 low, ...");
} range{};

inline constexpr struct IntervalKeys {
    using T = RealDomain;
    static constexpr std::string_view called = "interval";
    BOUND_KEY(low, is::number, "smallest, included", required);
    BOUND_KEY(high, is::number, "largest, included", required);
    WORD_KEY(scale, scales, "log: ratios count");
} interval{};

struct DomainKeys {
    Key int_{"int", is::keyed<keys::range>, "an integer range"};
    FREE_KEY(choice, is::list_of<is::value>,
             "one of these; `engine` among them: passing no flag is a level too");
};

inline constexpr struct EarlierKeys : UntilKeys<&EngineParameter::earlier_until>,
                                      DestinationKeys<&EngineParameter::earlier> {
    static constexpr std::string_view called = "earlier";
} earlier{};

inline constexpr struct AlsoKeys : DomainKeys, SinceKeys<&FurtherValues::since> {
    static constexpr std::string_view called = "also";
} also{};

inline constexpr struct ParameterKeys
    : DomainKeys,
      WhenKeys<&EngineParameter::parameter, &Parameter::active_when>,
      DestinationKeys<&EngineParameter::destination>,
      DocKeys<&EngineParameter::parameter, &Parameter::doc>,
      SourceKeys<&EngineParameter::source>,
      SinceKeys<&EngineParameter::since>,
      UntilKeys<&EngineParameter::until> {
    using T = EngineParameter;
    static constexpr std::string_view called = "parameter";
    Key bool_{"bool", is::nothing, "true or false"};
    FREE_KEY(real, is::keyed<keys::interval>, "a real interval");
    FREE_KEY(text, is::nothing, "any text, such as a path: fixed by a study, never searched");
    FREE_KEY(ordered, is::boolean, "of a choice: the list goes from less to more");
    Key default_{"default", is::value,
                 "`engine`: pass no flag; a value: what the engine does by itself"};
    FREE_KEY(engine_default, is::value, "what the engine uses when no flag is passed, where known",
             of_engine);
    FREE_KEY(earlier, is::keyed<keys::earlier>, "how it is passed in earlier versions",
             of_engine_flag);
    Key concept_ = row<&T::parameter, &Parameter::concept_name>(
        "concept", is::text, "the idea it shares with parameters of other engines", of_engine);
    Key grows_memory = row<&T::parameter, &Parameter::grows_memory>(
        "grows_memory", is::boolean,
        "more of it never takes less of the device's memory, all else equal");
    FREE_KEY(values_since, is::conditions, "values of a choice that came with a version",
             of_engine_flag);
    FREE_KEY(values_until, is::conditions, "values of a choice last seen in a version",
             of_engine_flag);
    BOUND_KEY(architectures, is::mapping_of<is::architecture_list>,
              "of a choice: the chips that take a value (all); []: none, processors do",
              of_engine_flag);
    FREE_KEY(also, is::keyed<keys::also>,
             "further values that a study may name, and a search of all leaves out",
             of_engine_flag);
    FREE_KEY(same_as, is::mapping_of<is::value>,
             "another word for a value -> that value (`engine`: as no flag)", of_engine_flag);
    BOUND_KEY(means, is::mapping_of<is::one_of<value_meanings>>,
              "of a choice: value -> what the cost model calls it", of_engine_flag);
    FREE_KEY(checkpoints, is::mapping_of<is::text>,
             "in a study: value -> model to serve instead of passing the flag", of_flag);
} parameter{};

inline constexpr struct ConstraintKeys {
    static constexpr std::string_view called = "constraint";
    FREE_KEY(because, is::text, "why; shown when it is broken");
    FREE_KEY(since, is::version, "first version that has it");
    FREE_KEY(until, is::version, "last version that has it");
    FREE_KEY(require, is::expression, "must be true (or unknown)");
    FREE_KEY(forbid, is::conditions, "parameter -> value or values that must not come together");
} constraint{};

struct ConstraintsKeys {
    FREE_KEY(constraints, is::list_of<is::keyed<keys::constraint>>,
             "rules that every configuration keeps", resolved);
};

// An engine.

inline constexpr struct FailureKeys : SourceKeys<&FailurePattern::source> {
    using T = FailurePattern;
    static constexpr std::string_view called = "failures";
    BOUND_KEY(kind, is::failure_kind, "what such a trial is called", required);
    BOUND_KEY(match, is::list_of<is::text>,
              "the first line of the log that contains one of these decides", required);
} failure{};

inline constexpr struct RenderKeys : WhenKeys<&JsonFlag::when> {
    using T = JsonFlag;
    static constexpr std::string_view called = "render";
    BOUND_KEY(flag, is::text, "the flag", required);
    FREE_KEY(json, is::mapping_of<is::text>,
             "JSON key -> {parameter}, or JSON with {parameter} in it", required);
} render{};

inline constexpr struct WeightCacheKeys : WhenKeys<&WeightCacheDaemon::when>,
                                          EnvironmentKeys<&WeightCacheDaemon::environment>,
                                          ReadyWithinKeys<&WeightCacheDaemon::ready_within_seconds>,
                                          SinceKeys<&WeightCacheDaemon::since> {
    using T = WeightCacheDaemon;
    static constexpr std::string_view called = "weight_cache";
    BOUND_KEY(launch, is::some<is::list_of<is::word>>,
              "the daemon's command, with {model} and {folder} for its sockets", required);
    BOUND_KEY(parameters, is::list_of<is::name>,
              "the daemon gets their flags too: the weights depend on them", required);
    BOUND_KEY(arguments, is::list_of<is::word>,
              "flags that the daemon gets too, where a study has them under `arguments`");
    BOUND_KEY(engine, is::list_of<is::word>, "further words of the engine's command, with {folder}",
              required);
    BOUND_KEY(ready, is::some<is::text>, "in the daemon's line that says that it holds the weights",
              required);
    BOUND_KEY(used, is::some<is::text>, "in the engine's line that says that it took them",
              required);
} weight_cache{};

inline constexpr struct StartedByKeys {
    using T = PlatformStarts;
    static constexpr std::string_view called = "started_by";
    BOUND_KEY(dynamo, is::list_of<is::word>,
              "first words of a worker of NVIDIA Dynamo, with {model}");
    BOUND_KEY(kserve, is::variable, "the variable whose words KServe puts behind its command");
    BOUND_KEY(gpustack, is::word, "GPUStack's name of the backend");
    BOUND_KEY(ray, is::word, "`llm_engine` of Ray Serve LLM");
    BOUND_KEY(server_flags, is::list_of<is::word>,
              "flags of the engine's own HTTP server, which Dynamo and Ray replace; `*` at "
              "the end: all that begin so");
} started_by{};

inline constexpr struct RoleKeys : EnvironmentKeys<&EngineRole::environment> {
    using T = EngineRole;
    static constexpr std::string_view called = "role";
    BOUND_KEY(arguments, is::list_of<is::word>,
              "further words of its command, with {host} and {side_port}");
} role{};

inline constexpr struct RolesKeys : SinceKeys<&EngineRoles::since>,
                                    SourceKeys<&EngineRoles::source> {
    using T = EngineRoles;
    static constexpr std::string_view called = "roles";
    FREE_KEY(prefill, is::keyed<keys::role>, "what the servers have more that compute prompts",
             required);
    FREE_KEY(decode, is::keyed<keys::role>, "what the servers have more that make the answers",
             required);
    FREE_KEY(router, is::list_of<is::either<is::word, is::list_of<is::word>>>,
             "its command, with {host} and {port}; a list stands for each server of a role: "
             "{prefill_url}, {prefill_side_port}",
             required);
    BOUND_KEY(router_ready, is::path, "answers 200 once the router serves");
} roles{};

inline constexpr struct EngineKeys : ReadyWithinKeys<&Engine::ready_within_seconds>,
                                     ConstraintsKeys,
                                     ArchitecturesKeys<&Engine::architectures> {
    using T = Engine;
    static constexpr std::string_view called = "engine";
    Key engine = row<&T::name>("engine", is::text, "the engine's name", required);
    BOUND_KEY(versions, is::text, "the versions this file was checked for");
    BOUND_KEY(launch, is::list_of<is::word>, "the command, with {model}, {host} and {port}",
              required);
    BOUND_KEY(started_as, is::list_of<is::some<is::list_of<is::word>>>,
              "other words that commands of people begin with");
    BOUND_KEY(images, is::list_of<is::word>,
              "container images, without registry, whose entry point is the engine");
    BOUND_KEY(aliases, is::mapping_of<is::text>,
              "other spelling of a flag -> its parameter, or {model}");
    BOUND_KEY(not_about_speed, is::list_of<is::word>, "flags that change neither speed nor memory");
    BOUND_KEY(
        help, is::list_of<is::list_of<is::word>>,
        "what makes the program list its flags: tried in turn until all are there ([[--help]])");
    BOUND_KEY(help_of_removed, is::list_of<is::some<is::text>>,
              "words of that list that mark a flag as removed");
    WORD_KEY(flag_style, flag_styles, "how a flag takes its value: --flag=value or --flag value");
    BOUND_KEY(options_flag, is::text, "the flag that takes the engine's options file");
    BOUND_KEY(file_flags, is::list_of<is::some<is::word>>,
              "flags that take a file which may set any other flag");
    BOUND_KEY(flag_variables, is::list_of<is::some<is::word>>,
              "beginnings of environment variables that set flags");
    BOUND_KEY(
        environment_prefixes, is::list_of<is::some<is::word>>,
        "beginnings of environment variables that can change its speed: kept with each trial");
    BOUND_KEY(caches, is::list_of<is::variable>,
              "environment variables that name folders of compiled code: kept between containers");
    BOUND_KEY(model_files, is::list_of<is::checked<is::text, wrong_with_model_files>>,
              "FOLDER/*.ENDING of models that are files ({model} is a hub's name or a folder)");
    Key ready = row<&T::ready_path>("ready", is::path,
                                    "answers 200 once the engine serves, such as /health");
    FREE_KEY(api, is::one_of<apis>,
             "whether answers are asked for at /v1/chat/completions or /v1/completions (chat)");
    FREE_KEY(server_info, is::checked<is::path, wrong_with_server_path>,
             "answers a JSON object with the values of the flags that are in force (not asked)");
    BOUND_KEY(reported_as, is::mapping_of<is::text>,
              "flag -> its name in the answer of `server_info` (the flag with `_` for `-`)");
    FREE_KEY(between_runs, is::mapping_of<is::variables>,
             "path to POST to, so that no cache serves the next run -> variables that it needs");
    BOUND_KEY(counters, is::mapping_of<is::text>,
              "where its own counters are and what they are called");
    BOUND_KEY(failures, is::list_of<is::keyed<keys::failure>>,
              "how the log of a dead engine is read");
    FREE_KEY(parameters, is::mapping_of<is::keyed<keys::parameter>>, "name -> parameter", required);
    FREE_KEY(render, is::list_of<is::keyed<keys::render>>,
             "parameters that make one flag together");
    BOUND_KEY(weight_cache, is::keyed<keys::weight_cache>,
              "a program that keeps weights in the devices' memory between starts");
    BOUND_KEY(started_by, is::keyed<keys::started_by>,
              "how platforms with words of their own start it, for `recommend --as`");
    FREE_KEY(devices, is::either<is::list_of<is::name>, is::mapping_of<is::conditions>>,
             "parameters whose product is the number of devices");
    FREE_KEY(roles, is::keyed<keys::roles>, "how it runs prefill and decode apart");
} engine{};

// A workload.

inline constexpr struct DatasetKeys : LengthKeys<> {
    using T = Dataset;
    static constexpr std::string_view called = "dataset";
    WORD_KEY(kind, dataset_kinds, "where the prompts come from", required);
    FREE_KEY(
        path, is::file,
        "of sharegpt, trace, prompts; beside the file it stands in, else in the current folder");
    BOUND_KEY(range_ratio, is::number_in<0, 1>, "random: lengths vary uniformly by this share");
    BOUND_KEY(prefix_tokens, is::integer_from<1>, "shared_prefix: length of what a group shares");
    BOUND_KEY(prefix_groups, is::integer_from<1>, "shared_prefix: number of groups");
    BOUND_KEY(turns, is::integer_from<1>, "multi_turn: requests of one conversation");
} dataset{};

inline constexpr struct LoadSearchKeys {
    static constexpr std::string_view called = "largest_rate";
    Key from = row<&LoadSearch::from>("from", is::load, "the lowest load");
    Key to = row<&LoadSearch::to>("to", is::load, "the highest load, tried first");
} load_search{};

inline constexpr struct ArrivalKeys {
    using T = Arrival;
    static constexpr std::string_view called = "arrival";
    FREE_KEY(rate, is::arrival_rate,
             "requests per second; inf: all at once; timestamps: as the data set says");
    BOUND_KEY(speed, is::replay_speed, "of timestamps: times as fast as recorded (1)");
    BOUND_KEY(burstiness, is::rate, "of a rate: 1 is Poisson, less is burstier, inf an even pace");
    Key concurrency = row<&T::in_flight>("concurrency", is::integer_in<1, most_concurrency>,
                                         "that many requests in flight");
    Key largest_rate =
        row<&T::search>("largest_rate", is::keyed<keys::load_search>,
                        "the most requests per second that keep the limits of the objective, found "
                        "for each configuration");
    Key largest_concurrency = row<&T::search>("largest_concurrency", is::keyed<keys::load_search>,
                                              "the same of requests in flight");
} arrival{};

inline constexpr struct WorkloadKeys : LengthKeys<&Workload::dataset> {
    using T = Workload;
    static constexpr std::string_view called = "workload";
    Key workload = row<&T::name>("workload", is::text, "its name");
    FREE_KEY(use, is::name_or_file, "start from this workload; the keys here replace its own");
    FREE_KEY(dataset, is::keyed<keys::dataset>, "where the prompts come from");
    BOUND_KEY(requests, is::integer_from<1>, "how many");
    FREE_KEY(arrival, is::keyed<keys::arrival>, "when they are sent (all at once)");
    BOUND_KEY(seed, is::integer_from<0>, "of everything random in it (42)");
    BOUND_KEY(ignore_eos, is::boolean, "every answer has exactly the tokens asked for");
    BOUND_KEY(weight, is::weight, "in the combined metrics of several workloads (1)");
    BOUND_KEY(printed_as, is::either<is::text, is::list_of<is::text>>,
              "what a published document calls it, for `autotune import`", ignored);
} workload{};

// A study.

inline constexpr struct MachineKeys {
    using T = StudyMachine;
    static constexpr std::string_view called = "machine";
    FREE_KEY(device, is::text,
             "the accelerator, such as h100-sxm, or a file with its facts (.yaml)",
             resolved | short_form);
    Key count = row<&T::devices>(
        "count", is::integer_from<1>,
        "how many of them a trial may take (those that nvidia-smi finds, else one)");
    Key price_per_hour = row<&T::usd_per_device_hour>(
        "price_per_hour", is::positive,
        "of all of them together, in US dollars: for the `usd_per_million_...` metrics");
} machine{};

inline constexpr struct ObjectiveKeys {
    static constexpr std::string_view called = "objective";
    FREE_KEY(maximize, is::metrics,
             "the more the better; the first metric leads; request_rate, concurrency, goodput: "
             "at the most load that keeps the limits");
    FREE_KEY(minimize, is::metrics, "the less the better");
    FREE_KEY(limits, is::limits, "`metric >= number` or `metric <= number`");
} objective{};

inline constexpr struct QualityKeys {
    using T = QualityOptions;
    static constexpr std::string_view called = "quality";
    FREE_KEY(prompts, is::file, "a prompt a line, answered greedily (24 that come with servetune)");
    BOUND_KEY(command, is::list_of<is::word>,
              "instead a program that prints an accuracy, with {url} and {model}");
    BOUND_KEY(metric, is::text,
              "which of what it prints: a key, or TASK/METRIC of lm-evaluation-harness (accuracy, "
              "the first row)");
} quality{};

inline constexpr struct StagedKeys {
    using T = Staged::Options;
    static constexpr std::string_view called = "staged";
    FREE_KEY(compare_with, is::one_of<comparisons>,
             "what a stage's candidates are set on and compared with (incumbent)");
    BOUND_KEY(replicates, is::integer_in<1, 1000>,
              "most measurements of one configuration to settle a comparison (3)");
    FREE_KEY(stages,
             is::list_of<is::either<
                 is::name, is::either<is::list_of<is::name>,
                                      is::mapping_of<is::list_of<is::mapping_of<is::value>>>>>>,
             "a parameter, a list of them (all combinations), or a name -> partial configurations",
             required);
} staged{};

inline constexpr struct StrategyKeys {
    static constexpr std::string_view called = "strategy";
    FREE_KEY(staged, is::keyed<keys::staged>, "one stage after the other");
} strategy{};

inline constexpr struct KnowledgeKeys : TableKeys<&KnowledgeChoice::path> {
    using T = KnowledgeChoice;
    static constexpr std::string_view called = "knowledge";
    Key study = row<&T::path>(
        "study", is::folder_or_file,
        "what an earlier study of the same metric has measured: its folder, or the journal in it");
} knowledge{};

inline constexpr struct BudgetKeys {
    using T = StudyFile;
    static constexpr std::string_view called = "budget";
    Key trials = row<&T::budget, &Budget::trials>("trials", is::integer_from<1>,
                                                  "told trials of search and confirmation (30)");
    Key wall_clock = row<&T::budget, &Budget::wall_clock_seconds>(
        "wall_clock", is::duration,
        "of one run: a trial that still runs then is ended, and the next run repeats it");
    FREE_KEY(until, is::time_of_day, "the same as a local time, the next that comes");
    Key serves = row<&T::budget, &Budget::serves_seconds>(
        "serves", is::positive_duration,
        "how long the result will serve: the search also ends once a further trial takes "
        "more time than it is expected to gain");
} budget{};

inline constexpr struct ReplayKeys : TableKeys<&ReplayChoice::table>,
                                     NoiseKeys<&ReplayChoice::noise_cv> {
    using T = ReplayChoice;
    static constexpr std::string_view called = "replay";
    Key unmeasured = word_row<unmeasured_words, &T::exclude_unmeasured>(
        "unmeasured",
        "a configuration without a row is a failed trial, or not part of the space (fail)");
    Key delay = row<&T::delay_seconds>("delay", is::duration,
                                       "how long an answer takes, to watch a run (0s)", ignored);
} replay{};

inline constexpr struct SimulateKeys : NoiseKeys<&SimulateChoice::noise, &StepNoise::run_cv> {
    using T = SimulateChoice;
    static constexpr std::string_view called = "simulate";
    Key step_noise = row<&T::noise, &StepNoise::step_cv>("step_noise", is::share,
                                                         "how much steps differ within a run (0)");
    BOUND_KEY(traits, is::mapping_of<is::file>, "engine -> its traits (those that ship)", resolved);
} simulate{};

inline constexpr struct AttachKeys : LoadTestKeys<AttachChoice> {
    using T = AttachChoice;
    static constexpr std::string_view called = "attach";
    Key url = row<&T::options, &AttachEvaluator::Options::url>(
        "url", is::url,
        "of the server, such as http://127.0.0.1:8000; a user and password in it are never shown",
        required | resolved | short_form);
    Key served_model = row<&T::options, &AttachEvaluator::Options::served_model>(
        "served_model", is::text, "the name that clients ask for (the study's model)");
} attach{};

inline constexpr struct ContainerKeys {
    static constexpr std::string_view called = "container";
    using T = ContainerOptions;
    Key image = row<&T::images>(
        "image", is::either<is::text, is::list_of<is::text>>,
        "its name, with a tag or digest; of several it becomes the parameter `container.image`",
        required);
    BOUND_KEY(program, is::list_of<is::word>,
              "the client and its own options, such as [docker] ([podman])");
    BOUND_KEY(options, is::list_of<is::word>, "further words of its `run`");
} container{};

inline constexpr struct DeployKeys
    : LoadTestKeys<DeployChoice>,
      EnvironmentKeys<&DeployChoice::options, &EngineEvaluator::Options::deploy,
                      &DeployOptions::environment>,
      StopKeys<&DeployChoice::options, &EngineEvaluator::Options::deploy,
               &DeployOptions::stop_within_seconds>,
      ReadyWithinKeys<&DeployChoice::options, &EngineEvaluator::Options::deploy,
                      &DeployOptions::ready_within_seconds> {
    using T = DeployChoice;
    static constexpr std::string_view called = "deploy";
    FREE_KEY(container, is::keyed<keys::container>, "the engine runs in a container");
    FREE_KEY(ssh, is::settings, "the engine runs on another machine");
    FREE_KEY(ray, is::settings, "each engine is a job of Ray");
    FREE_KEY(slurm, is::settings, "each engine is a job of Slurm");
    FREE_KEY(kubernetes, is::settings, "each engine is a Job of Kubernetes");
    FREE_KEY(launcher, is::settings,
             "a program of yours starts each engine: `program`, and settings that it knows");
    Key gpus = row<&T::options, &EngineEvaluator::Options::deploy, &DeployOptions::gpus>(
        "gpus", is::text, "CUDA_VISIBLE_DEVICES (as it is)");
    Key cores = row<&T::options, &EngineEvaluator::Options::deploy, &DeployOptions::cores>(
        "cores", is::list_of<is::core>, "the engine runs on these cores only (any)");
    BOUND_KEY(
        workers, is::integer_in<1, 256>,
        "trials at once, each on an equal part of `gpus` and `cores`, or in a job of its own (1)");
    Key replicas = word_row<copies, &T::options, &EngineEvaluator::Options::fill_devices>(
        "replicas",
        "fill: as many copies of the engine as its devices allow, loaded as one server (one)");
    Key weight_cache = word_row<on_off, &T::options, &EngineEvaluator::Options::weight_cache>(
        "weight_cache", "keep the weights in the devices' memory between trials (off)");
    WORD_KEY(watch, on_off, "measure again what a throttled or shared machine disturbed (on)");
} deploy{};

inline constexpr struct CommandKeys
    : TrialKeys<&CommandChoice::options, &CommandEvaluator::Options::within_seconds>,
      EnvironmentKeys<&CommandChoice::options, &CommandEvaluator::Options::environment>,
      StopKeys<&CommandChoice::options, &CommandEvaluator::Options::stop_within_seconds> {
    using T = CommandChoice;
    static constexpr std::string_view called = "command";
    Key run = row<&T::words>(
        "run", is::some<is::list_of<is::word>>,
        "the program, with {config}, {config_file}, {workload}, {seed}, {trial} and {folder}",
        required | resolved | short_form);
} command{};

inline constexpr struct EvaluatorKeys {
    static constexpr std::string_view called = "evaluator";
    FREE_KEY(replay, is::either<is::file, is::keyed<keys::replay>>,
             "answer from a table of measured configurations");
    FREE_KEY(simulate, is::keyed<keys::simulate>,
             "answer from the cost model: predictions, nothing is measured");
    FREE_KEY(attach, is::either<is::url, is::keyed<keys::attach>>,
             "load-test a server that somebody else runs: only the load can be searched");
    FREE_KEY(deploy, is::keyed<keys::deploy>,
             "start the engine here, load-test it over HTTP, end it: one start a trial");
    FREE_KEY(command, is::either<is::list_of<is::word>, is::keyed<keys::command>>,
             "a program of yours measures: it gets the configuration and prints metrics as JSON");
} evaluator{};

inline constexpr struct StudyKeys : ConstraintsKeys, OthersKeys {
    using T = StudyFile;
    static constexpr std::string_view called = "study";
    FREE_KEY(study, is::text, "its name, and its folder's", required | resolved);
    FREE_KEY(use, is::file,
             "start from this study; keys here replace its own, those of `space` one by one",
             resolved);
    FREE_KEY(model, is::text,
             "what is served: a name, a path, or a file with a model's facts (.yaml)",
             required | resolved);
    FREE_KEY(hardware, is::either<is::text, is::keyed<keys::machine>>,
             "what it runs on: h100-sxm, a file with its facts, or {device: h100-sxm, count: 8}");
    FREE_KEY(engine, is::either<is::name_or_file, is::list_of<is::name_or_file>>,
             "the engine; of several it becomes a parameter, the first is the default", resolved);
    FREE_KEY(engine_versions, is::mapping_of<is::version>,
             "engine -> version, which decides the flags (the newest known)", resolved);
    FREE_KEY(workloads,
             is::either<is::name_or_file,
                        is::list_of<is::either<is::name_or_file, is::keyed<keys::workload>>>>,
             "names, files or mappings", required | resolved);
    FREE_KEY(report_workloads, is::list_of<is::either<is::name_or_file, is::keyed<keys::workload>>>,
             "measured for the default and the recommendation only", resolved);
    FREE_KEY(objective, is::keyed<keys::objective>, "what for", required | resolved);
    Key never_worse_than = row<&T::decision, &Decision::never_worse_than>(
        "never_worse_than", is::share,
        "what no workload may lose against the default, in any goal");
    FREE_KEY(quality, is::keyed<keys::quality>,
             "of `deploy`: compares answers with the default's, as `quality_drop`");
    FREE_KEY(
        space,
        is::mapping_of<
            is::either<is::value, is::either<is::list_of<is::value>, is::keyed<keys::parameter>>>>,
        "parameter -> fixed value, list of values, or mapping", resolved);
    FREE_KEY(
        roles,
        is::mapping_of<is::mapping_of<
            is::either<is::value, is::either<is::list_of<is::value>, is::keyed<keys::parameter>>>>>,
        "prefill and decode apart are tried too: role -> its `count` of servers and parameters of "
        "its own, as under `space`",
        resolved);
    FREE_KEY(preset, is::name_or_file,
             "what is searched, from presets/; keys of `space` replace its own (quick, without "
             "`space` and `others`)",
             resolved);
    FREE_KEY(arguments, is::either<is::list_of<is::word>, is::mapping_of<is::list_of<is::word>>>,
             "added to every command; none that the study searches", resolved);
    FREE_KEY(strategy, is::either<is::one_of<keys::strategies>, is::keyed<keys::strategy>>,
             "how to search (bayesian)");
    FREE_KEY(knowledge,
             is::list_of<is::either<is::one_of<knowledge_words>, is::keyed<keys::knowledge>>>,
             "what `bayesian` knows before anything is measured (`[cost_model, recipes]`; "
             "none if simulated, no recipes if replayed)",
             resolved);
    Key decision = word_row<decision_rules, &T::decision, &Decision::rule>(
        "decision", "when a gain counts", resolved);
    Key min_gain = row<&T::decision, &Decision::min_gain>(
        "min_gain", is::share, "below it a flag is not worth having (1%)", resolved);
    Key noise_cv = row<&T::decision, &Decision::noise_cv>(
        "noise_cv", is::share, "run-to-run spread, assumed until measured (1%)", resolved);
    BOUND_KEY(default_again, is::integer_from<0>,
              "the search measures the default again after so many trials, against drift; "
              "0: never (10 if something is measured "
              "and `decision` is significant)");
    BOUND_KEY(audit, is::one_of<audits>, "whether unsound results may win", resolved);
    FREE_KEY(budget, is::either<is::short_budget, is::keyed<keys::budget>>,
             "when to stop: `30 trials`, `45min`, both, or a mapping", ignored);
    FREE_KEY(evaluator, is::either<is::one_of<keys::plain_evaluators>, is::keyed<keys::evaluator>>,
             "who measures", required);
    BOUND_KEY(seed, is::integer_from<0>, "of everything random in it (0)", resolved);
    BOUND_KEY(notes, is::list_of<is::text>, "printed at the end of the report", ignored);
    Key published = row<&T::printed>(
        "published", is::mapping_of<is::text>,
        "stage -> the gain that a published document printed, shown beside ours", ignored);
} study{};

inline constexpr struct PresetKeys : OthersKeys {
    static constexpr std::string_view called = "preset";
    FREE_KEY(preset, is::text, "its name", required);
    FREE_KEY(doc, is::text, "for people: what it searches, what it leaves out");
    FREE_KEY(space,
             is::mapping_of<is::mapping_of<is::either<is::value, is::keyed<keys::parameter>>>>,
             "engine -> entries as under a study's `space`", required);
} preset{};

}  // namespace keys
}  // namespace servetune
