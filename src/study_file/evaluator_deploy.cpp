// SPDX-License-Identifier: Apache-2.0
// `evaluator: {deploy: ...}`: the engine is started here for each trial, and load-tested.
#include "deploy/trial_folders.hpp"
#include "engine/launcher.hpp"
#include "evaluator_type.hpp"
#include "host/environment.hpp"
#include "host/nvidia_smi.hpp"
#include "keys.hpp"
#include "readers.hpp"
#include "secrets.hpp"
#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/sqlite_journal.hpp"
#include "yaml_text.hpp"

#include <fmt/format.h>

namespace servetune {
namespace {

const DeployChoice& choice_of(const StudyFile& file) {
    return std::get<DeployChoice>(file.measuring);
}

/// What containers are started by, but for the models, which the rest of the file says.
std::optional<ContainerOptions> read_container(const Yaml& node) {
    const Yaml* at = node.find(keys::deploy.container);
    if (at == nullptr) return std::nullopt;
    ContainerOptions options;
    read_table(*at, keys::container, options);
    const bool podman =
        any_of(options.program, [](const std::string& word) { return word.ends_with("podman"); });
    options.kind =
        podman || options.program.empty() ? ContainerKind::podman : ContainerKind::docker;
    if (const std::string why = options.why_invalid(); !why.empty()) at->fail(why);
    for (const std::string& word : options.options)
        if (word.starts_with("--env") || (word.starts_with('-') && word.substr(1).starts_with('e')))
            at->at(keys::container.options)
                .fail("'" + word + "': variables stand under `environment` of `deploy`");
    return options;
}

/// Those that the study lists, not those that this process sees.
std::vector<std::string> names_of_gpus(const std::string& gpus) {
    return gpus.empty() ? std::vector<std::string>{}
                        : named_gpus(gpus).value_or(std::vector<std::string>{});
}

/// What a launcher is told of a setting: `KEY VALUE`, a line for each of several. A file of data
/// comes along.
void add_setting(const std::string& key, const Yaml& node, WrappedOptions& options) {
    if (node.is_sequence())
        for (const Yaml& item : node.items())
            options.lines.emplace_back("set", key + " " + item.text());
    else if (node.is_mapping())
        for (const auto& [name, item] : node.entries())
            options.lines.emplace_back("set", key + "." + name + " " + item.text());
    else options.lines.emplace_back("set", key + " " + node.text());
    const std::string text = node.is_scalar() ? node.text() : "";
    if (text.ends_with(".yaml") || text.ends_with(".yml") || text.ends_with(".json"))
        options.lines.emplace_back(
            "data", key + " " + json_text_of(Yaml::load(path_of(node), node.snapshot())));
}

/// Variables that are secrets by name or value: not every launcher can keep them.
void add_variables(const Yaml& deploy, WrappedOptions& options) {
    const Yaml* environment = deploy.find(keys::deploy.environment);
    if (environment == nullptr) return;
    const Redactor known = secrets_of_environment();
    for (const auto& [name, value] : environment->entries()) {
        options.lines.emplace_back("variable", name);
        if (value.is_scalar() && !value.text().empty() &&
            (names_secret(name) || known(value.text()) != value.text()))
            options.lines.emplace_back("secret", name);
    }
}

/// The launcher that ships under this name, or the user's own program.
std::vector<std::string> program_of_launcher(const Yaml& node, const std::string& name) {
    if (name != keys::deploy.launcher.name)
        return {
            (shipped_folder("launchers", "launcher.py", "SERVETUNE_LAUNCHERS") / name).string()};
    const Yaml* program = node.entry(std::string_view("program"));
    if (program == nullptr) node.fail("`program` wanted: the program that starts engines");
    const std::vector<Yaml> words = program->items_or_one();
    std::vector<std::string> result;
    for (const Yaml& word : words) result.push_back(word.text());
    if (result.empty() || result.front().empty()) program->fail("a program wanted");
    if (contains(result.front(), '/'))
        result.front() = (std::filesystem::path(words.front().file()).parent_path() /
                          text_with_home(words.front()))
                             .string();
    return result;
}

std::optional<WrappedOptions> read_wrapped(const Yaml& deploy, const DeployChoice& choice) {
    std::optional<WrappedOptions> result;
    for (const Key& key : {keys::deploy.ssh, keys::deploy.slurm, keys::deploy.kubernetes,
                           keys::deploy.ray, keys::deploy.launcher}) {
        const Yaml* at = deploy.find(key);
        if (at == nullptr) continue;
        if (result || choice.container)
            at->fail("an engine is started in one way: `" +
                     (result ? result->name : std::string(keys::deploy.container.name)) +
                     "` stands here too");
        result.emplace().name = key.name;
        result->program = program_of_launcher(*at, result->name);
        for (const auto& [name, node] : at->entries()) {
            if (name.find_first_of(" .\n") != std::string::npos)
                node.fail("a setting's name has no blank and no dot");
            if (key.name != keys::deploy.launcher.name || name != "program")
                add_setting(name, node, *result);
        }
        result->lines.emplace_back("beside",
                                   std::filesystem::absolute(deploy.file()).parent_path());
        result->lines.emplace_back("workers", std::to_string(choice.workers));
        for (const Key& listed : {keys::deploy.gpus, keys::deploy.cores})
            if (deploy.find(listed) != nullptr)
                result->lines.emplace_back("listed", std::string(listed.name));
        add_variables(deploy, *result);
    }
    return result;
}

/// Devices are counted by their names, so each must be one. A variable may also hide all devices.
void check_devices(const Yaml& node, const DeployOptions& deploy) {
    const auto check = [&](const Key& key, const std::string& list) {
        if (const std::string wrong = list.empty() ? "" : wrong_with_gpu_list(list); !wrong.empty())
            node.at(key).fail(wrong);
    };
    check(keys::deploy.gpus, deploy.gpus);
    const auto* variable = entry_in(deploy.environment, "CUDA_VISIBLE_DEVICES");
    if (variable != nullptr && *variable != "-1") check(keys::deploy.environment, *variable);
}

/// Several trials at once need something to give out.
void check_parts(const Yaml& node, const DeployChoice& choice) {
    if (choice.workers > 1 && choice.in_jobs() &&
        choice.options.fill_devices)  // each could hold what the others wait for
        node.at(keys::deploy.replicas)
            .fail(
                "several jobs for each of several trials could wait for each other for ever: give "
                "`workers: 1`");
    if (choice.workers < 2 || choice.in_jobs()) return;
    const DeployOptions& deploy = choice.options.deploy;
    const std::string wanted = std::to_string(choice.workers) + " trials at once";
    if (deploy.gpus.empty() && deploy.cores.empty())
        node.at(keys::deploy.workers)
            .fail(wanted +
                  " need parts of the machine of their own: list its devices under `gpus`, or "
                  "cores under `cores`");
    for (const auto& [what, count] : {std::pair("gpus", names_of_gpus(deploy.gpus).size()),
                                      std::pair("cores", deploy.cores.size())})
        if (count % choice.workers != 0)
            node.at(keys::deploy.workers)
                .fail(wanted + " cannot share " + std::to_string(count) + " " + what +
                      " in equal parts");
}

/// The part of worker `number` of all: neighbours in the lists stay together.
template <class T>
std::vector<T> part_of(const std::vector<T>& all, std::size_t number, std::size_t workers) {
    const std::size_t size = all.size() / workers;
    const auto from = all.begin() + std::ptrdiff_t(number * size);
    return {from, from + std::ptrdiff_t(size)};
}

bool touches_answers(const Parameter& parameter) {
    constexpr std::array<std::string_view, 6> concepts{"quantization",      "weight_dtype",
                                                       "kv_cache_dtype",    "value_cache_dtype",
                                                       "state_cache_dtype", "draft_model"};
    return contains(concepts, parameter.concept_name) ||
           parameter.concept_name.starts_with("speculative_");
}

/// `all`: any parameter may touch answers, and few are asked, as under stress.
QualityOptions quality_options(const StudyFile& file, const Problem& problem,
                               const std::filesystem::path& answers, bool all) {
    QualityOptions options = all ? QualityOptions{.most_prompts = 10} : *file.quality;
    const Configuration usual = problem.space.default_configuration();
    for (const Parameter& parameter : problem.space.parameters()) {
        if (!all && !touches_answers(parameter) && parameter.name != "engine" &&
            parameter.name != image_parameter)
            continue;  // another engine answers otherwise
        auto& of_default = options.defaults[parameter.name];
        if (const Value* value = usual.find(parameter.name)) of_default = *value;
    }
    options.baseline = file.composition->render(usual, {file.model, "127.0.0.1", 0}).text();
    if (!all) options.limits = file.objective.limits;
    options.file = answers;
    return options;
}

/// Models that are paths are mounted where they are.
std::shared_ptr<const Launcher> launcher_with_models(ContainerOptions options,
                                                     const StudyFile& file) {
    std::vector<std::string> models = file.composition->further_models();
    models.push_back(file.model);
    for (const std::string& model : models)
        if (model.starts_with('/')) options.models.push_back(model);
    return container_launcher(std::move(options));
}

/// Whether flags decide how many devices an engine takes.
bool flags_take_devices(const StudyFile& file) {
    const std::vector<Engine>& engines = file.composition->engines();
    return any_of(engines, [](const Engine& engine) { return !engine.devices.empty(); });
}

/// Its settings are looked at where the study runs, not where it is only read.
std::shared_ptr<const Launcher> launcher_of_study(WrappedOptions options, const StudyFile& file) {
    // Where flags do not decide it, an engine gets all that the study knows of.
    options.lines.emplace_back(
        "most_devices",
        std::to_string(file.machine.devices.value_or(flags_take_devices(file) ? 1 : 0)));
    auto result = wrapped_launcher(std::move(options));
    if (!file.kept.empty()) return result;
    try {
        if (const std::string wrong = result->wrong_settings(); !wrong.empty())
            throw UsageError(file.source.at() + wrong);
    } catch (const IoError&) {  // whoever starts an engine says why it cannot run here
    }
    return result;
}

bool names_ready_seconds(const Objective& objective) {
    const auto names = [](const auto& one) { return one.metric == ready_seconds_metric; };
    return any_of(objective.goals, names) || any_of(objective.limits, names);
}

void check_weight_cache(const StudyFile& file) {
    const std::string place = file.source.at() + "`weight_cache` of `deploy`: ";
    if (file.objective.several())
        throw UsageError(place +
                         "of several goals the whole front would have to be confirmed from cold "
                         "starts: state one goal");
    if (names_ready_seconds(file.objective))
        throw UsageError(place + "`ready_seconds` is the time of a start that loads its weights");
    std::string none;
    for (const Engine& engine : file.composition->engines()) {
        const std::string why = file.composition->why_no_weight_cache(engine);
        if (why.empty()) return;
        none += (none.empty() ? "" : "; ") + why;
    }
    throw UsageError(place + none);
}

constexpr const char* image_not_here = "not here";

std::string path_of_image(const std::string& image) {
    return file_paths + "evaluator.deploy.container.image " + image;
}

/// What an image is now, or was when the journal was written; empty: nobody knows.
std::string pinned_image(const StudyFile& file, const Launcher& launcher,
                         const std::string& image) {
    const auto* kept = entry_in(file.kept, path_of_image(image));
    if (kept == nullptr) return launcher.pinned(image);
    return *kept == image_not_here ? "" : *kept;
}

std::string note_of_launcher(const StudyFile& file) {
    const DeployChoice& choice = choice_of(file);
    const Launcher* launcher = choice.options.deploy.launcher.get();
    const std::string logs = " Its logs are in trials/ID.";
    if (launcher == nullptr) return "Every trial started the engine on this machine." + logs;
    if (choice.wrapped)
        return "Every trial was started elsewhere, by the launcher " + choice.wrapped->name +
               ", and loaded from this machine; its own was not watched for disturbances." + logs;
    std::string images;
    for (const std::string& image : launcher->images()) {
        const std::string pinned = pinned_image(file, *launcher, image);
        images += (images.empty() ? "" : "; ") + image +
                  (pinned.empty() ? " (not here now)" : " = " + pinned);
    }
    return "Every trial started the engine in a container of " + launcher->name() + "." + logs +
           " Images: " + images + ".";
}

class DeployType final : public EvaluatorType {
public:
    DeployType()
        : EvaluatorType({.name = keys::evaluator.deploy.name,
                         .measures = true,
                         .runs_engine = true,
                         .starts_processes = true}) {}

    [[nodiscard]] EvaluatorConfig read(const Yaml& node) const override {
        DeployChoice result;
        read_table(node, keys::deploy, result);
        result.container = read_container(node);
        result.wrapped = read_wrapped(node, result);
        check_devices(node, result.options.deploy);
        check_parts(node, result);
        if (result.options.weight_cache && (result.container || result.wrapped))
            node.at(keys::deploy.weight_cache)
                .fail(
                    "the engine and the daemon that holds its weights must be processes of this "
                    "machine: leave out what starts it elsewhere");
        if (result.watch) result.options.measure.watch.emplace();
        return result;
    }
    void build(StudySetup& setup, StudyFile& file, const std::filesystem::path& folder,
               const RunHooks& hooks) const override {
        setup.problem = problem_of(file);
        auto& choice = std::get<DeployChoice>(file.measuring);
        EngineEvaluator::Options& options = choice.options;
        options.folder = folder.empty() ? std::filesystem::path(file.name) : folder;
        options.deploy.mark = std::filesystem::absolute(options.folder).string();
        options.deploy.api_key = key_from(choice.api_key_environment, file);
        options.deploy.watchdog = hooks.watchdog;
        if (choice.container)
            options.deploy.launcher = launcher_with_models(*choice.container, file);
        if (choice.wrapped) options.deploy.launcher = launcher_of_study(*choice.wrapped, file);
        add_hooks_and_facts(file, hooks, options.measure);
        options.usd_per_device_hour = file.machine.usd_per_device_hour;
        options.most_devices = file.machine.devices;
        if (file.quality)
            options.quality =
                quality_options(file, *setup.problem, options.folder / "quality.json", false);
        if (file.is_stressed())
            options.answers =
                quality_options(file, *setup.problem, options.folder / "answers.json", true);
        if (choice.workers > 1 && options.quality)
            throw UsageError(
                file.source.at() +
                "`quality` keeps what it found in one place: give `deploy` one worker");
        if (options.weight_cache) check_weight_cache(file);
        // Of several goals no cold start confirms the whole front.
        options.reuse_cache_size =
            !file.objective.several() && !names_ready_seconds(file.objective);
        if (choice.workers > 1 && options.deploy.gpus.empty() && !choice.in_jobs() &&
            flags_take_devices(file) && !file.machine.gpus().empty())
            throw UsageError(
                file.source.at() + std::to_string(choice.workers) +
                " trials at once would all take the first of this machine's GPUs: list "
                "them under `gpus` of `deploy`");
        options.trial_folders = std::make_shared<TrialFolders>();
        const EngineEvaluator::Options whole = options;
        const std::vector<std::string> gpus = names_of_gpus(whole.deploy.gpus);
        for (std::size_t worker = 0; worker < choice.workers; ++worker) {
            EngineEvaluator::Options mine = whole;
            mine.deploy.cores = part_of(whole.deploy.cores, worker, choice.workers);
            if (choice.workers > 1)
                mine.deploy.gpus =
                    fmt::format("{}", fmt::join(part_of(gpus, worker, choice.workers), ","));
            auto evaluator = std::make_unique<EngineEvaluator>(
                *file.composition, file.model,
                StudyWorkloads{file.workloads, file.report_workloads}, mine);
            if (worker == 0) setup.evaluator = std::move(evaluator);
            else setup.neighbours.push_back(std::move(evaluator));
        }
    }
    void define(const StudySetup& setup,
                std::map<std::string, std::string>& definition) const override {
        const DeployChoice& choice = choice_of(setup.file);
        const EngineEvaluator::Options& options = choice.options;
        if (const auto& wrapped = choice.wrapped)
            for (const auto& [word, text] : wrapped->lines) {
                if (word != "data") continue;
                const std::size_t blank = text.find(' ');
                definition[file_paths + "evaluator.deploy." + wrapped->name + "." +
                           text.substr(0, blank)] =
                    fingerprint_of(setup.file.secrets.with_fingerprints(text.substr(blank + 1)))
                        .text();
            }
        else if (const Launcher* launcher = options.deploy.launcher.get(); launcher != nullptr)
            for (const std::string& image : launcher->images()) {
                // An image of the same name may be another one tomorrow, with another engine.
                const std::string pinned = pinned_image(setup.file, *launcher, image);
                definition[path_of_image(image)] = pinned.empty() ? image_not_here : pinned;
            }
        definition["evaluator.deploy"] =
            options.fill_devices
                ? "fills " + std::to_string(setup.file.machine.devices.value_or(0)) + " devices"
                : "one engine";
        if (setup.file.quality) {
            const QualityOptions& quality = *setup.file.quality;
            std::string asked;
            for (const auto* list : {&quality.prompts, &quality.command})
                for (const std::string& text : *list) asked += text + "\n";
            definition[file_paths + "quality.asked"] = fingerprint_of(asked).text();
        }
        add_environment("evaluator.deploy.environment.", options.deploy.environment,
                        setup.file.secrets, definition);
    }
    [[nodiscard]] std::string note(const StudyFile& file) const override {
        const EngineEvaluator::Options& options = choice_of(file).options;
        return note_of_launcher(file) +
               (options.weight_cache
                    ? " First measurements took their weights from the engine's weight cache where "
                      "it could (a result's weight_cache says so); the default, every repeat and "
                      "reported workloads started cold."
                    : "") +
               (options.fill_devices
                    ? " As many copies of the engine ran at once as the devices allow (a result's "
                      "replicas says how many), and were measured as one server."
                    : "");
    }
    [[nodiscard]] TrialProcesses processes(const StudyFile& file) const override {
        const DeployOptions& deploy = choice_of(file).options.deploy;
        return {deploy.mark, deploy.stop_within_seconds, deploy.launcher};
    }
    /// The engine sees its worker's part of `gpus` and no others.
    [[nodiscard]] std::optional<std::int64_t> visible_devices(
        const StudyFile& file) const override {
        const DeployChoice& choice = choice_of(file);
        const std::size_t gpus = names_of_gpus(choice.options.deploy.gpus).size();
        if (gpus == 0) return std::nullopt;
        return std::int64_t(gpus / choice.workers);
    }
    /// In a container, and on another machine, there are the study's own variables only.
    [[nodiscard]] std::optional<EnvironmentOptions> environment(
        const StudyFile& file) const override {
        const DeployChoice& choice = choice_of(file);
        EnvironmentOptions options = environment_of_machine(file);
        options.of_machine = !choice.elsewhere();
        options.inherits = options.of_machine && !choice.container;
        options.set = choice.options.deploy.environment;
        return options;
    }
    /// On another machine: what its name or the study says.
    [[nodiscard]] std::string machine(const StudyFile& file) const override {
        const auto& wrapped = choice_of(file).wrapped;
        if (!wrapped) return file.machine.gpus().empty() ? processor_text() : file.machine.gpus();
        std::string result = wrapped->name;
        for (const std::string& host : wrapped->setting("host")) result += " " + host;
        return result + " " + file.machine.hardware;
    }
    [[nodiscard]] std::string version(
        const StudyFile& file, const Engine& engine,
        const std::map<std::string, std::string>& definition) const override {
        const DeployChoice& choice = choice_of(file);
        if (choice.elsewhere()) return file.composition->version_of(engine);
        if (choice.container) {
            std::string result;
            for (const std::string& image : choice.container->images) {
                const auto* pinned = entry_in(definition, path_of_image(image));
                if (pinned == nullptr || *pinned == image_not_here) return "";
                result += (result.empty() ? "" : ", ") + *pinned;
            }
            return result;
        }
        const auto& environment = choice.options.deploy.environment;
        const auto* path = entry_in(environment, "PATH");
        return version_or_stamp(engine.launch, path == nullptr ? "" : *path);
    }
};

}  // namespace

const EvaluatorType& deploy_type() {
    static const DeployType type;
    return type;
}

}  // namespace servetune
