// SPDX-License-Identifier: Apache-2.0
// `autotune serve`: what a study recommends, served under supervision.
#include "clocks.hpp"
#include "commands.hpp"
#include "event_lines.hpp"
#include "output.hpp"
#include "run_log.hpp"
#include "service_notice.hpp"
#include "stop_signals.hpp"
#include "study_journal.hpp"
#include "supervisor.hpp"

#include "engine/load_level.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/detail/host/gpu_memory.hpp"
#include "servetune/detail/host/port.hpp"
#include "servetune/detail/study/clocks.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "study/study_lock.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

/// Throws UsageError for a study whose trials were not processes or containers of this machine.
void refuse_what_was_elsewhere(const StudyFile& file) {
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    if (deploy != nullptr && !deploy->elsewhere()) return;
    const std::string as = deploy == nullptr || deploy->ssh ? "systemd"
                           : deploy->slurm                  ? "slurm"
                           : deploy->ray                    ? "rayservice"
                                                            : "kubernetes";
    throw UsageError(std::string(deploy == nullptr
                                     ? "the trials of this study started no engine"
                                     : "the engines of this study ran on other machines") +
                     ", and `serve` starts a study's engine as its trials did, on this machine: "
                     "for the file that starts it elsewhere, "
                     "`autotune recommend --as " +
                     as + "`");
}

/// What is served, and what takes its place.
std::vector<Supervisor::Choice> choices_of(const StudySetup& setup, const Recommendation& result) {
    const Configuration usual = without_load_level(setup.problem->space.default_configuration());
    const Configuration best = without_load_level(result.recommended);
    std::vector<Supervisor::Choice> choices;
    if (result.conclusion == Conclusion::recommended && best != usual)
        choices.push_back({"recommended", best, setup.command_text(best)});
    choices.push_back({"default", usual, setup.command_text(usual)});
    return choices;
}

/// GPUs that other programs hold memory of before our engine has begun.
std::vector<std::string> gpus_in_use(const std::vector<PlacedServer>& servers,
                                     const DeployOptions& options) {
    std::set<std::string> lines;
    for (const PlacedServer& server : servers)
        for (const GpuMemoryUse& gpu : GpuMemory(server.gpus, options.nvidia_smi).used())
            if (gpu.used_bytes > GpuMemory::slack_bytes)
                lines.insert(fmt::format(
                    "GPU {} is in use by other programs: {} of its {} (nvidia-smi lists them)",
                    gpu.index, mib_text(gpu.used_bytes), mib_text(gpu.total_bytes)));
    return {lines.begin(), lines.end()};
}

/// Says what happens: a line with its time on standard error and in the log, or JSON.
class ServeEvents {
public:
    ServeEvents(bool json, const ServiceNotice& notice) : json_(json), notice_(notice) {}

    void log_into(const std::filesystem::path& folder) { log_.emplace(folder, nullptr); }
    void tell(const std::string& event, const std::string& text, OrderedJson more) {
        if (log_) log_->say(text);
        notice_.send((event == "ready" ? "READY=1\nSTATUS=" : "STATUS=") +
                     printable_line(secrets()(text)));  // lines are assignments
        if (!json_) return complain("{} {}", local_stamp(), text);
        OrderedJson line{{"event", event}, {"at", unix_seconds()}, {"message", text}};
        if (more.is_object()) line.update(more);
        put_event(std::move(line));
    }

private:
    bool json_;
    const ServiceNotice& notice_;
    std::optional<RunLog> log_{};
};

/// The part of a folder that one port has. Throws IoError where a server has it already.
std::unique_ptr<StudyLock> lock_of_port(const std::filesystem::path& folder, int port) {
    std::filesystem::create_directories(folder);
    try {
        return std::make_unique<StudyLock>(folder);
    } catch (const IoError& error) {
        throw IoError(
            fmt::format("this study cannot be served on port {}: {}", port, error.what()));
    }
}

int serve_study(const ServeArguments& arguments, const ServiceNotice& notice) {
    StopSignals signals("the engine is ended first");
    ServeEvents events(arguments.json_lines, notice);
    StudyFile file = arguments.load_to_read(UnsetVariable::fails);
    if (!file.said_twice.empty()) throw ParseError(file.said_twice.front());
    refuse_what_was_elsewhere(file);
    if (const auto missing = missing_models(file); !missing.empty())
        throw UsageError(missing.front());
    const std::filesystem::path study = arguments.folder(file);
    // Its own folder and mark: what a run of the study ends or removes is none of this.
    const std::filesystem::path folder =
        std::filesystem::absolute(study / fmt::format("serve-{}", arguments.port));
    RunHooks hooks;
    hooks.watchdog =
        watchdog_for(std::get<DeployChoice>(file.measuring).options.deploy.stop_within_seconds);
    StudySetup setup = set_up(std::move(file), folder, hooks);
    if (const auto missing = missing_images(setup); !missing.empty())
        throw IoError(missing.front());
    const std::vector<Trial> trials = read_journal(setup, study).trials();
    const Headline headline = headline_of(setup, trials);
    const Recommendation result = recommend(*setup.problem, search_history(*setup.problem, trials));
    if (result.conclusion == Conclusion::nothing_passes) {
        complain("autotune: {}. {}", headline.title, headline.reason);
        return nothing_feasible;
    }
    if (somebody_writes(study))
        throw IoError(study.string() +
                      " is measured at this moment, and a server would disturb it; serve it once "
                      "the run has ended");

    EngineEvaluator::Options as_trials = std::get<DeployChoice>(setup.file.measuring).options;
    as_trials.quality.reset();
    as_trials.weight_cache = false;
    EngineEvaluator evaluator(*setup.file.composition, setup.file.model, {},
                              as_trials);  // knows which devices an engine gets
    DeployOptions options = as_trials.deploy;
    options.folder = folder;
    options.log_rotates = true;
    Supervisor::Options supervised;
    supervised.choices = choices_of(setup, result);
    const std::vector<PlacedServer> first_servers =
        evaluator.servers_for(supervised.choices.front().configuration);
    std::size_t ports = 1;
    for (const Supervisor::Choice& choice : supervised.choices)
        ports = std::max(ports, ServerSet::ports_of(evaluator.servers_for(choice.configuration)));
    supervised.restarts = arguments.restarts;
    supervised.hangs_after_seconds = arguments.hangs_after_seconds;
    supervised.ports_free_within_seconds = options.stop_within_seconds;
    supervised.port_trouble = [&arguments, ports] {
        for (std::size_t i = 0; i < ports; ++i)
            if (std::string why =
                    why_cannot_listen(arguments.host, arguments.port + static_cast<int>(i));
                !why.empty())
                return why;
        return std::string();
    };
    supervised.tell = [&events](const std::string& event, const std::string& text,
                                OrderedJson more) { events.tell(event, text, std::move(more)); };
    supervised.start = [&](const Configuration& configuration, const std::stop_token& stop) {
        DeployOptions mine = options;
        if (const auto* launcher = mine.launcher.get();
            launcher != nullptr && launcher->in_containers()) {
            const Value* image = configuration.find(image_parameter);
            mine.image = image != nullptr ? text_of(*image) : launcher->images().front();
        }
        return std::make_unique<ServerSet>(
            *setup.file.composition, configuration, setup.file.model,
            evaluator.servers_for(configuration),
            ServerSet::Options{mine, arguments.host, "127.0.0.1", arguments.port, {}}, stop);
    };

    const std::unique_ptr<StudyLock> lock = lock_of_port(folder, arguments.port);
    events.log_into(folder);
    end_what_was_left(setup);
    if (const std::string why = supervised.port_trouble(); !why.empty())
        throw IoError(why + "; choose another with --port");
    events.tell(
        "study",
        headline.title +
            (result.conclusion == Conclusion::inconclusive ? ": the default is served" : ""),
        {{"conclusion", name_in(conclusions, result.conclusion)}, {"folder", folder.string()}});
    for (const std::string& line : gpus_in_use(first_servers, options))
        events.tell("gpu_in_use", line, {});
    return Supervisor(std::move(supervised)).run(signals.token()) ? done : environment_error;
}

}  // namespace

int serve(const ServeArguments& arguments) {
    const ServiceNotice notice;  // before the first thread
    try {
        return serve_study(arguments, notice);
    } catch (const IoError& error) {
        complain("autotune: {}", error.what());
        return environment_error;
    }
}

}  // namespace autotune
