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

inline constexpr struct EarlierKeys : UntilKeys, DestinationKeys {
    static constexpr std::string_view called = "earlier";
} earlier{};

inline constexpr struct AlsoKeys : DomainKeys, SinceKeys {
    static constexpr std::string_view called = "also";
} also{};

inline constexpr struct ParameterKeys : DomainKeys,
                                        WhenKeys,
                                        DestinationKeys,
                                        DocKeys,
                                        SourceKeys,
                                        SinceKeys,
                                        UntilKeys {
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
    Key concept_{"concept", is::text, "the idea it shares with parameters of other engines"};
    Key grows_memory{"grows_memory", is::boolean,
                     "more of it never takes less of the device's memory, all else equal"};
    Key values_since{"values_since", is::conditions, "values of a choice that came with a version"};
    Key values_until{"values_until", is::conditions, "values of a choice last seen in a version"};
    Key architectures{"architectures", is::mapping_of<is::architecture_list>,
                      "of a choice: the chips that take a value (all); []: none, processors do"};
    Key also{"also", is::keyed<keys::also>,
             "further values that a study may name, and a search of all leaves out"};
    Key same_as{"same_as", is::mapping_of<is::value>,
                "another word for a value -> that value (`engine`: as no flag)"};
    Key means{"means", is::mapping_of<is::one_of<value_meanings>>,
              "of a choice: value -> what the cost model calls it"};
    Key checkpoints{"checkpoints", is::mapping_of<is::text>,
                    "in a study: value -> model to serve instead of passing the flag"};
    Key drafts{"drafts", is::mapping_of<is::text>,
               "in a study, of the method of speculation: value -> the draft model it works with"};
} parameter{};

inline constexpr struct ConstraintKeys : BecauseKeys, SinceKeys, UntilKeys {
    static constexpr std::string_view called = "constraint";
    Key require{"require", is::expression, "must be true (or unknown)"};
    Key forbid{"forbid", is::conditions,
               "parameter -> value or values that must not come together"};
} constraint{};

struct ConstraintsKeys {
    Key constraints{"constraints", is::list_of<is::keyed<keys::constraint>>,
                    "rules that every configuration keeps"};
};

// An engine.

inline constexpr struct FailureKeys : SourceKeys {
    static constexpr std::string_view called = "failures";
    Key kind{"kind", is::failure_kind, "what such a trial is called", required};
    Key match{"match", is::list_of<is::text>,
              "the first line of the log that contains one of these decides", required};
} failure{};

inline constexpr struct RenderKeys : WhenKeys {
    static constexpr std::string_view called = "render";
    Key flag{"flag", is::text, "the flag", required};
    Key json{"json", is::mapping_of<is::text>,
             "JSON key -> {parameter}, or JSON with {parameter} in it", required};
} render{};

inline constexpr struct WeightCacheKeys : WhenKeys, EnvironmentKeys, ReadyWithinKeys, SinceKeys {
    static constexpr std::string_view called = "weight_cache";
    Key launch{"launch", is::list_of<is::word>,
               "the daemon's command, with {model} and {folder} for its sockets", required};
    Key parameters{"parameters", is::list_of<is::name>,
                   "the daemon gets their flags too: the weights depend on them", required};
    Key arguments{"arguments", is::list_of<is::word>,
                  "flags that the daemon gets too, where a study has them under `arguments`"};
    Key engine{"engine", is::list_of<is::word>,
               "further words of the engine's command, with {folder}", required};
    Key ready{"ready", is::text, "in the daemon's line that says that it holds the weights",
              required};
    Key used{"used", is::text, "in the engine's line that says that it took them", required};
} weight_cache{};

inline constexpr struct StartedByKeys {
    static constexpr std::string_view called = "started_by";
    Key dynamo{"dynamo", is::list_of<is::word>,
               "first words of a worker of NVIDIA Dynamo, with {model}"};
    Key kserve{"kserve", is::variable, "the variable whose words KServe puts behind its command"};
    Key gpustack{"gpustack", is::word, "GPUStack's name of the backend"};
    Key ray{"ray", is::word, "`llm_engine` of Ray Serve LLM"};
    Key server_flags{"server_flags", is::list_of<is::word>,
                     "flags of the engine's own HTTP server, which Dynamo and Ray replace; `*` at "
                     "the end: all that begin so"};
} started_by{};

inline constexpr struct RoleKeys : EnvironmentKeys {
    static constexpr std::string_view called = "role";
    Key arguments{"arguments", is::list_of<is::word>,
                  "further words of its command, with {host} and {side_port}"};
} role{};

inline constexpr struct RolesKeys : SinceKeys, SourceKeys {
    static constexpr std::string_view called = "roles";
    Key prefill{"prefill", is::keyed<keys::role>, "what the servers have more that compute prompts",
                required};
    Key decode{"decode", is::keyed<keys::role>, "what the servers have more that make the answers",
               required};
    Key router{"router", is::list_of<is::either<is::word, is::list_of<is::word>>>,
               "its command, with {host} and {port}; a list stands for each server of a role: "
               "{prefill_url}, {prefill_side_port}",
               required};
    Key router_ready{"router_ready", is::path, "answers 200 once the router serves"};
} roles{};

inline constexpr struct EngineKeys : ReadyWithinKeys, ConstraintsKeys, ArchitecturesKeys {
    static constexpr std::string_view called = "engine";
    Key engine{"engine", is::text, "the engine's name", required};
    Key versions{"versions", is::text, "the versions this file was checked for"};
    Key launch{"launch", is::list_of<is::word>, "the command, with {model}, {host} and {port}",
               required};
    Key started_as{"started_as", is::list_of<is::list_of<is::word>>,
                   "other words that commands of people begin with"};
    Key images{"images", is::list_of<is::word>,
               "container images, without registry, whose entry point is the engine"};
    Key aliases{"aliases", is::mapping_of<is::text>,
                "other spelling of a flag -> its parameter, or {model}"};
    Key not_about_speed{"not_about_speed", is::list_of<is::word>,
                        "flags that change neither speed nor memory"};
    Key help{
        "help", is::list_of<is::list_of<is::word>>,
        "what makes the program list its flags: tried in turn until all are there ([[--help]])"};
    Key help_of_removed{"help_of_removed", is::list_of<is::text>,
                        "words of that list that mark a flag as removed"};
    Key flag_style{"flag_style", is::one_of<flag_styles>,
                   "how a flag takes its value: --flag=value or --flag value"};
    Key options_flag{"options_flag", is::text, "the flag that takes the engine's options file"};
    Key file_flags{"file_flags", is::list_of<is::word>,
                   "flags that take a file which may set any other flag"};
    Key flag_variables{"flag_variables", is::list_of<is::word>,
                       "beginnings of environment variables that set flags"};
    Key environment_prefixes{
        "environment_prefixes", is::list_of<is::word>,
        "beginnings of environment variables that can change its speed: kept with each trial"};
    Key caches{"caches", is::list_of<is::variable>,
               "environment variables that name folders of compiled code: kept between containers"};
    Key model_files{
        "model_files", is::list_of<is::text>,
        "FOLDER/*.ENDING of models that are files ({model} is a hub's name or a folder)"};
    Key ready{"ready", is::path, "answers 200 once the engine serves, such as /health"};
    Key api{"api", is::one_of<apis>,
            "whether answers are asked for at /v1/chat/completions or /v1/completions (chat)"};
    Key server_info{
        "server_info", is::path,
        "answers a JSON object with the values of the flags that are in force (not asked)"};
    Key reported_as{"reported_as", is::mapping_of<is::text>,
                    "flag -> its name in the answer of `server_info` (the flag with `_` for `-`)"};
    Key between_runs{
        "between_runs", is::mapping_of<is::variables>,
        "path to POST to, so that no cache serves the next run -> variables that it needs"};
    Key counters{"counters", is::mapping_of<is::text>,
                 "where its own counters are and what they are called"};
    Key failures{"failures", is::list_of<is::keyed<keys::failure>>,
                 "how the log of a dead engine is read"};
    Key parameters{"parameters", is::mapping_of<is::keyed<keys::parameter>>, "name -> parameter",
                   required};
    Key render{"render", is::list_of<is::keyed<keys::render>>,
               "parameters that make one flag together"};
    Key weight_cache{"weight_cache", is::keyed<keys::weight_cache>,
                     "a program that keeps weights in the devices' memory between starts"};
    Key started_by{"started_by", is::keyed<keys::started_by>,
                   "how platforms with words of their own start it, for `recommend --as`"};
    Key devices{"devices", is::either<is::list_of<is::name>, is::mapping_of<is::conditions>>,
                "parameters whose product is the number of devices"};
    Key roles{"roles", is::keyed<keys::roles>, "how it runs prefill and decode apart"};
} engine{};

// A workload.

inline constexpr struct DatasetKeys : LengthKeys {
    static constexpr std::string_view called = "dataset";
    Key kind{"kind", is::one_of<dataset_kinds>, "where the prompts come from", required};
    Key path{
        "path", is::file,
        "of sharegpt, trace, prompts; beside the file it stands in, else in the current folder"};
    Key range_ratio{"range_ratio", is::number_in<0, 1>,
                    "random: lengths vary uniformly by this share"};
    Key prefix_tokens{"prefix_tokens", is::integer_from<1>,
                      "shared_prefix: length of what a group shares"};
    Key prefix_groups{"prefix_groups", is::integer_from<1>, "shared_prefix: number of groups"};
    Key turns{"turns", is::integer_from<1>, "multi_turn: requests of one conversation"};
} dataset{};

inline constexpr struct RampKeys : LoadRangeKeys {
    static constexpr std::string_view called = "ramp";
} ramp{};

inline constexpr struct LoadSearchKeys : LoadRangeKeys {
    static constexpr std::string_view called = "largest_rate";
} load_search{};

inline constexpr struct ArrivalKeys {
    static constexpr std::string_view called = "arrival";
    Key rate{"rate", is::arrival_rate,
             "requests per second; inf: all at once; timestamps: as the data set says"};
    Key speed{"speed", is::positive, "of timestamps: times as fast as recorded, 0.001 to 1000 (1)"};
    Key burstiness{"burstiness", is::rate,
                   "of a rate or ramp: 1 is Poisson, less is burstier, inf an even pace"};
    Key concurrency{"concurrency", is::integer_in<1, most_concurrency>,
                    "that many requests in flight"};
    Key ramp{"ramp", is::keyed<keys::ramp>, "requests per second, changing evenly in time"};
    Key largest_rate{"largest_rate", is::keyed<keys::load_search>,
                     "the most requests per second that keep the limits of the objective, found "
                     "for each configuration"};
    Key largest_concurrency{"largest_concurrency", is::keyed<keys::load_search>,
                            "the same of requests in flight"};
} arrival{};

inline constexpr struct WorkloadKeys : LengthKeys, SeedKeys {
    static constexpr std::string_view called = "workload";
    Key workload{"workload", is::text, "its name"};
    Key use{"use", is::name_or_file, "start from this workload; the keys here replace its own"};
    Key dataset{"dataset", is::keyed<keys::dataset>, "where the prompts come from"};
    Key requests{"requests", is::integer_from<1>, "how many"};
    Key arrival{"arrival", is::keyed<keys::arrival>, "when they are sent (all at once)"};
    Key ignore_eos{"ignore_eos", is::boolean, "every answer has exactly the tokens asked for"};
    Key weight{"weight", is::weight, "in the combined metrics of several workloads (1)"};
    Key printed_as{"printed_as", is::either<is::text, is::list_of<is::text>>,
                   "what a published document calls it, for `autotune import`"};
} workload{};

// A study.

inline constexpr struct MachineKeys {
    static constexpr std::string_view called = "machine";
    Key device{"device", is::text,
               "the accelerator, such as h100-sxm, or a file with its facts (.yaml)"};
    Key count{"count", is::integer_from<1>,
              "how many of them a trial may take (those that nvidia-smi finds, else one)"};
    Key price_per_hour{
        "price_per_hour", is::positive,
        "of all of them together, in US dollars: for the `usd_per_million_...` metrics"};
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
    static constexpr std::string_view called = "quality";
    Key prompts{"prompts", is::file,
                "a prompt a line, answered greedily (24 that come with servetune)"};
    Key command{"command", is::list_of<is::word>,
                "instead a program that prints an accuracy, with {url} and {model}"};
    Key metric{"metric", is::text,
               "which of what it prints: a key, or TASK/METRIC of lm-evaluation-harness (accuracy, "
               "the first row)"};
    Key within{"within", is::positive_duration, "for that program (30min)"};
} quality{};

inline constexpr struct StagedKeys {
    static constexpr std::string_view called = "staged";
    Key compare_with{"compare_with", is::one_of<comparisons>,
                     "what a stage's candidates are set on and compared with (incumbent)"};
    Key replicates{"replicates", is::integer_in<1, 1000>,
                   "most measurements of one configuration to settle a comparison (3)"};
    Key stages{
        "stages",
        is::list_of<is::either<is::name,
                               is::either<is::list_of<is::name>,
                                          is::mapping_of<is::list_of<is::mapping_of<is::value>>>>>>,
        "a parameter, a list of them (all combinations), or a name -> partial configurations",
        required};
} staged{};

inline constexpr struct BayesianKeys {
    static constexpr std::string_view called = "bayesian";
    Key per{"per", is::one_of<gain_units>, "of what the most is to be gained (trial)"};
} bayesian{};

inline constexpr struct StrategyKeys {
    static constexpr std::string_view called = "strategy";
    Key staged{"staged", is::keyed<keys::staged>, "one stage after the other"};
    Key bayesian{
        "bayesian", is::keyed<keys::bayesian>,
        "models of what was measured decide; for 10 to 60 trials of spaces too large to list"};
} strategy{};

inline constexpr struct KnowledgeKeys : TableKeys {
    static constexpr std::string_view called = "knowledge";
    Key study{
        "study", is::folder_or_file,
        "what an earlier study of the same metric has measured: its folder, or the journal in it"};
} knowledge{};

inline constexpr struct BudgetKeys {
    static constexpr std::string_view called = "budget";
    Key trials{"trials", is::integer_from<1>, "told trials of search and confirmation (30)"};
    Key wall_clock{
        "wall_clock", is::duration,
        "of one run: a trial that still runs then is ended, and the next run repeats it"};
    Key until{"until", is::time_of_day, "the same as a local time, the next that comes"};
    Key serves{"serves", is::positive_duration,
               "how long the result will serve: the search also ends once a further trial takes "
               "more time than it is expected to gain"};
} budget{};

inline constexpr struct ReplayKeys : TableKeys, NoiseKeys {
    static constexpr std::string_view called = "replay";
    Key unmeasured{
        "unmeasured", is::one_of<unmeasured_words>,
        "a configuration without a row is a failed trial, or not part of the space (fail)"};
    Key delay{"delay", is::duration, "how long an answer takes, to watch a run (0s)"};
} replay{};

inline constexpr struct SimulateKeys : NoiseKeys {
    static constexpr std::string_view called = "simulate";
    Key step_noise{"step_noise", is::share, "how much steps differ within a run (0)"};
    Key traits{"traits", is::mapping_of<is::file>,
               "engine -> its traits, such as `autotune simulate --fit` writes (those that ship)"};
} simulate{};

inline constexpr struct AttachKeys : TrialKeys, LoadTestKeys {
    static constexpr std::string_view called = "attach";
    Key url{
        "url", is::url,
        "of the server, such as http://127.0.0.1:8000; a user and password in it are never shown",
        required};
    Key served_model{"served_model", is::text, "the name that clients ask for (the study's model)"};
} attach{};

inline constexpr struct ContainerKeys : ProgramKeys, OptionsKeys {
    static constexpr std::string_view called = "container";
    Key image{
        "image", is::either<is::text, is::list_of<is::text>>,
        "its name, with a tag or digest; of several it becomes the parameter `container.image`",
        required};
} container{};

inline constexpr struct SshKeys : ProgramKeys {
    static constexpr std::string_view called = "ssh";
    Key host{"host", is::text, "the other machine: a name, user@name, or a Host of ssh_config",
             required};
    Key address{
        "address", is::text,
        "where the engine listens and gets its requests (its loopback, through the connection)"};
} ssh{};

inline constexpr struct RayKeys {
    static constexpr std::string_view called = "ray";
    Key address{"address", is::url, "of the dashboard, such as http://head:8265", required};
    Key token_file{"token_file", is::file, "the token of Ray's authentication is in it"};
    Key token_env{"token_env", is::variable, "or in this environment variable (none is sent)"};
    Key ports{"ports", is::text,
              "engines listen on a port of this range, each on another (18000-18999)"};
    Key bound{"bound", is::positive_duration,
              "each engine ends so long after its start, whatever happens to Ray (6h)"};
    Key resources{"resources", is::mapping_of<is::positive>,
                  "what each job asks for beside its GPUs: CPU, memory in bytes, or a resource of "
                  "the cluster"};
} ray{};

inline constexpr struct SlurmKeys : OptionsKeys {
    static constexpr std::string_view called = "slurm";
    Key listen{"listen", is::text,
               "the address of a node that the engine listens on: 0.0.0.0 for all of them",
               required};
    Key gres{"gres", is::text,
             "the name of the devices, such as gpu:h100; \"\": none are asked for (gpu)"};
} slurm{};

inline constexpr struct KubernetesKeys : ProgramKeys {
    static constexpr std::string_view called = "kubernetes";
    Key template_{"template", is::file,
                  "the pod that trials are made of: YAML or JSON of a Pod or PodTemplate",
                  required};
    Key namespace_{"namespace", is::text, "where the jobs are made (the context's)"};
    Key context{"context", is::text,
                "of the kubeconfig (its current one; inside a pod, the pod's account)"};
    Key reach{"reach", is::one_of<kubernetes_reaches>,
              "how requests get to the engine: to the pod's address, by port-forward, or to its "
              "node (inside a cluster pod, else forward)"};
    Key images{
        "images", is::either<is::text, is::list_of<is::text>>,
        "in place of the template's image; of several it becomes the parameter `container.image`"};
    Key devices{
        "devices", is::text,
        "the resource that a layout's devices are asked for as; \"\": none are (nvidia.com/gpu)"};
} kubernetes{};

inline constexpr struct DeployKeys : TrialKeys, LoadTestKeys, ProcessKeys, ReadyWithinKeys {
    static constexpr std::string_view called = "deploy";
    Key container{"container", is::keyed<keys::container>, "the engine runs in a container"};
    Key ssh{"ssh", is::keyed<keys::ssh>, "the engine runs on another machine"};
    Key ray{"ray", is::keyed<keys::ray>, "each engine is a job of Ray"};
    Key slurm{"slurm", is::keyed<keys::slurm>, "each engine is a job of Slurm"};
    Key kubernetes{"kubernetes", is::keyed<keys::kubernetes>, "each engine is a Job of Kubernetes"};
    Key gpus{"gpus", is::text, "CUDA_VISIBLE_DEVICES (as it is)"};
    Key cores{"cores", is::list_of<is::core>, "the engine runs on these cores only (any)"};
    Key workers{
        "workers", is::integer_in<1, 256>,
        "trials at once, each on an equal part of `gpus` and `cores`, or in a job of its own (1)"};
    Key replicas{
        "replicas", is::one_of<copies>,
        "fill: as many copies of the engine as its devices allow, loaded as one server (one)"};
    Key weight_cache{"weight_cache", is::one_of<on_off>,
                     "keep the weights in the devices' memory between trials (off)"};
    Key watch{"watch", is::one_of<on_off>,
              "measure again what a throttled or shared machine disturbed (on)"};
} deploy{};

inline constexpr struct CommandKeys : TrialKeys, ProcessKeys {
    static constexpr std::string_view called = "command";
    Key run{"run", is::list_of<is::word>,
            "the program, with {config}, {config_file}, {workload}, {seed}, {trial} and {folder}",
            required};
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

inline constexpr struct StudyKeys : ConstraintsKeys, OthersKeys, SeedKeys {
    static constexpr std::string_view called = "study";
    Key study{"study", is::text, "its name, and its folder's", required};
    Key use{"use", is::file,
            "start from this study; keys here replace its own, those of `space` one by one"};
    Key model{"model", is::text,
              "what is served: a name, a path, or a file with a model's facts (.yaml)", required};
    Key hardware{
        "hardware", is::either<is::text, is::keyed<keys::machine>>,
        "what it runs on: h100-sxm, a file with its facts, or {device: h100-sxm, count: 8}"};
    Key engine{"engine", is::either<is::name_or_file, is::list_of<is::name_or_file>>,
               "the engine; of several it becomes a parameter, the first is the default"};
    Key engine_versions{"engine_versions", is::mapping_of<is::version>,
                        "engine -> version, which decides the flags (the newest known)"};
    Key workloads{"workloads",
                  is::either<is::name_or_file,
                             is::list_of<is::either<is::name_or_file, is::keyed<keys::workload>>>>,
                  "names, files or mappings", required};
    Key report_workloads{"report_workloads",
                         is::list_of<is::either<is::name_or_file, is::keyed<keys::workload>>>,
                         "measured for the default and the recommendation only"};
    Key objective{"objective", is::keyed<keys::objective>, "what for", required};
    Key never_worse_than{"never_worse_than", is::share,
                         "what no workload may lose against the default, in any goal"};
    Key quality{"quality", is::keyed<keys::quality>,
                "of `deploy`: compares answers with the default's, as `quality_drop`"};
    Key space{
        "space",
        is::mapping_of<
            is::either<is::value, is::either<is::list_of<is::value>, is::keyed<keys::parameter>>>>,
        "parameter -> fixed value, list of values, or mapping"};
    Key roles{
        "roles",
        is::mapping_of<is::mapping_of<
            is::either<is::value, is::either<is::list_of<is::value>, is::keyed<keys::parameter>>>>>,
        "prefill and decode apart are tried too: role -> its `count` of servers and parameters of "
        "its own, as under `space`"};
    Key preset{"preset", is::name_or_file,
               "what is searched, from presets/; keys of `space` replace its own (quick, without "
               "`space` and `others`)"};
    Key arguments{"arguments",
                  is::either<is::list_of<is::word>, is::mapping_of<is::list_of<is::word>>>,
                  "added to every command; none that the study searches"};
    Key strategy{"strategy", is::either<is::one_of<keys::strategies>, is::keyed<keys::strategy>>,
                 "how to search (bayesian)"};
    Key knowledge{"knowledge",
                  is::list_of<is::either<is::one_of<knowledge_words>, is::keyed<keys::knowledge>>>,
                  "what `bayesian` knows before anything is measured (`[cost_model, recipes]`; "
                  "none if simulated, no recipes if replayed)"};
    Key decision{"decision", is::one_of<decision_rules>, "when a gain counts"};
    Key min_gain{"min_gain", is::share, "below it a flag is not worth having (1%)"};
    Key noise_cv{"noise_cv", is::share, "run-to-run spread, assumed until measured (1%)"};
    Key default_again{"default_again", is::integer_from<0>,
                      "the search measures the default again after so many trials, against drift; "
                      "0: never (10 if something is measured "
                      "and `decision` is significant)"};
    Key audit{"audit", is::one_of<audits>, "whether unsound results may win"};
    Key budget{"budget", is::either<is::short_budget, is::keyed<keys::budget>>,
               "when to stop: `30 trials`, `45min`, both, or a mapping"};
    Key evaluator{"evaluator",
                  is::either<is::one_of<keys::plain_evaluators>, is::keyed<keys::evaluator>>,
                  "who measures", required};
    Key notes{"notes", is::list_of<is::text>, "printed at the end of the report"};
    Key on_done{
        "on_done", is::list_of<is::word>,
        "a program that is run when a run has ended by itself with something new, with {study}, "
        "{outcome} (recommended, "
        "keep_default, inconclusive, nothing_passes, error), {verdict}, {reason} and {report}"};
    Key published{"published", is::mapping_of<is::text>,
                  "stage -> the gain that a published document printed, shown beside ours"};
} study{};

inline constexpr struct PresetKeys : OthersKeys, DocKeys {
    static constexpr std::string_view called = "preset";
    Key preset{"preset", is::text, "its name", required};
    Key space{"space",
              is::mapping_of<is::mapping_of<is::either<is::value, is::keyed<keys::parameter>>>>,
              "engine -> entries as under a study's `space`", required};
} preset{};

}  // namespace servetune::keys
