// SPDX-License-Identifier: Apache-2.0
// `autotune init`: a first study from five answers and from what is on this machine.
#include "cluster_files.hpp"
#include "commands.hpp"
#include "machine_facts.hpp"
#include "output.hpp"
#include "plan.hpp"

#include "base/files.hpp"
#include "base/lower_case.hpp"
#include "deploy/cached_models.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/error.hpp"
#include "servetune/objective.hpp"
#include "study_file/yaml.hpp"
#include "study_file/yaml_text.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace autotune {

using namespace servetune;

namespace {

struct InitFound {
    std::vector<std::string> known, installed;
    std::vector<std::string> gpus;
    std::string hardware{};  ///< their name here; empty: none, or one that is not known
    std::vector<ServerHere> servers{};
};

/// A model that may be meant, and where it was found.
struct FoundModel {
    std::string name, where;
};

struct InitAnswers {
    std::string engine, model, hardware, traffic, goal, budget;
    std::size_t gpus = 0;
    std::size_t concurrency = 0;
    bool as_recorded = false;  ///< the traffic has its own times
};

/// Of a study for a cluster this machine says nothing.
InitFound look_around(const Catalogue& catalogue, bool for_cluster) {
    InitFound found;
    for (const Engine& engine : catalogue.engines()) {
        found.known.push_back(engine.name);
        if (!for_cluster && installed_here(engine)) found.installed.push_back(engine.name);
    }
    if (for_cluster) return found;
    found.gpus = gpus_here();
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

/// A number of that list, or the words as they are.
std::string model_said(const std::string& said, const std::vector<FoundModel>& models) {
    const auto number = integer_of(said);
    const bool listed =
        number && *number >= 1 && static_cast<std::size_t>(*number) <= models.size();
    return listed ? models[static_cast<std::size_t>(*number) - 1].name : said;
}

/// Asks on the terminal; nobody there: `otherwise`. An empty answer is `otherwise` too.
class Questions {
public:
    explicit Questions(bool ask) : ask_(ask) {}

    /// What `check` makes of an answer. It throws an Error for a wrong one: a person is asked
    /// again, three times in all.
    template <class Check>
    std::string answer(const std::string& given, const std::string& question,
                       const std::string& otherwise, const Check& check) {
        constexpr int most = 3;
        for (int turn = 1;; ++turn) {
            const bool asks = given.empty() && ask_;
            const std::string said = asks            ? asked(question, otherwise)
                                     : given.empty() ? otherwise
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
    std::string asked(const std::string& question, const std::string& otherwise) {
        put(stdout, "{}{} ", question, otherwise.empty() ? ":" : " [" + otherwise + "]:");
        std::fflush(stdout);
        std::string line;
        if (!std::getline(std::cin, line)) ask_ = false;
        while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0)
            line.pop_back();
        while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front())) != 0)
            line.erase(line.begin());
        return line.empty() ? otherwise : line;
    }

    bool ask_;
};

/// `512x128`: tokens in and out.
std::optional<std::pair<std::int64_t, std::int64_t>> lengths_in(const std::string& text) {
    const auto x = text.find('x');
    const auto input = integer_of(std::string_view(text).substr(0, x));
    const auto output =
        x == std::string::npos ? std::nullopt : integer_of(std::string_view(text).substr(x + 1));
    if (!input || !output || *input < 1 || *output < 1) return std::nullopt;
    return std::pair(*input, *output);
}

/// The line of `workloads`.
std::string workload_text(const InitAnswers& answers, bool small) {
    const std::size_t requests = std::max<std::size_t>(small ? 32 : 200, 4 * answers.concurrency);
    const std::string load =
        fmt::format("requests: {}, arrival: {{concurrency: {}}}", requests, answers.concurrency);
    if (const auto lengths = lengths_in(answers.traffic))
        return fmt::format("{{use: random, input_tokens: {}, output_tokens: {}, {}}}",
                           lengths->first, lengths->second, load);
    if (answers.as_recorded) return fmt::format("{{use: {}}}", yaml_text(answers.traffic));
    return fmt::format("{{use: {}, {}}}", yaml_text(answers.traffic), load);
}

/// Goal and limits, from `throughput`, `latency` or a limit.
std::string objective_text(const std::string& goal) {
    if (goal == "throughput")
        return "{maximize: total_tokens_per_second, limits: [success_ratio >= 0.99]}";
    if (goal == "latency") return "{minimize: e2el_mean, limits: [success_ratio >= 0.99]}";
    try {
        (void)Limit::parse(goal, true);
    } catch (const ParseError& error) {
        const bool is_limit = goal.find_first_of("<>") != std::string::npos;
        throw UsageError("the goal is throughput, latency, or a limit such as 'ttft_p95 < 2s'" +
                         (is_limit ? std::string(": ") + error.what() : ", got '" + goal + "'"));
    }
    return fmt::format(
        "{{maximize: output_tokens_per_second, limits: [{}, success_ratio >= 0.99]}}",
        nlohmann::json(goal).dump());
}

std::string name_of_study(const std::filesystem::path& output) {
    std::string name = output.stem().string();
    while (name.starts_with('.')) name.erase(0, 1);
    return name.empty() ? "study" : name;
}

/// The dashboard where `ray job submit` would look for it (Ray 2.60, "Ray Jobs CLI"), else on this
/// machine.
std::string ray_address() {
    for (const char* name : {"RAY_API_SERVER_ADDRESS", "RAY_ADDRESS"}) {
        const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
        const std::string said = value == nullptr ? "" : value;
        if (said.starts_with("http") && said.find('@') == std::string::npos) return said;
    }
    return "http://127.0.0.1:8265";
}

/// `preset`: empty where there is none for the engine. `layout`: devices that the model is spread
/// over, by the parameter of this name; 1: it fits one, or nobody knows.
std::string study_text(const InitAnswers& answers, const InitFound& found,
                       const InitArguments& arguments, const std::string& preset,
                       const std::string& spread_by, std::size_t layout) {
    const std::string file = Command{{arguments.output.string()}}.text();  // as a word of a shell
    const bool attaches = !arguments.attach.empty();
    std::string out = fmt::format(
        "# Check it with `autotune validate {0}`, start it with `autotune run {0}`.\n# Every key: "
        "search_spaces/FORMAT.md\n",
        file);
    out += fmt::format("study: {}                # also the name of its folder\n",
                       yaml_text(name_of_study(arguments.output)));
    out +=
        fmt::format("model: {}\nengine: {}\n", yaml_text(answers.model), yaml_text(answers.engine));
    if (!answers.hardware.empty()) {
        out +=
            "# What it runs on: the cost model uses it to guess where to look, the audit to refuse "
            "what cannot be.\n";
        out += answers.gpus > 1 ? fmt::format("hardware: {{device: {}, count: {}}}\n",
                                              yaml_text(answers.hardware), answers.gpus)
                                : fmt::format("hardware: {}\n", yaml_text(answers.hardware));
    } else {
        if (!found.gpus.empty() && answers.gpus > 0)
            out +=
                "# nvidia-smi finds a GPU here that servetune has no figures of, so there is no "
                "`hardware`.\n";
        if (answers.gpus > 1) out += fmt::format("hardware: {{count: {}}}\n", answers.gpus);
    }
    out += "# The traffic that it is tuned for: make it as much like yours as you can.\n";
    out += fmt::format("workloads: [{}]\n", workload_text(answers, answers.gpus == 0));
    out += fmt::format(
        "# What for. Other goals: requests_per_second, ttft_p95, tpot_mean; limits: ttft_p95 < 2s, "
        "tpot_mean < 50ms.\n"
        "objective: {}\n",
        objective_text(answers.goal));
    if (attaches) {
        out +=
            "# A server that runs keeps its flags: how much load it takes is what can be "
            "searched.\n";
        out += "space: {load.concurrency: [1, 2, 4, 8, 16, 32, 64]}\n";
    } else if (!preset.empty())
        out +=
            "# What is searched: the few flags that decide most. All flags: `others: search` in "
            "place of this line; your own\n"
            "# choice: `space: {FLAG: [VALUE, VALUE]}` (`autotune engines " +
            answers.engine + "` lists the flags).\npreset: " + preset + "\n";
    if (layout > 1)
        out += fmt::format(
            "# By the cost model one device is too small: the model is spread over {0}, in every "
            "trial.\nspace: {{{1}: {0}}}\n",
            layout, spread_by);
    out += fmt::format(
        "# When it ends: so many trials, or a time (8h), or both (30 trials, 8h).\nbudget: {}\n",
        answers.budget);
    if (attaches)
        return out + fmt::format("evaluator: {{attach: {}}}\n", yaml_text(arguments.attach));
    if (arguments.as == "ray")
        return out + fmt::format(
                         "# Each trial is a job of this Ray cluster (the address of its "
                         "dashboard): it starts the engine.\n"
                         "evaluator: {{deploy: {{ray: {{address: {}}}}}}}\n",
                         yaml_text(ray_address()));
    out += arguments.as.empty() ? "# Each trial starts the engine on this machine, load-tests it "
                                  "and ends it.\nevaluator: deploy\n"
                                : "# Each trial starts the engine in a pod that is made from this "
                                  "one, load-tests it and ends it.\n"
                                  "evaluator: {deploy: {kubernetes: {template: pod.yaml}}}\n";
    return out;
}

bool preset_knows(const Catalogue& catalogue, const std::string& preset,
                  const std::string& engine) {
    std::error_code unknown;
    const std::filesystem::path file = catalogue.root() / "presets" / (preset + ".yaml");
    return std::filesystem::exists(file, unknown) &&
           read_file(file).find("\n  " + engine + ":") != std::string::npos;
}

bool without_gpus(const InitArguments& arguments) {
    return arguments.gpus == std::size_t{0} && arguments.attach.empty();
}

std::string preset_of(const InitArguments& arguments, const Catalogue& catalogue,
                      const std::string& engine) {
    const std::string name = without_gpus(arguments) ? "cpu" : "quick";
    return preset_knows(catalogue, name, engine) ? name : "";
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

std::string goal_answered(const std::string& said) {
    const std::string small = lower_case(said);
    (void)objective_text(small);
    return small;
}

/// How many devices the model has to be spread over to fit, by the cost model, be there so many or
/// not; 1: it fits one, it fits no number that was tried, or nobody knows. Leaves the last study
/// that it tried in the draft.
std::size_t devices_needed(InitAnswers answers, const InitFound& found,
                           const InitArguments& arguments, const Catalogue& catalogue,
                           const std::string& preset, const std::string& spread_by,
                           NewFile& draft) {
    if (spread_by.empty() || answers.gpus < 1 || answers.hardware.empty() ||
        !arguments.attach.empty())
        return 1;
    constexpr std::size_t most = 64;  // eight machines of eight
    for (std::size_t devices = 1; devices <= std::max(answers.gpus, most); devices *= 2) {
        answers.gpus = std::max(answers.gpus, devices);
        draft.write(study_text(answers, found, arguments, preset, spread_by, devices));
        try {
            const StudySetup setup = set_up(load_study(draft.path(), catalogue));
            const auto evaluator = simulated(setup.file);
            if (!evaluator->started(setup.problem->space.default_configuration()).failure)
                return devices;
        } catch (const Error&) {
            if (devices == 1)
                return 1;  // it knows no such model or hardware; of more devices: not of so many
        }
    }
    return 1;
}

/// The engine's parameter of a concept; empty: it has none.
std::string parameter_of(const Engine& engine, std::string_view called) {
    for (const EngineParameter& one : engine.parameters)
        if (one.parameter.concept_name == called) return one.parameter.name;
    return "";
}

/// Throws UsageError where `--gpus 0` is no answer.
void check_without_gpus(const InitArguments& arguments, const std::string& engine,
                        const Catalogue& catalogue) {
    if (!without_gpus(arguments)) return;
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

InitAnswers answered(const InitArguments& arguments, const InitFound& found,
                     const Catalogue& catalogue) {
    Questions questions(!arguments.yes && isatty(STDIN_FILENO) == 1);
    std::vector<ServerHere> servers = found.servers;
    if (!arguments.attach.empty()) {
        servers.clear();
        if (auto server = server_at(arguments.attach)) servers.push_back(*std::move(server));
    }
    if (!arguments.attach.empty() && servers.empty() && arguments.model.empty() &&
        !anybody_listens(arguments.attach))
        throw UsageError("nothing listens on " + arguments.attach +
                         ": start the server first, or say its model with --model");
    if (!found.installed.empty()) put(stdout, "installed here: {}\n", listed(found.installed));
    if (!found.gpus.empty())
        put(stdout, "nvidia-smi: {} x {}\n", found.gpus.size(), found.gpus.front());
    for (const ServerHere& server : servers)
        put(stdout, "a server answers at {} and serves {}{}\n", server.url, listed(server.models),
            arguments.attach.empty() ? "; to tune its load as it runs: --attach " + server.url
                                     : "");

    InitAnswers answers;
    answers.engine = questions.answer(
        arguments.engine, "1. Engine (" + listed(found.known) + ")",
        found.installed.empty() ? "" : found.installed.front(),
        [&](const std::string& said) { return engine_answered(said, found, catalogue); });
    check_without_gpus(arguments, answers.engine, catalogue);
    const bool no_gpus = arguments.gpus == std::size_t{0};
    const std::vector<FoundModel> models =
        arguments.model.empty()
            ? models_for(catalogue.engine(answers.engine), servers, !arguments.attach.empty())
            : std::vector<FoundModel>{};
    put_models(models);
    answers.model = questions.answer(
        arguments.model,
        std::string("2. Model: a name on the hub, a folder or a file") +
            (models.size() > 1 ? ", or a number of these" : ""),
        models.empty() ? "" : models.front().name, [&](const std::string& answer) {
            if (answer.empty()) throw UsageError("which model is served? Say it with --model");
            const std::string said = model_said(answer, models);
            std::error_code unknown;  // a file of this folder: engines run in folders of their own
            const bool here = !said.starts_with('/') && std::filesystem::exists(said, unknown);
            return here ? std::filesystem::absolute(said).lexically_normal().string() : said;
        });
    if (!models.empty() && !questions.asks() && models.front().name == answers.model)
        put(stdout, "model: {}, the first of these; another one: --model\n", answers.model);
    if (!no_gpus)
        answers.hardware = questions.answer(
            arguments.hardware, "3. Hardware, such as h100-sxm; empty: none that is known",
            found.hardware, [&](const std::string& said) {
                return said.empty() ? said : catalogue.hardware(lower_case(said)).name;
            });
    const bool has_one = !answers.hardware.empty() || !arguments.as.empty();
    answers.gpus =
        arguments.gpus.value_or(std::max<std::size_t>(found.gpus.size(), has_one ? 1 : 0));
    const bool small = answers.gpus == 0;  // a CPU: a load test of a large machine would take hours
    answers.traffic = questions.answer(
        arguments.traffic,
        "4. Traffic: chat, shared_prefix, multi_turn, or tokens in x out such as 512x128",
        small ? "256x64" : "chat",
        [&](const std::string& said) { return traffic_answered(said, catalogue); });
    answers.goal = questions.answer(
        arguments.goal, "5. Goal: throughput, latency, or a limit such as ttft_p95 < 2s",
        "throughput", goal_answered);
    answers.budget = arguments.budget.empty() ? "30 trials" : arguments.budget;
    answers.concurrency = arguments.concurrency.value_or(small ? 4 : 64);
    answers.as_recorded =
        !arguments.concurrency && arguments.attach.empty() && !lengths_in(answers.traffic) &&
        workload_called(answers.traffic, catalogue).arrival.kind == Arrival::Kind::trace;
    return answers;
}

}  // namespace

int init(const InitArguments& arguments) {
    std::error_code unknown;
    const std::filesystem::path& output = arguments.output;
    const bool for_cluster = !arguments.as.empty();
    const bool for_kubernetes = arguments.as == "kubernetes";
    if (for_kubernetes && !arguments.force &&
        std::filesystem::is_regular_file(output, unknown)) {  // the user's study, as it is
        write_cluster_manifest(output, arguments.image, false);
        return done;
    }
    if (const auto there = std::filesystem::symlink_status(output, unknown);
        std::filesystem::exists(there)) {
        if (!arguments.force)
            throw UsageError(output.string() +
                             " is there already; take another --output, or --force");
        if (!std::filesystem::is_regular_file(output, unknown))
            throw UsageError(
                output.string() +
                " is no regular file, and --force replaces no other; take another --output");
    }
    check_writable(output);  // before anything is asked
    if (for_kubernetes) (void)earlier_manifest(output, arguments.force);
    const Catalogue catalogue = Catalogue::standard();
    const InitFound found = look_around(catalogue, for_cluster);
    const InitAnswers answers = answered(arguments, found, catalogue);
    const std::string preset = preset_of(arguments, catalogue, answers.engine);
    const std::string spread_by =
        parameter_of(catalogue.engine(answers.engine), "tensor_parallel_size");
    std::size_t needed = 1;
    const auto checked = [&] {
        // Beside the study, whose relative paths it has: what was there stays until the new one is
        // known to be right.
        NewFile draft(output.parent_path() /
                      ("." + output.stem().string() + "." + std::to_string(::getpid()) + ".yaml"));
        try {
            needed = devices_needed(answers, found, arguments, catalogue, preset, spread_by, draft);
            const std::string text = study_text(answers, found, arguments, preset, spread_by,
                                                needed <= answers.gpus ? needed : 1);
            draft.write(text);
            (void)set_up(load_study(draft.path(), catalogue));
            return text;
        } catch (const Error& error) {
            std::string why = error.what();
            for (auto at = why.find(draft.path().string()); at != std::string::npos;
                 at = why.find(draft.path().string(), at))
                why.replace(at, draft.path().string().size(), output.string());
            throw UsageError("nothing was written; the study would have been wrong: " + why);
        }
    };
    std::optional<NewFile> pod;  // unless the user has one
    if (const std::filesystem::path file = output.parent_path() / "pod.yaml";
        for_kubernetes && arguments.attach.empty() && !std::filesystem::exists(file, unknown)) {
        const Engine& engine = catalogue.engine(answers.engine);
        pod.emplace(file);
        pod->write(pod_template_text(cluster_name(name_of_study(output)), engine.name,
                                     engine.images.empty() ? "" : engine.images.front(),
                                     answers.model));
    }
    write_file(output, checked());
    if (pod) {
        pod->keep();
        put(stdout, "wrote {}\n", pod->path().string());
    }
    const StudySetup setup = set_up(load_study(output, catalogue));
    put(stdout, "wrote {}\n", arguments.output.string());
    if (for_kubernetes) {
        put(stdout, "{}\n", plan_of(setup, setup.file.name).text());
        write_cluster_manifest(output, arguments.image, arguments.force);
        return done;
    }
    const bool installed = std::find(found.installed.begin(), found.installed.end(),
                                     answers.engine) != found.installed.end();
    if (installed && answers.gpus == 0 && !arguments.gpus && arguments.attach.empty() &&
        preset_knows(catalogue, "cpu", answers.engine))
        put(stdout,
            "nvidia-smi finds no GPU here. If {} serves from the processor, write the study with "
            "--gpus 0\n",
            answers.engine);
    for (const std::string& missing : missing_models(setup.file))
        put(stdout, "missing: {}\n", missing);
    if (!for_cluster)
        for (const std::string& missing : missing_here(setup))
            put(stdout, "missing: {}\n", missing);
    if (needed > std::max<std::size_t>(answers.gpus, 1))
        put(stdout,
            "warning: by the cost model the model needs at least {} GPUs of this kind ({} of 1, 2, "
            "4 and so on), and the study has {}\n",
            needed, spread_by, answers.gpus);
    if (const std::string memory = memory_text(setup); !memory.empty())
        put(stdout, "warning: {}\n", memory);
    put(stdout, "{}\nnext: {}, then {}\n", plan_of(setup, setup.file.name).text(),
        Command{{"autotune", "validate", output.string()}}.text(),
        Command{{"autotune", "run", output.string()}}.text());
    return done;
}

}  // namespace autotune
