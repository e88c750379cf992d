// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every key that users may write, one table for each kind of mapping. Readers name a key as a
// member (`root.find(keys::study.model)`) and read by its type; `autotune schema` is made from the
// same rows, search_spaces/FORMAT.md is written by hand and compared with them by a test. A table
// is declared after those that it refers to. Mappings whose names are free (parameters, counters)
// have types for what stands under the names. A key of several tables stands in shared_keys.hpp.

#include "shared_keys.hpp"

namespace servetune::keys {

// Parameters and rules, of engines and of studies.

inline constexpr struct RangeKeys {
    static constexpr std::string_view called = "range";
    Key low{"low", is::number, "smallest, included", required};
    Key high{"high", is::number, "largest, included when a step lands on it", required};
    Key step{"step", is::integer, "of an int: distance of its values (1)"};
    Key scale{"scale", is::one_of<scales>,
              "log: ratios count; log2, of an int: only low, 2 low, 4 low, ..."};
} range{};

struct DomainKeys {
    Key int_{"int", is::keyed<keys::range>, "an integer range"};
    Key choice{"choice", is::list_of<is::value>,
               "one of these; `engine` among them: passing no flag is a level too"};
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
    Key real{"real", is::keyed<keys::range>, "a real interval"};
    Key text{"text", is::nothing, "any text, such as a path: fixed by a study, never searched"};
    Key ordered{"ordered", is::boolean, "of a choice: the list goes from less to more"};
    Key default_{"default", is::value,
                 "`engine`: pass no flag; a value: what the engine does by itself"};
    Key engine_default{"engine_default", is::value,
                       "what the engine uses when no flag is passed, where known"};
    Key earlier{"earlier", is::keyed<keys::earlier>, "how it is passed in earlier versions"};
    Key concept_ = row<&T::parameter, &Parameter::concept_name>(
        "concept", is::text, "the idea it shares with parameters of other engines");
    Key grows_memory = row<&T::parameter, &Parameter::grows_memory>(
        "grows_memory", is::boolean,
        "more of it never takes less of the device's memory, all else equal");
    Key values_since{"values_since", is::conditions, "values of a choice that came with a version"};
    Key values_until{"values_until", is::conditions, "values of a choice last seen in a version"};
    Key architectures = row<&T::architectures>(
        "architectures", is::mapping_of<is::architecture_list>,
        "of a choice: the chips that take a value (all); []: none, processors do");
    Key also{"also", is::keyed<keys::also>,
             "further values that a study may name, and a search of all leaves out"};
    Key same_as{"same_as", is::mapping_of<is::value>,
                "another word for a value -> that value (`engine`: as no flag)"};
    Key means = row<&T::means>("means", is::mapping_of<is::one_of<value_meanings>>,
                               "of a choice: value -> what the cost model calls it");
    Key checkpoints{"checkpoints", is::mapping_of<is::text>,
                    "in a study: value -> model to serve instead of passing the flag"};
    Key drafts{"drafts", is::mapping_of<is::text>,
               "in a study, of the method of speculation: value -> the draft model it works with"};
} parameter{};

inline constexpr struct ConstraintKeys {
    static constexpr std::string_view called = "constraint";
    Key because{"because", is::text, "why; shown when it is broken"};
    Key since{"since", is::version, "first version that has it"};
    Key until{"until", is::version, "last version that has it"};
    Key require{"require", is::expression, "must be true (or unknown)"};
    Key forbid{"forbid", is::conditions,
               "parameter -> value or values that must not come together"};
} constraint{};

struct ConstraintsKeys {
    Key constraints{"constraints", is::list_of<is::keyed<keys::constraint>>,
                    "rules that every configuration keeps", resolved};
};

// An engine.

inline constexpr struct FailureKeys : SourceKeys<&FailurePattern::source> {
    using T = FailurePattern;
    static constexpr std::string_view called = "failures";
    Key kind = row<&T::kind>("kind", is::failure_kind, "what such a trial is called", required);
    Key match =
        row<&T::match>("match", is::list_of<is::text>,
                       "the first line of the log that contains one of these decides", required);
} failure{};

inline constexpr struct RenderKeys : WhenKeys<&JsonFlag::when> {
    using T = JsonFlag;
    static constexpr std::string_view called = "render";
    Key flag = row<&T::flag>("flag", is::text, "the flag", required);
    Key json{"json", is::mapping_of<is::text>,
             "JSON key -> {parameter}, or JSON with {parameter} in it", required};
} render{};

inline constexpr struct WeightCacheKeys : WhenKeys<&WeightCacheDaemon::when>,
                                          EnvironmentKeys<&WeightCacheDaemon::environment>,
                                          ReadyWithinKeys<&WeightCacheDaemon::ready_within_seconds>,
                                          SinceKeys<&WeightCacheDaemon::since> {
    using T = WeightCacheDaemon;
    static constexpr std::string_view called = "weight_cache";
    Key launch = row<&T::launch>("launch", is::some<is::list_of<is::word>>,
                                 "the daemon's command, with {model} and {folder} for its sockets",
                                 required);
    Key parameters = row<&T::parameters>(
        "parameters", is::list_of<is::name>,
        "the daemon gets their flags too: the weights depend on them", required);
    Key arguments = row<&T::arguments>(
        "arguments", is::list_of<is::word>,
        "flags that the daemon gets too, where a study has them under `arguments`");
    Key engine = row<&T::engine>("engine", is::list_of<is::word>,
                                 "further words of the engine's command, with {folder}", required);
    Key ready =
        row<&T::ready>("ready", is::some<is::text>,
                       "in the daemon's line that says that it holds the weights", required);
    Key used = row<&T::used>("used", is::some<is::text>,
                             "in the engine's line that says that it took them", required);
} weight_cache{};

inline constexpr struct StartedByKeys {
    using T = PlatformStarts;
    static constexpr std::string_view called = "started_by";
    Key dynamo = row<&T::dynamo>("dynamo", is::list_of<is::word>,
                                 "first words of a worker of NVIDIA Dynamo, with {model}");
    Key kserve = row<&T::kserve>("kserve", is::variable,
                                 "the variable whose words KServe puts behind its command");
    Key gpustack = row<&T::gpustack>("gpustack", is::word, "GPUStack's name of the backend");
    Key ray = row<&T::ray>("ray", is::word, "`llm_engine` of Ray Serve LLM");
    Key server_flags = row<&T::server_flags>(
        "server_flags", is::list_of<is::word>,
        "flags of the engine's own HTTP server, which Dynamo and Ray replace; `*` at "
        "the end: all that begin so");
} started_by{};

inline constexpr struct RoleKeys : EnvironmentKeys<&EngineRole::environment> {
    using T = EngineRole;
    static constexpr std::string_view called = "role";
    Key arguments = row<&T::arguments>("arguments", is::list_of<is::word>,
                                       "further words of its command, with {host} and {side_port}");
} role{};

inline constexpr struct RolesKeys : SinceKeys<&EngineRoles::since>,
                                    SourceKeys<&EngineRoles::source> {
    using T = EngineRoles;
    static constexpr std::string_view called = "roles";
    Key prefill{"prefill", is::keyed<keys::role>, "what the servers have more that compute prompts",
                required};
    Key decode{"decode", is::keyed<keys::role>, "what the servers have more that make the answers",
               required};
    Key router{"router", is::list_of<is::either<is::word, is::list_of<is::word>>>,
               "its command, with {host} and {port}; a list stands for each server of a role: "
               "{prefill_url}, {prefill_side_port}",
               required};
    Key router_ready =
        row<&T::router_ready>("router_ready", is::path, "answers 200 once the router serves");
} roles{};

inline constexpr struct EngineKeys : ReadyWithinKeys<&Engine::ready_within_seconds>,
                                     ConstraintsKeys,
                                     ArchitecturesKeys<&Engine::architectures> {
    using T = Engine;
    static constexpr std::string_view called = "engine";
    Key engine = row<&T::name>("engine", is::text, "the engine's name", required);
    Key versions =
        row<&T::versions>("versions", is::text, "the versions this file was checked for");
    Key launch = row<&T::launch>("launch", is::list_of<is::word>,
                                 "the command, with {model}, {host} and {port}", required);
    Key started_as = row<&T::started_as>("started_as", is::list_of<is::some<is::list_of<is::word>>>,
                                         "other words that commands of people begin with");
    Key images =
        row<&T::images>("images", is::list_of<is::word>,
                        "container images, without registry, whose entry point is the engine");
    Key aliases = row<&T::aliases>("aliases", is::mapping_of<is::text>,
                                   "other spelling of a flag -> its parameter, or {model}");
    Key not_about_speed = row<&T::not_about_speed>("not_about_speed", is::list_of<is::word>,
                                                   "flags that change neither speed nor memory");
    Key help = row<&T::help>(
        "help", is::list_of<is::list_of<is::word>>,
        "what makes the program list its flags: tried in turn until all are there ([[--help]])");
    Key help_of_removed =
        row<&T::help_of_removed>("help_of_removed", is::list_of<is::some<is::text>>,
                                 "words of that list that mark a flag as removed");
    Key flag_style = word_row<flag_styles, &T::flag_style>(
        "flag_style", "how a flag takes its value: --flag=value or --flag value");
    Key options_flag = row<&T::options_flag>("options_flag", is::text,
                                             "the flag that takes the engine's options file");
    Key file_flags = row<&T::file_flags>("file_flags", is::list_of<is::some<is::word>>,
                                         "flags that take a file which may set any other flag");
    Key flag_variables =
        row<&T::flag_variables>("flag_variables", is::list_of<is::some<is::word>>,
                                "beginnings of environment variables that set flags");
    Key environment_prefixes = row<&T::environment_prefixes>(
        "environment_prefixes", is::list_of<is::some<is::word>>,
        "beginnings of environment variables that can change its speed: kept with each trial");
    Key caches = row<&T::caches>(
        "caches", is::list_of<is::variable>,
        "environment variables that name folders of compiled code: kept between containers");
    Key model_files = row<&T::model_files>(
        "model_files", is::list_of<is::checked<is::text, wrong_with_model_files>>,
        "FOLDER/*.ENDING of models that are files ({model} is a hub's name or a folder)");
    Key ready = row<&T::ready_path>("ready", is::path,
                                    "answers 200 once the engine serves, such as /health");
    Key api{"api", is::one_of<apis>,
            "whether answers are asked for at /v1/chat/completions or /v1/completions (chat)"};
    Key server_info{
        "server_info", is::checked<is::path, wrong_with_server_path>,
        "answers a JSON object with the values of the flags that are in force (not asked)"};
    Key reported_as = row<&T::reported_as>(
        "reported_as", is::mapping_of<is::text>,
        "flag -> its name in the answer of `server_info` (the flag with `_` for `-`)");
    Key between_runs{
        "between_runs", is::mapping_of<is::variables>,
        "path to POST to, so that no cache serves the next run -> variables that it needs"};
    Key counters = row<&T::counters>("counters", is::mapping_of<is::text>,
                                     "where its own counters are and what they are called");
    Key failures = row<&T::failures>("failures", is::list_of<is::keyed<keys::failure>>,
                                     "how the log of a dead engine is read");
    Key parameters{"parameters", is::mapping_of<is::keyed<keys::parameter>>, "name -> parameter",
                   required};
    Key render{"render", is::list_of<is::keyed<keys::render>>,
               "parameters that make one flag together"};
    Key weight_cache =
        row<&T::weight_cache>("weight_cache", is::keyed<keys::weight_cache>,
                              "a program that keeps weights in the devices' memory between starts");
    Key started_by =
        row<&T::started_by>("started_by", is::keyed<keys::started_by>,
                            "how platforms with words of their own start it, for `recommend --as`");
    Key devices{"devices", is::either<is::list_of<is::name>, is::mapping_of<is::conditions>>,
                "parameters whose product is the number of devices"};
    Key roles{"roles", is::keyed<keys::roles>, "how it runs prefill and decode apart"};
} engine{};

// A workload.

inline constexpr struct DatasetKeys : LengthKeys<> {
    using T = Dataset;
    static constexpr std::string_view called = "dataset";
    Key kind = word_row<dataset_kinds, &T::kind>("kind", "where the prompts come from", required);
    Key path{
        "path", is::file,
        "of sharegpt, trace, prompts; beside the file it stands in, else in the current folder"};
    Key range_ratio = row<&T::range_ratio>("range_ratio", is::number_in<0, 1>,
                                           "random: lengths vary uniformly by this share");
    Key prefix_tokens = row<&T::prefix_tokens>("prefix_tokens", is::integer_from<1>,
                                               "shared_prefix: length of what a group shares");
    Key prefix_groups = row<&T::prefix_groups>("prefix_groups", is::integer_from<1>,
                                               "shared_prefix: number of groups");
    Key turns =
        row<&T::turns>("turns", is::integer_from<1>, "multi_turn: requests of one conversation");
} dataset{};

inline constexpr struct RampKeys {
    static constexpr std::string_view called = "ramp";
    Key from =
        row<&Arrival::requests_per_second>("from", is::number_from<0>, "the first rate", required);
    Key to =
        row<&Arrival::to_requests_per_second>("to", is::number_from<0>, "the last rate", required);
} ramp{};

inline constexpr struct LoadSearchKeys {
    static constexpr std::string_view called = "largest_rate";
    Key from = row<&LoadSearch::from>("from", is::load, "the lowest load");
    Key to = row<&LoadSearch::to>("to", is::load, "the highest load, tried first");
} load_search{};

inline constexpr struct ArrivalKeys {
    using T = Arrival;
    static constexpr std::string_view called = "arrival";
    Key rate{"rate", is::arrival_rate,
             "requests per second; inf: all at once; timestamps: as the data set says"};
    Key speed =
        row<&T::speed>("speed", is::replay_speed, "of timestamps: times as fast as recorded (1)");
    Key burstiness =
        row<&T::burstiness>("burstiness", is::rate,
                            "of a rate or ramp: 1 is Poisson, less is burstier, inf an even pace");
    Key concurrency = row<&T::in_flight>("concurrency", is::integer_in<1, most_concurrency>,
                                         "that many requests in flight");
    Key ramp{"ramp", is::keyed<keys::ramp>, "requests per second, changing evenly in time"};
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
    Key use{"use", is::name_or_file, "start from this workload; the keys here replace its own"};
    Key dataset{"dataset", is::keyed<keys::dataset>, "where the prompts come from"};
    Key requests = row<&T::requests>("requests", is::integer_from<1>, "how many");
    Key arrival{"arrival", is::keyed<keys::arrival>, "when they are sent (all at once)"};
    Key seed = row<&T::seed>("seed", is::integer_from<0>, "of everything random in it (42)");
    Key ignore_eos = row<&T::ignore_eos>("ignore_eos", is::boolean,
                                         "every answer has exactly the tokens asked for");
    Key weight =
        row<&T::weight>("weight", is::weight, "in the combined metrics of several workloads (1)");
    Key printed_as =
        row<&T::printed_as>("printed_as", is::either<is::text, is::list_of<is::text>>,
                            "what a published document calls it, for `autotune import`", ignored);
} workload{};

// A study.

inline constexpr struct MachineKeys {
    using T = StudyMachine;
    static constexpr std::string_view called = "machine";
    Key device{"device", is::text,
               "the accelerator, such as h100-sxm, or a file with its facts (.yaml)",
               resolved | short_form};
    Key count = row<&T::devices>(
        "count", is::integer_from<1>,
        "how many of them a trial may take (those that nvidia-smi finds, else one)");
    Key price_per_hour = row<&T::usd_per_device_hour>(
        "price_per_hour", is::positive,
        "of all of them together, in US dollars: for the `usd_per_million_...` metrics");
} machine{};

inline constexpr struct ObjectiveKeys {
    static constexpr std::string_view called = "objective";
    Key maximize{"maximize", is::metrics,
                 "the more the better; the first metric leads; request_rate, concurrency, goodput: "
                 "at the most load that keeps the limits"};
    Key minimize{"minimize", is::metrics, "the less the better"};
    Key limits{"limits", is::limits, "`metric >= number` or `metric <= number`"};
    Key over{"over", is::one_of<over_words>,
             "of several workloads: weighted geometric mean, the one that gains least, or each a "
             "goal (mean)"};
} objective{};

inline constexpr struct QualityKeys {
    using T = QualityOptions;
    static constexpr std::string_view called = "quality";
    Key prompts{"prompts", is::file,
                "a prompt a line, answered greedily (24 that come with servetune)"};
    Key command =
        row<&T::command>("command", is::list_of<is::word>,
                         "instead a program that prints an accuracy, with {url} and {model}");
    Key metric = row<&T::metric>(
        "metric", is::text,
        "which of what it prints: a key, or TASK/METRIC of lm-evaluation-harness (accuracy, "
        "the first row)");
    Key within =
        row<&T::within_seconds>("within", is::positive_duration, "for that program (30min)");
} quality{};

inline constexpr struct StagedKeys {
    using T = Staged::Options;
    static constexpr std::string_view called = "staged";
    Key compare_with{"compare_with", is::one_of<comparisons>,
                     "what a stage's candidates are set on and compared with (incumbent)"};
    Key replicates =
        row<&T::replicates>("replicates", is::integer_in<1, 1000>,
                            "most measurements of one configuration to settle a comparison (3)");
    Key stages{
        "stages",
        is::list_of<is::either<is::name,
                               is::either<is::list_of<is::name>,
                                          is::mapping_of<is::list_of<is::mapping_of<is::value>>>>>>,
        "a parameter, a list of them (all combinations), or a name -> partial configurations",
        required};
} staged{};

inline constexpr struct BayesianKeys {
    using T = BayesianOptions;
    static constexpr std::string_view called = "bayesian";
    Key per =
        word_row<gain_units, &T::per_second>("per", "of what the most is to be gained (trial)");
} bayesian{};

inline constexpr struct StrategyKeys {
    static constexpr std::string_view called = "strategy";
    Key staged{"staged", is::keyed<keys::staged>, "one stage after the other"};
    Key bayesian{
        "bayesian", is::keyed<keys::bayesian>,
        "models of what was measured decide; for 10 to 60 trials of spaces too large to list"};
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
    Key until{"until", is::time_of_day, "the same as a local time, the next that comes"};
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
    Key traits{"traits", is::mapping_of<is::file>,
               "engine -> its traits, such as `autotune simulate --fit` writes (those that ship)",
               resolved};
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
    Key program = row<&T::program>("program", is::list_of<is::word>,
                                   "the client and its own options, such as [docker] ([podman])");
    Key options = row<&T::options>("options", is::list_of<is::word>, "further words of its `run`");
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
    Key container{"container", is::keyed<keys::container>, "the engine runs in a container"};
    Key ssh{"ssh", is::settings, "the engine runs on another machine"};
    Key ray{"ray", is::settings, "each engine is a job of Ray"};
    Key slurm{"slurm", is::settings, "each engine is a job of Slurm"};
    Key kubernetes{"kubernetes", is::settings, "each engine is a Job of Kubernetes"};
    Key launcher{"launcher", is::settings,
                 "a program of yours starts each engine: `program`, and settings that it knows"};
    Key gpus = row<&T::options, &EngineEvaluator::Options::deploy, &DeployOptions::gpus>(
        "gpus", is::text, "CUDA_VISIBLE_DEVICES (as it is)");
    Key cores = row<&T::options, &EngineEvaluator::Options::deploy, &DeployOptions::cores>(
        "cores", is::list_of<is::core>, "the engine runs on these cores only (any)");
    Key workers = row<&T::workers>(
        "workers", is::integer_in<1, 256>,
        "trials at once, each on an equal part of `gpus` and `cores`, or in a job of its own (1)");
    Key replicas = word_row<copies, &T::options, &EngineEvaluator::Options::fill_devices>(
        "replicas",
        "fill: as many copies of the engine as its devices allow, loaded as one server (one)");
    Key weight_cache = word_row<on_off, &T::options, &EngineEvaluator::Options::weight_cache>(
        "weight_cache", "keep the weights in the devices' memory between trials (off)");
    Key watch{"watch", is::one_of<on_off>,
              "measure again what a throttled or shared machine disturbed (on)"};
} deploy{};

inline constexpr struct CommandKeys
    : TrialKeys<&CommandChoice::options, &CommandEvaluator::Options::within_seconds>,
      EnvironmentKeys<&CommandChoice::options, &CommandEvaluator::Options::environment>,
      StopKeys<&CommandChoice::options, &CommandEvaluator::Options::stop_within_seconds> {
    static constexpr std::string_view called = "command";
    Key run{"run", is::list_of<is::word>,
            "the program, with {config}, {config_file}, {workload}, {seed}, {trial} and {folder}",
            required | resolved | short_form};
} command{};

inline constexpr struct EvaluatorKeys {
    static constexpr std::string_view called = "evaluator";
    Key replay{"replay", is::either<is::file, is::keyed<keys::replay>>,
               "answer from a table of measured configurations"};
    Key simulate{"simulate", is::keyed<keys::simulate>,
                 "answer from the cost model: predictions, nothing is measured"};
    Key attach{"attach", is::either<is::url, is::keyed<keys::attach>>,
               "load-test a server that somebody else runs: only the load can be searched"};
    Key deploy{"deploy", is::keyed<keys::deploy>,
               "start the engine here, load-test it over HTTP, end it: one start a trial"};
    Key command{
        "command", is::either<is::list_of<is::word>, is::keyed<keys::command>>,
        "a program of yours measures: it gets the configuration and prints metrics as JSON"};
} evaluator{};

inline constexpr struct StudyKeys : ConstraintsKeys, OthersKeys {
    using T = StudyFile;
    static constexpr std::string_view called = "study";
    Key study{"study", is::text, "its name, and its folder's", required | resolved};
    Key use{"use", is::file,
            "start from this study; keys here replace its own, those of `space` one by one",
            resolved};
    Key model{"model", is::text,
              "what is served: a name, a path, or a file with a model's facts (.yaml)",
              required | resolved};
    Key hardware{
        "hardware", is::either<is::text, is::keyed<keys::machine>>,
        "what it runs on: h100-sxm, a file with its facts, or {device: h100-sxm, count: 8}"};
    Key engine{"engine", is::either<is::name_or_file, is::list_of<is::name_or_file>>,
               "the engine; of several it becomes a parameter, the first is the default", resolved};
    Key engine_versions{"engine_versions", is::mapping_of<is::version>,
                        "engine -> version, which decides the flags (the newest known)", resolved};
    Key workloads{"workloads",
                  is::either<is::name_or_file,
                             is::list_of<is::either<is::name_or_file, is::keyed<keys::workload>>>>,
                  "names, files or mappings", required | resolved};
    Key report_workloads{"report_workloads",
                         is::list_of<is::either<is::name_or_file, is::keyed<keys::workload>>>,
                         "measured for the default and the recommendation only", resolved};
    Key objective{"objective", is::keyed<keys::objective>, "what for", required | resolved};
    Key never_worse_than = row<&T::decision, &Decision::never_worse_than>(
        "never_worse_than", is::share,
        "what no workload may lose against the default, in any goal");
    Key quality{"quality", is::keyed<keys::quality>,
                "of `deploy`: compares answers with the default's, as `quality_drop`"};
    Key space{
        "space",
        is::mapping_of<
            is::either<is::value, is::either<is::list_of<is::value>, is::keyed<keys::parameter>>>>,
        "parameter -> fixed value, list of values, or mapping", resolved};
    Key roles{
        "roles",
        is::mapping_of<is::mapping_of<
            is::either<is::value, is::either<is::list_of<is::value>, is::keyed<keys::parameter>>>>>,
        "prefill and decode apart are tried too: role -> its `count` of servers and parameters of "
        "its own, as under `space`",
        resolved};
    Key preset{"preset", is::name_or_file,
               "what is searched, from presets/; keys of `space` replace its own (quick, without "
               "`space` and `others`)",
               resolved};
    Key arguments{"arguments",
                  is::either<is::list_of<is::word>, is::mapping_of<is::list_of<is::word>>>,
                  "added to every command; none that the study searches", resolved};
    Key strategy{"strategy", is::either<is::one_of<keys::strategies>, is::keyed<keys::strategy>>,
                 "how to search (bayesian)"};
    Key knowledge{"knowledge",
                  is::list_of<is::either<is::one_of<knowledge_words>, is::keyed<keys::knowledge>>>,
                  "what `bayesian` knows before anything is measured (`[cost_model, recipes]`; "
                  "none if simulated, no recipes if replayed)",
                  resolved};
    Key decision = word_row<decision_rules, &T::decision, &Decision::rule>(
        "decision", "when a gain counts", resolved);
    Key min_gain = row<&T::decision, &Decision::min_gain>(
        "min_gain", is::share, "below it a flag is not worth having (1%)", resolved);
    Key noise_cv = row<&T::decision, &Decision::noise_cv>(
        "noise_cv", is::share, "run-to-run spread, assumed until measured (1%)", resolved);
    Key default_again = row<&T::default_again>(
        "default_again", is::integer_from<0>,
        "the search measures the default again after so many trials, against drift; "
        "0: never (10 if something is measured "
        "and `decision` is significant)");
    Key audit =
        row<&T::audit>("audit", is::one_of<audits>, "whether unsound results may win", resolved);
    Key budget{"budget", is::either<is::short_budget, is::keyed<keys::budget>>,
               "when to stop: `30 trials`, `45min`, both, or a mapping", ignored};
    Key evaluator{"evaluator",
                  is::either<is::one_of<keys::plain_evaluators>, is::keyed<keys::evaluator>>,
                  "who measures", required};
    Key seed =
        row<&T::seed>("seed", is::integer_from<0>, "of everything random in it (0)", resolved);
    Key notes =
        row<&T::notes>("notes", is::list_of<is::text>, "printed at the end of the report", ignored);
    Key on_done = row<&T::on_done>(
        "on_done", is::list_of<is::word>,
        "a program that is run when a run has ended by itself with something new, with {study}, "
        "{outcome} (recommended, "
        "keep_default, inconclusive, nothing_passes, error), {verdict}, {reason} and {report}",
        ignored);
    Key published = row<&T::printed>(
        "published", is::mapping_of<is::text>,
        "stage -> the gain that a published document printed, shown beside ours", ignored);
} study{};

inline constexpr struct PresetKeys : OthersKeys {
    static constexpr std::string_view called = "preset";
    Key preset{"preset", is::text, "its name", required};
    Key doc{"doc", is::text, "for people: what it searches, what it leaves out"};
    Key space{"space",
              is::mapping_of<is::mapping_of<is::either<is::value, is::keyed<keys::parameter>>>>,
              "engine -> entries as under a study's `space`", required};
} preset{};

}  // namespace servetune::keys
