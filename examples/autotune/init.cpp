// SPDX-License-Identifier: Apache-2.0
// `autotune init`: a first study from five answers and from what is on this machine.
#include "commands.hpp"
#include "first_study.hpp"
#include "known_study.hpp"
#include "machine_facts.hpp"
#include "output.hpp"
#include "plan.hpp"
#include "templates.hpp"

#include "base/files.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "deploy/cached_models.hpp"
#include "servetune/detail/host/devices.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/error.hpp"
#include "servetune/study_checks.hpp"
#include "servetune/version.hpp"
#include "study_file/readers.hpp"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <iostream>

namespace autotune {

using namespace servetune;

namespace {

namespace fs = std::filesystem;

struct InitFound {
    std::vector<std::string> known{}, installed{}, gpus{};
    std::string hardware{};  ///< their name here; empty: none, or one that is not known
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
    if (!found.installed.empty()) put(stdout, "installed here: {}\n", listed(found.installed));
    if (!found.gpus.empty())
        put(stdout, "nvidia-smi: {} x {}\n", found.gpus.size(), found.gpus.front());
    return found;
}

/// What the server to attach to serves, else what the caches here have for the engine.
std::vector<std::string> models_for(const Engine& engine, const std::string& attach) {
    if (!attach.empty()) {
        const std::vector<std::string> served = models_at(attach);
        if (served.empty() && !anybody_answers(attach))
            throw UsageError("nothing listens on " + attach +
                             ": start the server first, or say its model with --model");
        return served;
    }
    std::vector<std::string> result;
    for (const CachedModel& model : cached_models(engine.model_files))
        if (model.ending.empty() == engine.model_files.empty()) result.push_back(model.name);
    return result;
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
    return fs::exists(file, unknown) && contains(read_file(file), "\n  " + engine + ":");
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

/// A file of this folder as an engine finds it (which runs in a folder of its own), else the words
/// as they are.
std::string model_answered(const std::string& said) {
    if (said.empty()) throw UsageError("which model is served? Say it with --model");
    std::error_code unknown;
    const bool here = !said.starts_with('/') && fs::exists(said, unknown);
    return here ? fs::absolute(said).lexically_normal().string() : said;
}

Workload workload_called(const std::string& name, const Catalogue& catalogue) {
    return workload_in(catalogue, Yaml::parse(nlohmann::json(name).dump(), "traffic"));
}

std::string traffic_answered(const std::string& said, const Catalogue& catalogue) {
    std::error_code unknown;
    const std::string answer = fs::exists(said, unknown) ? said : lower_case(said);
    if (!lengths_in(answer)) try {
            (void)workload_called(answer, catalogue);
        } catch (const Error& error) {
            throw UsageError(
                std::string("--traffic: tokens in x out such as 512x128 wanted, or a workload: ") +
                error.what());
        }
    return answer;
}

FirstStudy answered(const InitArguments& arguments, const InitFound& found,
                    const Catalogue& catalogue) {
    const bool attaches = !arguments.attach.empty();
    const bool no_gpus = arguments.gpus == std::size_t{0};
    Questions questions(!arguments.yes && isatty(STDIN_FILENO) == 1);
    FirstStudy study;
    study.file = arguments.output;
    study.attach = arguments.attach;
    study.as = arguments.as;
    study.engine = questions.answer(
        arguments.engine, "1. Engine (" + listed(found.known) + ")",
        found.installed.empty() ? "" : found.installed.front(),
        [&](const std::string& said) { return engine_answered(said, found, catalogue); });
    const Engine engine = catalogue.engine(study.engine);
    const std::string preset = !arguments.preset.empty() && arguments.preset != "known"
                                   ? arguments.preset
                               : no_gpus && !attaches ? "cpu"
                                                      : "quick";
    if (preset_knows(catalogue, preset, study.engine)) study.preset = preset;
    if (no_gpus && !attaches && study.preset.empty())
        throw UsageError("--gpus 0: " + study.engine + " needs at least one GPU");
    if (study.preset.empty() && preset == arguments.preset)
        throw UsageError("--preset " + preset + ": " + study.engine + " has no such preset");
    if (no_gpus && !arguments.hardware.empty())
        throw UsageError("--gpus 0 and --hardware " + arguments.hardware +
                         " contradict each other: leave one out");
    std::vector<std::string> models;
    if (arguments.model.empty()) models = models_for(engine, arguments.attach);
    if (!models.empty()) put(stdout, "models found: {}\n", listed(models));
    study.model =
        questions.answer(arguments.model, "2. Model: a name on the hub, a folder or a file",
                         models.empty() ? "" : models.front(), model_answered);
    if (!no_gpus)
        study.hardware = questions.answer(
            arguments.hardware, "3. Hardware, such as h100-sxm; empty: none that is known",
            found.hardware, [&](const std::string& said) {
                if (said.empty()) return said;
                const HardwareSpec chip = catalogue.hardware(lower_case(said));
                if (const auto note = why_ambiguous(said, chip, catalogue.all_hardware());
                    !note.empty())
                    put(stdout, "warning: {}\n", note);
                return chip.name;
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
    study.spread_by = parameter_of(engine, "tensor_parallel_size");
    return study;
}

/// The study, once it is known to be right. The draft stands beside it, whose relative paths it
/// has.
StudySetup drafted(const FirstStudy& study, const Catalogue& catalogue) {
    NewFile draft(study.file.parent_path() /
                  ("." + study.file.stem().string() + "." + std::to_string(::getpid()) + ".yaml"));
    try {
        draft.write(study.text());
        return set_up(load_study(draft.path(), catalogue));
    } catch (const Error& error) {
        throw UsageError("nothing was written; the study would have been wrong: " +
                         with_path(error.what(), draft.path(), study.file));
    }
}

/// How many devices the model has to be spread over, be there so many or not, by the cost model;
/// nothing: none that was tried, or nobody knows.
struct DevicesNeeded {
    std::optional<std::size_t> by_default{};  ///< for the default; else by the model's name
    std::optional<std::size_t> by_any{};      ///< for one of the configurations
};

DevicesNeeded devices_needed(FirstStudy study, const Catalogue& catalogue) {
    DevicesNeeded needed;
    if (study.spread_by.empty() || study.gpus < 1 || study.hardware.empty() ||
        !study.attach.empty())
        return needed;
    study.as.clear();  // a simulated study that cannot start is none
    for (std::size_t devices = 1;
         devices <= std::max(study.gpus, most_devices) && !needed.by_default; devices *= 2) {
        study.gpus = std::max(study.gpus, devices);
        study.layout = devices;
        try {
            const StudySetup setup = drafted(study, catalogue);
            const auto evaluator = simulated(setup.file);
            if (!evaluator->started(setup.problem->space.default_configuration()).failure)
                needed.by_default = devices;
            constexpr std::size_t tries = 200;
            if (!needed.by_any && why_nothing_starts(*evaluator, *setup.problem, tries).empty())
                needed.by_any = devices;
        } catch (const Error&) {
            if (devices == 1)  // no such model or hardware; of more: not of so many
                return {devices_by_name(study.model, catalogue.hardware(study.hardware)), {}};
        }
    }
    return needed;
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
void put_warnings(const StudySetup& setup, const FirstStudy& study, std::size_t needed) {
    const auto named = [&](std::vector<std::string> texts) {
        for (std::string& text : texts)
            text = with_path(std::move(text), setup.file.source.file, study.file);
        return texts;
    };
    if (!setup.file.model_file.empty()) put(stdout, "facts: {}\n", setup.file.model_file.string());
    std::vector<std::string> missing = missing_models(setup.file);
    if (study.as.empty())
        for (std::string& one : missing_here(setup)) missing.push_back(std::move(one));
    put_each(stdout, "missing: ", named(missing));
    if (needed > study.gpus)
        put(stdout,
            "warning: by the cost model nothing starts on fewer than {} GPUs of this kind ({} of "
            "1, 2, 4 and so on), and the study has {}\n",
            needed, study.spread_by, study.gpus);
    std::vector<std::string> warnings = warnings_of(setup, setup.file.name, false);
    for (std::string& fact : facts_to_know(setup.file)) warnings.push_back(std::move(fact));
    for (const std::string& text : named(warnings)) put_text(stdout, "warning: " + text + "\n");
}

fs::path manifest_beside(const fs::path& study) { return study.parent_path() / "servetune.yaml"; }

/// What the objects of a study are called, as a label of DNS: `servetune-chat-tp2`.
std::string cluster_name(const std::string& study) {
    constexpr std::size_t most = 52;  // of 63: pods of a Job have a dash and five letters more
    std::string result = "servetune-";
    for (const char c : lower_case(study))
        result += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
    result = result.substr(0, most);
    while (result.ends_with('-')) result.pop_back();
    return result;
}

/// What the templates of a cluster say.
TemplateValues cluster_values(const FirstStudy& study, const InitArguments& arguments,
                              const Engine& engine) {
    const bool is_path = study.model.starts_with('/');
    const std::string config = study.file.filename().string();
    TemplateValues values{
        {{"name", cluster_name(study.name())},
         {"study", study.name()},
         {"config", config},
         {"image",
          arguments.image.empty() ? "servetune:" + std::string(library_version) : arguments.image},
         {"engine", study.engine},
         {"engine_image", engine.images.empty() ? "" : engine.images.front()},
         {"hub", is_path ? "/tmp" : "/models"},
         {"mounted", is_path ? fs::path(study.model).parent_path().string() : "/models"},
         {"is_path", is_path ? "yes" : ""},
         {"has_models", is_path || !study.attach.empty() ? "" : "yes"}}};
    values.lists["run"] = {{{{"container", "autotune"},
                             {"requests", "{cpu: \"1\", memory: 512Mi}"},
                             {"command", "autotune, run, " + yaml_text("/study/" + config) +
                                             ", --directory, /servetune/study, --view"}}}};
    values.lists["page"] = {{{{"container", "page"},
                              {"requests", "{cpu: 100m, memory: 128Mi}"},
                              {"command", "autotune, view, /servetune/study"}}}};
    return values;
}

/// What runs the study in a cluster, for its user to change.
void write_manifest(const FirstStudy& study, const TemplateValues& values) {
    const fs::path manifest = manifest_beside(study.file);
    write_file(manifest,
               filled_yaml(servetune_yaml_in, values, {{"pod", autotune_pod_yaml_in.text}}));
    put(stdout, "wrote {}\nnext: kubectl create configmap {} --from-file={}{}, then {}\n",
        manifest.string(), values.texts.at("name"), study.file.string(),
        study.attach.empty() ? " --from-file=" + (study.file.parent_path() / "pod.yaml").string()
                             : "",
        Command{{"kubectl", "apply", "-f", manifest.string()}}.text());
}

}  // namespace

int init(const InitArguments& arguments) {
    const fs::path& output = arguments.output;
    const bool for_kubernetes = arguments.as == "kubernetes";
    check_output(output, arguments.force);
    if (for_kubernetes) check_output(manifest_beside(output), arguments.force);
    const Catalogue catalogue = Catalogue::standard();
    const InitFound found = look_around(catalogue, !arguments.as.empty());
    FirstStudy study = answered(arguments, found, catalogue);
    const TemplateValues cluster = cluster_values(study, arguments, catalogue.engine(study.engine));
    std::optional<NewFile> pod;  // unless the user has one; the study is checked with it
    if (std::error_code unknown; for_kubernetes && study.attach.empty() &&
                                 !fs::exists(output.parent_path() / "pod.yaml", unknown)) {
        pod.emplace(output.parent_path() / "pod.yaml");
        pod->write(filled_yaml(pod_yaml_in, cluster));
    }
    std::optional<KnownStudy> known;
    if (arguments.preset == "known")
        known.emplace(study, arguments.recipes, arguments.gpus || !found.gpus.empty(), catalogue);
    else if (!arguments.recipes.empty()) throw UsageError("--recipes belongs to --preset known");
    const DevicesNeeded needed = devices_needed(study, catalogue);
    if (known && !arguments.gpus && found.gpus.empty())
        study.gpus = std::max(study.gpus, needed.by_default.value_or(needed.by_any.value_or(1)));
    for (const auto& devices : {needed.by_any, needed.by_default})
        if (devices && *devices <= study.gpus)
            study.layout = needed.by_any ? *devices : std::max(study.layout, *devices);
    if (known) {
        known->write_into(study,
                          [&](const FirstStudy& draft) { return drafted(draft, catalogue); });
        put_each(stdout, "", known->notes());
    }
    const StudySetup setup = drafted(study, catalogue);
    write_file(output, study.text());
    if (pod) {
        pod->keep();
        put(stdout, "wrote {}\n", pod->path().string());
    }
    put(stdout, "wrote {}\n", output.string());
    put_text(stdout, plan_of(setup, setup.file.name).text() + "\n");
    put_warnings(setup, study, needed.by_any.value_or(0));
    if (for_kubernetes) write_manifest(study, cluster);
    else
        put(stdout, "next: {}, then {}\n",
            Command{{"autotune", "validate", output.string()}}.text(),
            Command{{"autotune", "run", output.string()}}.text());
    return done;
}

}  // namespace autotune
