// SPDX-License-Identifier: Apache-2.0
// `autotune init`: a first study from five answers and from what is on this machine.
#include "cluster_files.hpp"
#include "commands.hpp"
#include "first_study.hpp"
#include "machine_facts.hpp"
#include "output.hpp"
#include "plan.hpp"

#include "base/files.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "deploy/cached_models.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/host/devices.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>

namespace autotune {

using namespace servetune;

namespace {

namespace fs = std::filesystem;

struct InitFound {
    std::vector<std::string> known{}, installed{}, gpus{};
    std::string hardware{};  ///< their name here; empty: none, or one that is not known
    std::vector<ServerHere> servers{};
};

/// A model that may be meant, and where it was found.
struct FoundModel {
    std::string name, where;
};

/// Of a study for a cluster this machine says nothing.
InitFound look_around(const Catalogue& catalogue, bool for_cluster) {
    InitFound found;
    for (const Engine& engine : catalogue.engines()) {
        found.known.push_back(engine.name);
        if (!for_cluster && installed_here(engine)) found.installed.push_back(engine.name);
    }
    if (for_cluster) return found;
    for (const Device& device : find_devices().all) found.gpus.push_back(device.name);
    if (!found.gpus.empty())
        if (const auto chip = hardware_in(found.gpus.front(), catalogue.all_hardware()))
            found.hardware = chip->name;
    found.servers = servers_here();
    return found;
}

/// What servers here serve, and what is in the caches, of that what the engine takes. `attaches`:
/// to the one server, whatever its models are.
std::vector<FoundModel> models_for(const Engine& engine, const std::vector<ServerHere>& servers,
                                   bool attaches) {
    std::vector<FoundModel> result;
    for (const ServerHere& server : servers)
        for (const std::string& model : server.models)
            if (attaches || engine.model_files.empty())
                result.push_back({model, "served at " + server.url});
    if (attaches) return result;
    for (const CachedModel& model : cached_models(engine.model_files))
        if (model.ending.empty() == engine.model_files.empty())
            result.push_back({model.name, model.where});
    return result;
}

/// Those after the first, to be chosen by their numbers.
void put_models(const std::vector<FoundModel>& models) {
    constexpr std::size_t most = 9;
    for (std::size_t i = 0; i < std::min(models.size(), most); ++i)
        put(stdout, "   {} {} ({})\n", i + 1, models[i].name, models[i].where);
    if (models.size() > most) put(stdout, "   and {} more\n", models.size() - most);
}

/// Asks on the terminal; nobody there, or an empty answer: the default.
class Questions {
public:
    explicit Questions(bool ask) : ask_(ask) {}

    /// What `check` makes of an answer. It throws an Error for a wrong one: a person is asked
    /// again, three times in all.
    std::string answer(const std::string& given, const std::string& question,
                       const std::string& default_,
                       const std::function<std::string(const std::string&)>& check) {
        constexpr int most = 3;
        for (int turn = 1;; ++turn) {
            const bool asks = given.empty() && ask_;
            const std::string said = asks            ? asked(question, default_)
                                     : given.empty() ? default_
                                                     : given;
            try {
                return check(said);
            } catch (const Error& error) {
                if (!asks || !ask_ || turn == most) throw;
                put(stdout, "   {}\n", error.what());
            }
        }
    }

    /// Whether there is somebody who answers.
    [[nodiscard]] bool asks() const { return ask_; }

private:
    std::string asked(const std::string& question, const std::string& default_) {
        put(stdout, "{}{} ", question, default_.empty() ? ":" : " [" + default_ + "]:");
        std::fflush(stdout);
        std::string line;
        if (!std::getline(std::cin, line)) ask_ = false;
        line = std::string(trimmed(line));
        return line.empty() ? default_ : line;
    }

    bool ask_;
};

bool preset_knows(const Catalogue& catalogue, const std::string& preset,
                  const std::string& engine) {
    std::error_code unknown;
    const fs::path file = catalogue.root() / "presets" / (preset + ".yaml");
    return fs::exists(file, unknown) &&
           read_file(file).find("\n  " + engine + ":") != std::string::npos;
}

/// Throws UsageError where `--gpus 0` is no answer.
void check_without_gpus(const InitArguments& arguments, const std::string& engine,
                        const Catalogue& catalogue) {
    std::vector<std::string> can;
    for (const Engine& one : catalogue.engines())
        if (preset_knows(catalogue, "cpu", one.name)) can.push_back(one.name);
    if (std::find(can.begin(), can.end(), engine) == can.end())
        throw UsageError("--gpus 0: " + engine +
                         " needs at least one GPU; for a CPU alone: --engine " + listed(can));
    if (!arguments.hardware.empty())
        throw UsageError("--gpus 0 and --hardware " + arguments.hardware +
                         " contradict each other: leave one out");
}

std::string engine_answered(const std::string& said, const InitFound& found,
                            const Catalogue& catalogue) {
    if (said.empty())
        throw UsageError("no known engine is installed here; say which with --engine: " +
                         listed(found.known));
    for (const std::string& name : found.known)
        if (lower_case(name) == lower_case(said)) return name;
    return catalogue.engine(said).name;  // throws, with the nearest names
}

/// A number of the list, a file of this folder as an engine finds it (which runs in a folder of its
/// own), or the words as they are.
std::string model_answered(const std::string& answer, const std::vector<FoundModel>& models) {
    if (answer.empty()) throw UsageError("which model is served? Say it with --model");
    const auto number = integer_of(answer).value_or(0);
    const bool listed = number >= 1 && static_cast<std::size_t>(number) <= models.size();
    const std::string said = listed ? models[static_cast<std::size_t>(number) - 1].name : answer;
    std::error_code unknown;
    const bool here = !said.starts_with('/') && fs::exists(said, unknown);
    return here ? fs::absolute(said).lexically_normal().string() : said;
}

Workload workload_called(const std::string& name, const Catalogue& catalogue) {
    return catalogue.workload(Yaml::parse(nlohmann::json(name).dump(), "traffic"));
}

std::string traffic_answered(const std::string& said, const Catalogue& catalogue) {
    const std::string small = lower_case(said);
    if (lengths_in(small)) return small;
    for (const std::string& name : {small, said})  // the second one may be a file
        try {
            (void)workload_called(name, catalogue);
            return name;
        } catch (const Error&) {  // NOLINT(bugprone-empty-catch): said below
        }
    throw UsageError(
        "--traffic: tokens in x out such as 512x128 wanted, or the name or file of a workload such "
        "as chat, got '" +
        said + "'");
}

std::vector<ServerHere> servers_for(const InitArguments& arguments, const InitFound& found) {
    if (arguments.attach.empty()) return found.servers;
    if (const auto server = server_at(arguments.attach)) return {*server};
    if (arguments.model.empty() && !anybody_listens(arguments.attach))
        throw UsageError("nothing listens on " + arguments.attach +
                         ": start the server first, or say its model with --model");
    return {};
}

FirstStudy answered(const InitArguments& arguments, const InitFound& found,
                    const Catalogue& catalogue) {
    const bool attaches = !arguments.attach.empty();
    const bool no_gpus = arguments.gpus == std::size_t{0};
    Questions questions(!arguments.yes && isatty(STDIN_FILENO) == 1);
    const std::vector<ServerHere> servers = servers_for(arguments, found);
    if (!found.installed.empty()) put(stdout, "installed here: {}\n", listed(found.installed));
    if (!found.gpus.empty())
        put(stdout, "nvidia-smi: {} x {}\n", found.gpus.size(), found.gpus.front());
    for (const ServerHere& server : servers)
        put(stdout, "a server answers at {} and serves {}{}\n", server.url, listed(server.models),
            attaches ? "" : "; to tune its load as it runs: --attach " + server.url);

    FirstStudy study;
    study.file = arguments.output;
    study.attach = arguments.attach;
    study.as = arguments.as;
    study.unknown_gpu = !found.gpus.empty();
    study.engine = questions.answer(
        arguments.engine, "1. Engine (" + listed(found.known) + ")",
        found.installed.empty() ? "" : found.installed.front(),
        [&](const std::string& said) { return engine_answered(said, found, catalogue); });
    if (no_gpus && !attaches) check_without_gpus(arguments, study.engine, catalogue);
    std::vector<FoundModel> models;
    if (arguments.model.empty())
        models = models_for(catalogue.engine(study.engine), servers, attaches);
    put_models(models);
    study.model =
        questions.answer(arguments.model,
                         std::string("2. Model: a name on the hub, a folder or a file") +
                             (models.size() > 1 ? ", or a number of these" : ""),
                         models.empty() ? "" : models.front().name,
                         [&](const std::string& said) { return model_answered(said, models); });
    if (!models.empty() && !questions.asks() && models.front().name == study.model)
        put(stdout, "model: {}, the first of these; another one: --model\n", study.model);
    if (!no_gpus)
        study.hardware = questions.answer(
            arguments.hardware, "3. Hardware, such as h100-sxm; empty: none that is known",
            found.hardware, [&](const std::string& said) {
                return said.empty() ? said : catalogue.hardware(lower_case(said)).name;
            });
    const bool has_one = !study.hardware.empty() || !arguments.as.empty();
    study.gpus = arguments.gpus.value_or(std::max<std::size_t>(found.gpus.size(), has_one ? 1 : 0));
    const bool small = study.gpus == 0;
    study.traffic = questions.answer(
        arguments.traffic,
        "4. Traffic: chat, shared_prefix, multi_turn, or tokens in x out such as 512x128",
        small ? "256x64" : "chat",
        [&](const std::string& said) { return traffic_answered(said, catalogue); });
    study.goal = questions.answer(arguments.goal,
                                  "5. Goal: throughput, latency, or a limit such as ttft_p95 < 2s",
                                  "throughput", [&](const std::string& said) {
                                      study.goal = lower_case(said);
                                      (void)study.text();
                                      return study.goal;
                                  });
    if (!arguments.budget.empty()) study.budget = arguments.budget;
    study.concurrency = arguments.concurrency.value_or(small ? 4 : 64);
    study.as_recorded =
        !arguments.concurrency && !attaches && !lengths_in(study.traffic) &&
        workload_called(study.traffic, catalogue).arrival.kind == Arrival::Kind::trace;
    const char* preset = no_gpus && !attaches ? "cpu" : "quick";
    if (preset_knows(catalogue, preset, study.engine)) study.preset = preset;
    study.spread_by = parameter_of(catalogue.engine(study.engine), "tensor_parallel_size");
    return study;
}

/// How many devices the model has to be spread over to fit, by the cost model, be there so many or
/// not; 1: it fits one, it fits no number that was tried, or nobody knows.
std::size_t devices_needed(FirstStudy study, const Catalogue& catalogue, NewFile& draft) {
    if (study.spread_by.empty() || study.gpus < 1 || study.hardware.empty() ||
        !study.attach.empty())
        return 1;
    constexpr std::size_t most = 64;  // eight machines of eight
    for (std::size_t devices = 1; devices <= std::max(study.gpus, most); devices *= 2) {
        study.gpus = std::max(study.gpus, devices);
        study.layout = devices;
        draft.write(study.text());
        try {
            const StudySetup setup = set_up(load_study(draft.path(), catalogue));
            if (!simulated(setup.file)
                     ->started(setup.problem->space.default_configuration())
                     .failure)
                return devices;
        } catch (const Error&) {
            if (devices == 1) return 1;  // no such model or hardware; of more: not of so many
        }
    }
    return 1;
}

/// The study's text, once it is known to be right. The draft stands beside it, whose relative paths
/// it has.
std::string checked_text(FirstStudy study, const Catalogue& catalogue, std::size_t& needed) {
    NewFile draft(study.file.parent_path() /
                  ("." + study.file.stem().string() + "." + std::to_string(::getpid()) + ".yaml"));
    try {
        needed = devices_needed(study, catalogue, draft);
        study.layout = needed <= study.gpus ? needed : 1;
        draft.write(study.text());
        (void)set_up(load_study(draft.path(), catalogue));
        return study.text();
    } catch (const Error& error) {
        throw UsageError("nothing was written; the study would have been wrong: " +
                         with_path(error.what(), draft.path(), study.file));
    }
}

void check_output(const fs::path& output, bool force) {
    std::error_code unknown;
    const auto there = fs::symlink_status(output, unknown);
    if (fs::exists(there) && !force)
        throw UsageError(output.string() + " is there already; take another --output, or --force");
    if (fs::exists(there) && !fs::is_regular_file(output, unknown))
        throw UsageError(output.string() +
                         " is no regular file, and --force replaces no other; take another "
                         "--output");
    check_writable(output);  // before anything is asked
}

/// What a person should know of the study before it runs.
void put_warnings(const StudySetup& setup, const FirstStudy& study, const InitFound& found,
                  const InitArguments& arguments, std::size_t needed, bool cpu_preset) {
    const bool installed = std::find(found.installed.begin(), found.installed.end(),
                                     study.engine) != found.installed.end();
    if (installed && study.gpus == 0 && !arguments.gpus && study.attach.empty() && cpu_preset)
        put(stdout,
            "nvidia-smi finds no GPU here. If {} serves from the processor, write the study with "
            "--gpus 0\n",
            study.engine);
    std::vector<std::string> missing = missing_models(setup.file);
    if (arguments.as.empty())
        for (std::string& one : missing_here(setup)) missing.push_back(std::move(one));
    for (const std::string& one : missing) put(stdout, "missing: {}\n", one);
    if (needed > std::max<std::size_t>(study.gpus, 1))
        put(stdout,
            "warning: by the cost model the model needs at least {} GPUs of this kind ({} of 1, 2, "
            "4 and so on), and the study has {}\n",
            needed, study.spread_by, study.gpus);
    if (const std::string memory = memory_text(setup); !memory.empty())
        put(stdout, "warning: {}\n", memory);
}

}  // namespace

int init(const InitArguments& arguments) {
    std::error_code unknown;
    const fs::path& output = arguments.output;
    const bool for_kubernetes = arguments.as == "kubernetes";
    if (for_kubernetes && !arguments.force && fs::is_regular_file(output, unknown)) {
        write_cluster_manifest(output, arguments.image, false);  // the user's study, as it is
        return done;
    }
    check_output(output, arguments.force);
    if (for_kubernetes) (void)earlier_manifest(output, arguments.force);
    const Catalogue catalogue = Catalogue::standard();
    const InitFound found = look_around(catalogue, !arguments.as.empty());
    const FirstStudy study = answered(arguments, found, catalogue);
    std::optional<NewFile> pod;  // unless the user has one
    if (const fs::path file = output.parent_path() / "pod.yaml";
        for_kubernetes && study.attach.empty() && !fs::exists(file, unknown)) {
        const std::vector<std::string>& images = catalogue.engine(study.engine).images;
        pod.emplace(file);
        pod->write(pod_template_text(cluster_name(study.name()), study.engine,
                                     images.empty() ? "" : images.front(), study.model));
    }
    std::size_t needed = 1;
    write_file(output, checked_text(study, catalogue, needed));
    if (pod) {
        pod->keep();
        put(stdout, "wrote {}\n", pod->path().string());
    }
    const StudySetup setup = set_up(load_study(output, catalogue));
    put(stdout, "wrote {}\n", output.string());
    if (for_kubernetes) {
        put(stdout, "{}\n", plan_of(setup, setup.file.name).text());
        write_cluster_manifest(output, arguments.image, arguments.force);
        return done;
    }
    put_warnings(setup, study, found, arguments, needed,
                 preset_knows(catalogue, "cpu", study.engine));
    put(stdout, "{}\nnext: {}, then {}\n", plan_of(setup, setup.file.name).text(),
        Command{{"autotune", "validate", output.string()}}.text(),
        Command{{"autotune", "run", output.string()}}.text());
    return done;
}

}  // namespace autotune
