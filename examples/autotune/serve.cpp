// SPDX-License-Identifier: Apache-2.0
// `autotune serve`: what a study recommends in the foreground, started again when it falls.
#include "commands.hpp"
#include "host/elapsed.hpp"
#include "output.hpp"
#include "stop_signals.hpp"
#include "study_journal.hpp"

#include "base/waiting.hpp"
#include "deploy/server_set.hpp"
#include "engine/load_level.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/host/port.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "servetune/study_checks.hpp"
#include "study/study_lock.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace autotune {

namespace {

/// Seconds until the next start of an engine that fell, or nothing: it is given up. An hour of
/// service makes up for one fall, so an engine that dies now and then is served on, and one that
/// dies at once is given up within minutes.
class Restarts {
public:
    explicit Restarts(std::size_t most) : most_(double(most)) {}

    std::optional<double> fell(double served_seconds) {
        constexpr double seconds_for_a_fall = 3600, longest_pause_seconds = 60;
        falls_ = std::max(0.0, falls_ - served_seconds / seconds_for_a_fall) + 1;
        if (falls_ > most_) return std::nullopt;
        return std::min(std::exp2(falls_ - 1), longest_pause_seconds);
    }

private:
    double most_, falls_ = 0;
};

/// Throws UsageError for a study whose trials were not processes or containers of this machine.
void refuse_what_was_elsewhere(const StudyFile& file) {
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    if (deploy != nullptr && !deploy->elsewhere()) return;
    throw UsageError(
        std::string(deploy == nullptr ? "the trials of this study started no engine"
                                      : "the engines of this study ran on other machines") +
        ": `serve` starts engines here; `autotune recommend --as KIND` writes a file that starts "
        "it elsewhere");
}

/// Starts the servers and waits until they serve or have failed.
using StartServers = std::function<std::unique_ptr<ServerSet>(const std::stop_token&)>;

/// Why it serves no more; nothing: it is to stop. A line of the log that says that it broke counts
/// once it does not answer: one request may print it too.
std::optional<Failure> end_of(const ServerSet& servers, const std::stop_token& stop) {
    constexpr double answer_within_seconds = 5;
    while (!wait_or_stop(std::chrono::milliseconds(200), stop))
        if (auto died = servers.died();
            died && !servers.why_silent(answer_within_seconds, stop).empty())
            return died;
    return std::nullopt;
}

int serve_until_stopped(const StartServers& start, std::size_t most_restarts,
                        const std::stop_token& stop) {
    const auto say = [](const std::string& text) { complain("autotune: {}\n", text); };
    Restarts restarts(most_restarts);
    for (bool first = true;; first = false) {
        double served = 0;
        std::optional<Failure> failure;
        try {
            const std::unique_ptr<ServerSet> servers = start(stop);
            failure = servers->started().failure;
            if (!failure) {
                say(fmt::format("serves at {} after {}", fmt::join(servers->addresses(), ", "),
                                seconds_text(servers->started().seconds)));
                const auto since = std::chrono::steady_clock::now();
                failure = end_of(*servers, stop);
                served = seconds_since(since);
            }
            if (const std::string left = servers->stop().report; !left.empty()) say(left);
        } catch (const IoError& error) {
            if (first) throw;
            failure = Failure{FailureKind::infrastructure, error.what()};
        }
        if (stop.stop_requested()) return done;
        const std::string why = failure ? failure->message : "it ended";
        for (const std::string& line : failure ? failure->log_lines : std::vector<std::string>{})
            say("  " + line);
        const auto pause = restarts.fell(served);
        if (!pause) {
            say(why + "; given up after " + counted_text(most_restarts, "restart"));
            return environment_error;
        }
        say(why + "; starts again in " + seconds_text(*pause));
        if (wait_or_stop(std::chrono::duration<double>(*pause), stop)) return done;
    }
}

int serve_study(const ServeArguments& arguments) {
    const StopSignals signals("the engine is ended first");
    StudyFile file = arguments.load_to_read(false);
    refuse_what_was_elsewhere(file);
    if (const auto missing = missing_models(file); !missing.empty())
        throw UsageError(missing.front());
    const fs::path study = arguments.folder_to_read(file);
    // Its own folder and mark: what a run of the study ends or removes is none of this.
    const fs::path folder = fs::absolute(study / fmt::format("serve-{}", arguments.port));
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
        complain("autotune: {}. {}\n", headline.title, headline.reason);
        return nothing_feasible;
    }
    if (somebody_writes(study))
        throw IoError(study.string() + " is measured at this moment: serve it once the run ended");

    const bool proven = result.conclusion == Conclusion::recommended;
    EngineEvaluator::Options as_trials = std::get<DeployChoice>(setup.file.measuring).options;
    as_trials.quality.reset();
    as_trials.weight_cache = as_trials.reuse_cache_size = false;
    const Configuration chosen = without_load_level(
        proven ? result.recommended : setup.problem->space.default_configuration());
    const std::vector<PlacedServer> placed =
        EngineEvaluator(*setup.file.composition, setup.file.model, {}, as_trials)
            .servers_for(chosen);
    ServerSet::Options options{as_trials.deploy, arguments.host, "127.0.0.1", arguments.port, {}};
    options.deploy.folder = folder;
    if (const auto* launcher = options.deploy.launcher.get();
        launcher != nullptr && launcher->in_containers()) {
        const Value* image = chosen.find(image_parameter);
        options.deploy.image = image != nullptr ? text_of(*image) : launcher->images().front();
    }
    fs::create_directories(folder);
    const StudyLock lock(folder);
    end_what_was_left(setup);
    for (std::size_t i = 0; i < ServerSet::ports_of(placed); ++i)
        if (std::string why =
                why_cannot_listen(arguments.host, arguments.port + static_cast<int>(i));
            !why.empty())
            throw IoError(why + "; choose another with --port");
    complain("autotune: {}{}", headline.title, proven ? "" : ": the default is served");
    put_text(stderr, setup.command_text(chosen));
    return serve_until_stopped(
        [&](const std::stop_token& stop) {
            return std::make_unique<ServerSet>(*setup.file.composition, chosen, setup.file.model,
                                               placed, options, stop);
        },
        arguments.restarts, signals.token());
}

}  // namespace

int serve(const ServeArguments& arguments) {
    try {
        return serve_study(arguments);
    } catch (const IoError& error) {
        complain("autotune: {}\n", error.what());
        return environment_error;
    }
}

}  // namespace autotune
