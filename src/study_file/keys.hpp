// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every key that users may write, one table for each kind of mapping: readers, errors, schema,
// the tables of FORMAT.md and the definition of a study are made from the rows. FORMAT.md says
// what a key means. A table is declared after those that it refers to; words, types and keys that
// several tables have stand first. Mappings whose names are free (parameters, counters) have types
// for what stands under the names.

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
inline constexpr std::array<std::string_view, 2> knowledge_words{"cost_model", "recipes"};
inline constexpr std::array<std::string_view, 2> checked_families{"dense", "experts"};
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
    Key since = row<path...>("since", is::version, of_engine_flag);
};

template <auto... path>
struct UntilKeys {
    Key until = row<path...>("until", is::version, of_engine_flag);
};

template <auto... path>
struct DestinationKeys {
    Key flag = row<path..., &Destination::flag>("flag", is::text, of_engine_flag);
    Key off_flag = row<path..., &Destination::off_flag>("off_flag", is::text, of_engine_flag);
    Key env = row<path..., &Destination::environment>("env", is::variable, of_engine_flag);
    Key option = row<path..., &Destination::option>("option", is::dotted_path, of_engine_flag);
};

template <auto... path>
struct WhenKeys {
    Key when = row<path...>("when", is::conditions, of_engine);
};

template <auto... path>
struct DocKeys {
    Key doc = row<path...>("doc", is::text);
};

template <auto... path>
struct SourceKeys {
    Key source = row<path...>("source", is::text);
};

template <auto... path>
struct ArchitecturesKeys {
    Key architectures = row<path...>("architectures", is::architecture_list);
};

// Of files with facts.

template <class Facts>
struct FactsKeys : SourceKeys<&Facts::source> {
    Key also = row<&Facts::also>("also", is::list_of<is::text>, required);
};

// Of workloads and studies.

struct OthersKeys {
    FREE_KEY(others, is::one_of<others_words>, resolved);
};

template <auto... dataset>
struct LengthKeys {
    Key input_tokens = row<dataset..., &Dataset::input_tokens>("input_tokens", is::integer_from<1>);
    Key output_tokens =
        row<dataset..., &Dataset::output_tokens>("output_tokens", is::integer_from<1>);
};

// Of evaluators.

template <auto... path>
struct TableKeys {
    Key table = row<path...>("table", is::file, resolved | short_form);
};

template <auto... path>
struct NoiseKeys {
    Key noise = row<path...>("noise", is::share);
};

template <auto... path>
struct EnvironmentKeys {
    Key environment = row<path...>("environment", is::variables, resolved);
};

template <auto... path>
struct ReadyWithinKeys {
    Key ready_within = row<path...>("ready_within", is::positive_duration);
};

template <auto... path>
struct TrialKeys {
    Key trial_within = row<path...>("trial_within", is::positive_duration);
};

template <auto... path>
struct StopKeys {
    Key stop_within = row<path...>("stop_within", is::duration, ignored);
};

/// `Choice` has the options of an evaluator that load-tests a server.
template <class Choice>
struct LoadTestKeys : TrialKeys<&Choice::options, &decltype(Choice::options)::measure,
                                &MeasureOptions::trial_within_seconds> {
    using Options = decltype(Choice::options);
    Key api_key_env = row<&Choice::api_key_environment>("api_key_env", is::variable, ignored);
    Key stall_timeout =
        row<&Choice::options, &Options::measure, &MeasureOptions::load,
            &LoadOptions::stall_timeout_seconds>("stall_timeout", is::positive_duration);
    Key warm_up = row<&Choice::options, &Options::measure, &MeasureOptions::warm_up_requests>(
        "warm_up", is::integer_in<0, 1'000'000>);
};

// Parameters and rules, of engines and of studies.

inline constexpr struct RangeKeys {
    using T = IntegerDomain;
    static constexpr std::string_view called = "range";
    BOUND_KEY(low, is::integer, required);
    BOUND_KEY(high, is::integer, required);
    BOUND_KEY(step, is::integer);
    WORD_KEY(scale, scales);
} range{};

inline constexpr struct IntervalKeys {
    using T = RealDomain;
    static constexpr std::string_view called = "interval";
    BOUND_KEY(low, is::number, required);
    BOUND_KEY(high, is::number, required);
    WORD_KEY(scale, scales);
} interval{};

struct DomainKeys {
    Key int_{"int", is::keyed<keys::range>};
    FREE_KEY(choice, is::list_of<is::value>);
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
    Key bool_{"bool", is::nothing};
    FREE_KEY(real, is::keyed<keys::interval>);
    FREE_KEY(text, is::nothing);
    FREE_KEY(ordered, is::boolean);
    Key default_{"default", is::value};
    FREE_KEY(engine_default, is::value, of_engine);
    FREE_KEY(earlier, is::keyed<keys::earlier>, of_engine_flag);
    Key concept_ = row<&T::parameter, &Parameter::concept_name>("concept", is::text, of_engine);
    Key grows_memory = row<&T::parameter, &Parameter::grows_memory>("grows_memory", is::boolean);
    FREE_KEY(values_since, is::conditions, of_engine_flag);
    FREE_KEY(values_until, is::conditions, of_engine_flag);
    BOUND_KEY(architectures, is::mapping_of<is::architecture_list>, of_engine_flag);
    FREE_KEY(also, is::keyed<keys::also>, of_engine_flag);
    FREE_KEY(same_as, is::mapping_of<is::value>, of_engine_flag);
    BOUND_KEY(means, is::mapping_of<is::one_of<value_meanings>>, of_engine_flag);
    FREE_KEY(checkpoints, is::mapping_of<is::text>, of_flag);
} parameter{};

inline constexpr struct ConstraintKeys {
    static constexpr std::string_view called = "constraint";
    FREE_KEY(because, is::text);
    FREE_KEY(since, is::version);
    FREE_KEY(until, is::version);
    FREE_KEY(require, is::expression);
    FREE_KEY(forbid, is::conditions);
} constraint{};

struct ConstraintsKeys {
    FREE_KEY(constraints, is::list_of<is::keyed<keys::constraint>>, resolved);
};

// An engine.

inline constexpr struct FailureKeys : SourceKeys<&FailurePattern::source> {
    using T = FailurePattern;
    static constexpr std::string_view called = "failures";
    BOUND_KEY(kind, is::failure_kind, required);
    BOUND_KEY(match, is::list_of<is::some<is::text>>, required);
    BOUND_KEY(unless, is::list_of<is::some<is::text>>);
    BOUND_KEY(of, is::list_of<is::name>);
} failure{};

inline constexpr struct RenderKeys : WhenKeys<&JsonFlag::when> {
    using T = JsonFlag;
    static constexpr std::string_view called = "render";
    BOUND_KEY(flag, is::text, required);
    FREE_KEY(json, is::mapping_of<is::text>, required);
} render{};

inline constexpr struct WeightCacheKeys : WhenKeys<&WeightCacheDaemon::when>,
                                          ReadyWithinKeys<&WeightCacheDaemon::ready_within_seconds>,
                                          SinceKeys<&WeightCacheDaemon::since> {
    using T = WeightCacheDaemon;
    static constexpr std::string_view called = "weight_cache";
    BOUND_KEY(launch, is::some<is::list_of<is::word>>, required);
    BOUND_KEY(parameters, is::list_of<is::name>, required);
    BOUND_KEY(arguments, is::list_of<is::word>);
    BOUND_KEY(engine, is::list_of<is::word>, required);
    BOUND_KEY(ready, is::some<is::text>, required);
    BOUND_KEY(used, is::some<is::text>, required);
} weight_cache{};

inline constexpr struct CacheSizeKeys : WhenKeys<&CacheSize::when>,
                                        SinceKeys<&CacheSize::since>,
                                        SourceKeys<&CacheSize::source> {
    using T = CacheSize;
    static constexpr std::string_view called = "cache_size";
    BOUND_KEY(log, is::some<is::text>, required);
    BOUND_KEY(unit_bytes, is::number_from<1>);
    BOUND_KEY(flag, is::word, required);
    BOUND_KEY(unless, is::list_of<is::some<is::text>>);
    BOUND_KEY(free, is::list_of<is::name>, required);
} cache_size{};

inline constexpr struct RoleKeys : EnvironmentKeys<&EngineRole::environment> {
    using T = EngineRole;
    static constexpr std::string_view called = "role";
    BOUND_KEY(arguments, is::list_of<is::word>);
} role{};

inline constexpr struct RolesKeys : SinceKeys<&EngineRoles::since>,
                                    SourceKeys<&EngineRoles::source> {
    using T = EngineRoles;
    static constexpr std::string_view called = "roles";
    FREE_KEY(prefill, is::keyed<keys::role>, required);
    FREE_KEY(decode, is::keyed<keys::role>, required);
    FREE_KEY(router, is::list_of<is::either<is::word, is::list_of<is::word>>>, required);
    BOUND_KEY(router_ready, is::path);
} roles{};

inline constexpr struct EngineKeys : ReadyWithinKeys<&Engine::ready_within_seconds>,
                                     ConstraintsKeys,
                                     ArchitecturesKeys<&Engine::architectures> {
    using T = Engine;
    static constexpr std::string_view called = "engine";
    Key engine = row<&T::name>("engine", is::text, required);
    BOUND_KEY(versions, is::text);
    BOUND_KEY(launch, is::list_of<is::word>, required);
    BOUND_KEY(started_as, is::list_of<is::some<is::list_of<is::word>>>);
    BOUND_KEY(images, is::list_of<is::word>);
    BOUND_KEY(aliases, is::mapping_of<is::text>);
    BOUND_KEY(not_about_speed, is::list_of<is::word>);
    BOUND_KEY(help, is::list_of<is::list_of<is::word>>);
    BOUND_KEY(help_of_removed, is::list_of<is::some<is::text>>);
    WORD_KEY(flag_style, flag_styles);
    BOUND_KEY(options_flag, is::text);
    BOUND_KEY(file_flags, is::list_of<is::some<is::word>>);
    BOUND_KEY(flag_variables, is::list_of<is::some<is::word>>);
    BOUND_KEY(environment_prefixes, is::list_of<is::some<is::word>>);
    BOUND_KEY(caches, is::list_of<is::variable>);
    BOUND_KEY(model_files, is::list_of<is::checked<is::text, wrong_with_model_files>>);
    Key ready = row<&T::ready_path>("ready", is::path);
    FREE_KEY(api, is::one_of<apis>);
    FREE_KEY(server_info, is::checked<is::path, wrong_with_server_path>);
    BOUND_KEY(reported_as, is::mapping_of<is::text>);
    FREE_KEY(between_runs, is::mapping_of<is::variables>);
    BOUND_KEY(counters, is::mapping_of<is::text>);
    BOUND_KEY(failures, is::list_of<is::keyed<keys::failure>>);
    FREE_KEY(parameters, is::mapping_of<is::keyed<keys::parameter>>, required);
    FREE_KEY(render, is::list_of<is::keyed<keys::render>>);
    BOUND_KEY(weight_cache, is::keyed<keys::weight_cache>);
    BOUND_KEY(cache_size, is::keyed<keys::cache_size>);
    FREE_KEY(devices, is::either<is::list_of<is::name>, is::mapping_of<is::conditions>>);
    FREE_KEY(roles, is::keyed<keys::roles>);
} engine{};

// A workload.

inline constexpr struct DatasetKeys : LengthKeys<> {
    using T = Dataset;
    static constexpr std::string_view called = "dataset";
    WORD_KEY(kind, dataset_kinds, required);
    FREE_KEY(path, is::file);
    BOUND_KEY(range_ratio, is::number_in<0, 1>);
    BOUND_KEY(prefix_tokens, is::integer_from<1>);
    BOUND_KEY(prefix_groups, is::integer_from<1>);
    BOUND_KEY(turns, is::integer_from<1>);
} dataset{};

inline constexpr struct LoadSearchKeys {
    static constexpr std::string_view called = "largest_rate";
    Key from = row<&LoadSearch::from>("from", is::load);
    Key to = row<&LoadSearch::to>("to", is::load);
} load_search{};

inline constexpr struct ArrivalKeys {
    using T = Arrival;
    static constexpr std::string_view called = "arrival";
    FREE_KEY(rate, is::arrival_rate);
    BOUND_KEY(speed, is::replay_speed);
    BOUND_KEY(burstiness, is::rate);
    Key concurrency = row<&T::in_flight>("concurrency", is::integer_in<1, most_concurrency>);
    Key largest_rate = row<&T::search>("largest_rate", is::keyed<keys::load_search>);
    Key largest_concurrency = row<&T::search>("largest_concurrency", is::keyed<keys::load_search>);
} arrival{};

inline constexpr struct WorkloadKeys : LengthKeys<&Workload::dataset> {
    using T = Workload;
    static constexpr std::string_view called = "workload";
    Key workload = row<&T::name>("workload", is::text);
    FREE_KEY(use, is::name_or_file);
    FREE_KEY(dataset, is::keyed<keys::dataset>);
    BOUND_KEY(requests, is::integer_from<1>);
    FREE_KEY(arrival, is::keyed<keys::arrival>);
    BOUND_KEY(seed, is::integer_from<0>);
    BOUND_KEY(ignore_eos, is::boolean);
    BOUND_KEY(weight, is::weight);
    BOUND_KEY(printed_as, is::either<is::text, is::list_of<is::text>>, ignored);
} workload{};

// A study.

inline constexpr struct MachineKeys {
    using T = StudyMachine;
    static constexpr std::string_view called = "machine";
    FREE_KEY(device, is::text, resolved | short_form);
    Key count = row<&T::devices>("count", is::integer_from<1>);
    Key price_per_hour = row<&T::usd_per_device_hour>("price_per_hour", is::positive);
} machine{};

inline constexpr struct ObjectiveKeys {
    static constexpr std::string_view called = "objective";
    FREE_KEY(maximize, is::metrics);
    FREE_KEY(minimize, is::metrics);
    FREE_KEY(limits, is::limits);
} objective{};

inline constexpr struct QualityKeys {
    using T = QualityOptions;
    static constexpr std::string_view called = "quality";
    FREE_KEY(prompts, is::file);
    BOUND_KEY(command, is::list_of<is::word>);
    BOUND_KEY(metric, is::text);
} quality{};

inline constexpr struct StagedKeys {
    using T = Staged::Options;
    static constexpr std::string_view called = "staged";
    FREE_KEY(compare_with, is::one_of<comparisons>);
    BOUND_KEY(replicates, is::integer_in<1, 1000>);
    FREE_KEY(stages,
             is::list_of<is::either<
                 is::name, is::either<is::list_of<is::name>,
                                      is::mapping_of<is::list_of<is::mapping_of<is::value>>>>>>,
             required);
} staged{};

inline constexpr struct StrategyKeys {
    static constexpr std::string_view called = "strategy";
    FREE_KEY(staged, is::keyed<keys::staged>);
} strategy{};

inline constexpr struct KnowledgeKeys : TableKeys<&KnowledgeChoice::path> {
    using T = KnowledgeChoice;
    static constexpr std::string_view called = "knowledge";
    Key study = row<&T::path>("study", is::folder_or_file);
} knowledge{};

inline constexpr struct BudgetKeys {
    using T = StudyFile;
    static constexpr std::string_view called = "budget";
    Key trials = row<&T::budget, &Budget::trials>("trials", is::integer_from<1>);
    Key wall_clock = row<&T::budget, &Budget::wall_clock_seconds>("wall_clock", is::duration);
    FREE_KEY(until, is::time_of_day);
    Key serves = row<&T::budget, &Budget::serves_seconds>("serves", is::positive_duration);
} budget{};

inline constexpr struct ReplayKeys : TableKeys<&ReplayChoice::table>,
                                     NoiseKeys<&ReplayChoice::noise_cv> {
    using T = ReplayChoice;
    static constexpr std::string_view called = "replay";
    Key unmeasured = word_row<unmeasured_words, &T::exclude_unmeasured>("unmeasured");
    Key delay = row<&T::delay_seconds>("delay", is::duration, ignored);
} replay{};

inline constexpr struct SimulateKeys : NoiseKeys<&SimulateChoice::noise, &StepNoise::run_cv> {
    using T = SimulateChoice;
    static constexpr std::string_view called = "simulate";
    Key step_noise = row<&T::noise, &StepNoise::step_cv>("step_noise", is::share);
    BOUND_KEY(traits, is::mapping_of<is::file>, resolved);
} simulate{};

inline constexpr struct AttachKeys : LoadTestKeys<AttachChoice> {
    using T = AttachChoice;
    static constexpr std::string_view called = "attach";
    Key url = row<&T::options, &AttachEvaluator::Options::url>("url", is::url,
                                                               required | resolved | short_form);
    Key served_model =
        row<&T::options, &AttachEvaluator::Options::served_model>("served_model", is::text);
} attach{};

inline constexpr struct ContainerKeys {
    static constexpr std::string_view called = "container";
    using T = ContainerOptions;
    Key image = row<&T::images>("image", is::either<is::text, is::list_of<is::text>>, required);
    BOUND_KEY(program, is::list_of<is::word>);
    BOUND_KEY(options, is::list_of<is::word>);
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
    FREE_KEY(container, is::keyed<keys::container>);
    FREE_KEY(ssh, is::settings);
    FREE_KEY(ray, is::settings);
    FREE_KEY(slurm, is::settings);
    FREE_KEY(kubernetes, is::settings);
    FREE_KEY(launcher, is::settings);
    Key gpus =
        row<&T::options, &EngineEvaluator::Options::deploy, &DeployOptions::gpus>("gpus", is::text);
    Key cores = row<&T::options, &EngineEvaluator::Options::deploy, &DeployOptions::cores>(
        "cores", is::list_of<is::core>);
    BOUND_KEY(workers, is::integer_in<1, 256>);
    Key replicas =
        word_row<copies, &T::options, &EngineEvaluator::Options::fill_devices>("replicas");
    Key weight_cache =
        word_row<on_off, &T::options, &EngineEvaluator::Options::weight_cache>("weight_cache");
    WORD_KEY(watch, on_off);
} deploy{};

inline constexpr struct CommandKeys
    : TrialKeys<&CommandChoice::options, &CommandEvaluator::Options::within_seconds>,
      EnvironmentKeys<&CommandChoice::options, &CommandEvaluator::Options::environment>,
      StopKeys<&CommandChoice::options, &CommandEvaluator::Options::stop_within_seconds> {
    using T = CommandChoice;
    static constexpr std::string_view called = "command";
    Key run =
        row<&T::words>("run", is::some<is::list_of<is::word>>, required | resolved | short_form);
} command{};

inline constexpr struct EvaluatorKeys {
    static constexpr std::string_view called = "evaluator";
    FREE_KEY(replay, is::either<is::file, is::keyed<keys::replay>>);
    FREE_KEY(simulate, is::keyed<keys::simulate>);
    FREE_KEY(attach, is::either<is::url, is::keyed<keys::attach>>);
    FREE_KEY(deploy, is::keyed<keys::deploy>);
    FREE_KEY(command, is::either<is::list_of<is::word>, is::keyed<keys::command>>);
} evaluator{};

inline constexpr struct StudyKeys : ConstraintsKeys, OthersKeys {
    using T = StudyFile;
    static constexpr std::string_view called = "study";
    FREE_KEY(study, is::text, required | resolved);
    FREE_KEY(use, is::file, resolved);
    FREE_KEY(model, is::text, required | resolved);
    FREE_KEY(hardware, is::either<is::text, is::keyed<keys::machine>>);
    FREE_KEY(engine, is::either<is::name_or_file, is::list_of<is::name_or_file>>, resolved);
    FREE_KEY(engine_versions, is::mapping_of<is::version>, resolved);
    FREE_KEY(workloads,
             is::either<is::name_or_file,
                        is::list_of<is::either<is::name_or_file, is::keyed<keys::workload>>>>,
             required | resolved);
    FREE_KEY(report_workloads, is::list_of<is::either<is::name_or_file, is::keyed<keys::workload>>>,
             resolved);
    FREE_KEY(objective, is::keyed<keys::objective>, required | resolved);
    Key never_worse_than =
        row<&T::decision, &Decision::never_worse_than>("never_worse_than", is::share);
    FREE_KEY(quality, is::keyed<keys::quality>);
    FREE_KEY(
        space,
        is::mapping_of<
            is::either<is::value, is::either<is::list_of<is::value>, is::keyed<keys::parameter>>>>,
        resolved);
    FREE_KEY(
        roles,
        is::mapping_of<is::mapping_of<
            is::either<is::value, is::either<is::list_of<is::value>, is::keyed<keys::parameter>>>>>,
        resolved);
    FREE_KEY(preset, is::name_or_file, resolved);
    FREE_KEY(arguments, is::either<is::list_of<is::word>, is::mapping_of<is::list_of<is::word>>>,
             resolved);
    FREE_KEY(strategy, is::either<is::one_of<keys::strategies>, is::keyed<keys::strategy>>);
    FREE_KEY(knowledge,
             is::list_of<is::either<is::one_of<knowledge_words>, is::keyed<keys::knowledge>>>,
             resolved);
    Key decision = word_row<decision_rules, &T::decision, &Decision::rule>("decision", resolved);
    Key min_gain = row<&T::decision, &Decision::min_gain>("min_gain", is::share, resolved);
    Key noise_cv = row<&T::decision, &Decision::noise_cv>("noise_cv", is::share, resolved);
    BOUND_KEY(default_again, is::integer_from<0>);
    BOUND_KEY(audit, is::one_of<audits>, resolved);
    WORD_KEY(stress, on_off, ignored);
    FREE_KEY(budget, is::either<is::short_budget, is::keyed<keys::budget>>, ignored);
    FREE_KEY(evaluator, is::either<is::one_of<keys::plain_evaluators>, is::keyed<keys::evaluator>>,
             required);
    BOUND_KEY(seed, is::integer_from<0>, resolved);
    BOUND_KEY(notes, is::list_of<is::text>, ignored);
    Key published = row<&T::printed>("published", is::mapping_of<is::text>, ignored);
} study{};

inline constexpr struct PresetKeys : OthersKeys {
    static constexpr std::string_view called = "preset";
    FREE_KEY(preset, is::text, required);
    FREE_KEY(doc, is::text);
    FREE_KEY(space,
             is::mapping_of<is::mapping_of<is::either<is::value, is::keyed<keys::parameter>>>>,
             required);
} preset{};

}  // namespace keys
}  // namespace servetune
