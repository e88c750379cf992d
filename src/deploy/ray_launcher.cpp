// SPDX-License-Identifier: Apache-2.0
// Engines as jobs of Ray, by the jobs REST API of its dashboard.
#include "base/url.hpp"
#include "base/variable_name.hpp"
#include "job_launcher.hpp"
#include "launch_clients.hpp"
#include "ray_jobs.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/deploy/remote_launchers.hpp"
#include "servetune/error.hpp"
#include "stand_in.hpp"
#include "takes_connection.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

namespace servetune {
namespace {

using namespace std::chrono_literals;
using RayClock = std::chrono::steady_clock;

constexpr int bound_reached = 124;      // timeout(1): the command timed out
constexpr int ray_cannot_be_run = 126;  // timeout(1)
constexpr int ray_is_not_there = 127;

std::string text_of_seconds(double seconds) {
    return std::to_string(static_cast<std::int64_t>(std::ceil(seconds))) + " s";
}

/// What Ray says of a job's end that is not the engine's doing. Error types: Ray's JobErrorType
/// (python/ray/dashboard/modules/job/common.py).
std::optional<Failure> of_ray(const RayJob& job) {
    const std::string called = "job " + job.id;
    const std::string words = job.message.empty() ? "" : ": " + job.message;
    if (job.status == "STOPPED")
        return Failure{FailureKind::infrastructure, called + " was stopped by somebody"};
    if (job.status != "FAILED") return std::nullopt;
    if (job.error_type == "JOB_SUPERVISOR_ACTOR_START_TIMEOUT")
        return Failure{FailureKind::infrastructure,
                       called +
                           " did not get what it asks for within 15 minutes, and Ray gave it up: "
                           "free the nodes, or start the head with a "
                           "longer RAY_JOB_START_TIMEOUT_SECONDS" +
                           words};
    if (job.error_type == "JOB_SUPERVISOR_ACTOR_START_FAILURE" ||
        job.error_type == "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE")
        return Failure{FailureKind::infrastructure,
                       called + " could not be started by Ray" + words};
    if (job.error_type.starts_with("JOB_SUPERVISOR_"))
        return Failure{FailureKind::infrastructure,
                       called + " lost its node or its supervisor" + words};
    if (job.exit_code == bound_reached)
        return Failure{FailureKind::infrastructure,
                       called + " reached its bound of " + text_of_seconds(job.bound_seconds) +
                           ": give it more with `bound` of `ray`, and run again"};
    return std::nullopt;
}

class RayLauncher : public JobLauncher {
public:
    explicit RayLauncher(RayOptions options) : options_(std::move(options)) {}

    [[nodiscard]] std::string name() const override { return "ray"; }
    [[nodiscard]] std::string listen_address() const override {
        return "0.0.0.0";
    }  // the node is not known before
    [[nodiscard]] std::pair<int, int> ports() const override {
        return {options_.first_port, options_.last_port};
    }

    [[nodiscard]] std::string trouble(const std::string& /*image*/) const override {
        try {
            (void)launch_client_program();
            const RayJobs ray = jobs();
            (void)ray.version();
            (void)ray.of_label("");  // what a token may not do is said here
            const auto nodes = ray.nodes();
            if (nodes.empty()) return "Ray at " + options_.address + " has no node that is alive";
            for (const auto& [resource, amount] : options_.resources)
                if (const double most = most_of(nodes, resource); most < amount)
                    return "`resources` of `ray` asks for " + text_of(amount) + " of '" + resource +
                           "', and no node of " + options_.address + " has more than " +
                           text_of(most);
            return "";
        } catch (const Error& error) {
            return error.what();
        }
    }

    [[nodiscard]] Launch launch(const LaunchRequest& request) const override {
        end_earlier();
        Launch result;
        const std::string label = label_here_of(request.mark);
        result.name = new_launch_name(label);
        result.program = request.command.argv.front();
        result.beats = stand_in_beat;
        result.argv = {launch_client_program(), "launch-client", "ray"};
        try {
            result.told = nlohmann::json{{"address", options_.address},
                                         {"token", token_of(options_)},
                                         {"job", ray_job_of(options_, request, result.name, label)}}
                              .dump() +
                          "\n";
        } catch (const nlohmann::json::exception&) {
            throw UsageError(
                "a word, a variable or a file of the engine's command is no UTF-8, which a job of "
                "Ray must be");
        }
        const std::scoped_lock lock(mutex_);
        Known& known = known_[result.name];
        known.port = request.port;
        known.devices = request.devices;
        known.stop_within_seconds = request.stop_within_seconds;
        return result;
    }

    [[nodiscard]] LaunchedAt place(const Launch& launch) const override {
        std::optional<RayJob> job;
        try {
            job = jobs().find(launch.name);
        } catch (const IoError& error) {  // it is asked again, and the user may stop it meanwhile
            const std::scoped_lock lock(mutex_);
            Known& known = known_[launch.name];
            if (!known.silent_since) known.silent_since = RayClock::now();
            if (RayClock::now() - *known.silent_since > cluster_patience) throw;
            return {error.what(), {}};
        }
        {
            const std::scoped_lock lock(mutex_);
            known_[launch.name].silent_since.reset();
        }
        if (!job) {
            const std::scoped_lock lock(mutex_);
            if (RayClock::now() - known_[launch.name].since > cluster_patience)
                throw IoError("the job " + launch.name + " was submitted to " + options_.address +
                              ", and Ray has not known of it for a minute");
            return {"the job is being submitted", {}};
        }
        if (job->status == "PENDING")
            return {"job " + job->id + " waits for Ray: " + job->message + lacking(launch.name),
                    {}};
        if (job->status == "RUNNING" && job->host.empty())
            return {"job " + job->id + " gets its node", {}};
        const std::scoped_lock lock(mutex_);
        known_[launch.name].host = job->host;
        return {{}, job->host.empty() ? "127.0.0.1" : job->host};  // without: it has ended already
    }

    bool ask_to_end(const Launch& launch, Process& /*process*/) const override {
        jobs().stop(launch.name);
        return true;
    }

    [[nodiscard]] std::optional<Failure> lost(const Launch& launch) const override {
        try {
            const auto job = patient([&](const RayJobs& ray) { return ray.find(launch.name); });
            if (!job) return gone(launch.name);
            if (auto known = of_ray(*job)) return known;
            if (job->host.empty() || patient([&](const RayJobs& ray) {
                                         return ray.node_lives(job->host);
                                     }).value_or(false))
                return std::nullopt;
            return Failure{FailureKind::infrastructure,
                           "the node " + job->host + " of job " + job->id + " does not answer Ray"};
        } catch (const Error& error) {
            return Failure{FailureKind::infrastructure, error.what()};
        }
    }

    [[nodiscard]] std::optional<Failure> ended(
        const Launch& launch, int exit_code, const std::vector<std::string>& lines) const override {
        for (const std::string& line : lines)
            if ((exit_code == ray_is_not_there || exit_code == ray_cannot_be_run) &&
                line.starts_with("timeout: failed to run command"))
                return Failure{FailureKind::unsupported,
                               "the node cannot start '" + launch.program + "': " + line};
        try {
            const auto job = patient([&](const RayJobs& ray) { return ray.find(launch.name); });
            if (auto known = job ? of_ray(*job) : gone(launch.name)) return known;
        } catch (const Error& error) {
            return Failure{FailureKind::infrastructure, error.what()};
        }
        if (exit_code == stand_in_failed)
            for (const std::string& line : lines)
                if (line.starts_with(stand_in_says))
                    return Failure{FailureKind::infrastructure, line.substr(stand_in_says.size())};
        return std::nullopt;
    }

private:
    /// What Ray need not tell any more.
    struct Known {
        RayClock::time_point since = RayClock::now();
        std::optional<RayClock::time_point> silent_since{};  ///< `place` has had no answer
        std::string host{};
        int port = 0;
        std::int64_t devices = 0;
        double stop_within_seconds = 20;
    };

    [[nodiscard]] RayJobs jobs() const { return {options_.address, token_of(options_)}; }

    static std::string text_of_job(const RayJob& job) {
        return "job " + job.id + " " + job.status + (job.host.empty() ? "" : " on " + job.host);
    }
    static Failure gone(const std::string& name) {
        return {FailureKind::infrastructure,
                "Ray knows of no job " + name +
                    " any more: it was deleted by somebody, or the head was restarted"};
    }
    static double most_of(const std::vector<std::map<std::string, double>>& nodes,
                          const std::string& resource) {
        double most = 0;
        for (const auto& node : nodes)
            if (const auto found = node.find(resource); found != node.end())
                most = std::max(most, found->second);
        return most;
    }

    /// Asks again for a minute, as a head that is being restarted answers soon.
    template <class Ask>
    std::invoke_result_t<const Ask&, const RayJobs&> patient(const Ask& ask) const {
        for (const auto until = RayClock::now() + cluster_patience;;) {
            try {
                return ask(jobs());
            } catch (const IoError&) {
                if (RayClock::now() > until) throw;
            }
            std::this_thread::sleep_for(1s);
        }
    }

    /// Why a job waits that no node can ever take; empty: one could, or Ray does not say.
    [[nodiscard]] std::string lacking(const std::string& name) const {
        std::int64_t devices = 0;
        {
            const std::scoped_lock lock(mutex_);
            devices = known_[name].devices;
        }
        if (devices == 0) return "";
        double most = 0;
        try {
            most = most_of(jobs().nodes(), "GPU");
        } catch (const IoError&) {
            return "";  // it is asked again
        }
        if (most >= static_cast<double>(devices)) return "";
        return " It asks for " + std::to_string(devices) +
               " GPUs of one node, and no node has more than " + text_of(most);
    }

    /// Jobs that are there, and those that lost their supervisor and whose engine answers yet.
    [[nodiscard]] std::vector<JobLeft> jobs_left(const std::string& mark) const override {
        std::vector<JobLeft> result;
        if (mark.empty()) return result;
        const std::string label = label_here_of(mark);
        for (const RayJob& job : patient([&](const RayJobs& ray) { return ray.of_label(label); }))
            if (job.is_there() ||
                (may_live_on(job) && takes_connection(job.host, std::to_string(job.port))))
                result.push_back({job.id, text_of_job(job)});
        return result;
    }

    /// Whether Ray may have lost sight of an engine that is alive.
    static bool may_live_on(const RayJob& job) {
        return job.error_type == "JOB_SUPERVISOR_ACTOR_DIED" && job.port != 0 &&
               !job.host.empty() && left_of(job) > 0;
    }
    /// Seconds until the job's bound ends its engine.
    static double left_of(const RayJob& job) {
        return job.begun + job.bound_seconds + ray_kill_after_seconds -
               static_cast<double>(std::time(nullptr));
    }

    /// Ends a job and waits until it is over and its engine's port silent. Why it would not go;
    /// empty: it is gone.
    [[nodiscard]] std::string removed(const std::string& name) const override {
        Known known;
        {
            const std::scoped_lock lock(mutex_);
            if (const auto found = known_.find(name); found != known_.end()) known = found->second;
        }
        try {
            auto job = patient([&](const RayJobs& ray) { return ray.find(name); });
            const auto until =
                RayClock::now() + std::chrono::duration<double>(known.stop_within_seconds) + 60s;
            if (job && job->is_there()) jobs().stop(name);
            for (auto wait = 50ms; job && job->is_there();
                 job = patient([&](const RayJobs& ray) { return ray.find(name); })) {
                if (RayClock::now() > until) return "it would not go: " + text_of_job(*job);
                std::this_thread::sleep_for(wait);
                wait = std::min(2 * wait, std::chrono::milliseconds(1000));
            }
            if (job && !job->host.empty()) known.host = job->host;
            if (job && job->port != 0) known.port = job->port;
            if (std::string why = still_answers(name, known, job); !why.empty()) return why;
            if (job) jobs().forget(name);
        } catch (const Error& error) {
            return "the job " + name + " may be left: " + error.what();
        }
        const std::scoped_lock lock(mutex_);
        known_.erase(name);
        return {};
    }

    /// An engine that Ray calls ended, or does not know any more, may hold its devices yet.
    [[nodiscard]] std::string still_answers(const std::string& name, const Known& known,
                                            const std::optional<RayJob>& job) const {
        if (known.port == 0 || known.host.empty()) return {};
        for (const auto until = RayClock::now() + 5s;
             takes_connection(known.host, std::to_string(known.port));) {
            if (RayClock::now() > until) {
                const double left = job ? left_of(*job) : options_.bound_seconds;
                return "it would not go: the engine of job " + name + " answers on " + known.host +
                       ":" + std::to_string(known.port) + " though Ray " +
                       (job ? "calls the job " + job->status
                            : std::string("knows of no such job")) +
                       "; it ends by itself within " + text_of_seconds(std::max(left, 0.0)) +
                       ", or end it on that node";
            }
            std::this_thread::sleep_for(200ms);
        }
        return {};
    }

    const RayOptions options_;
    mutable std::mutex mutex_{};
    mutable std::map<std::string, Known> known_{};
};

}  // namespace

std::string RayOptions::why_invalid() const {
    OptionCheck check;
    const bool is_url = (address.starts_with("http://") || address.starts_with("https://")) &&
                        user_info_of(address).empty() &&
                        std::all_of(address.begin(), address.end(),
                                    [](unsigned char c) { return c > ' ' && c != 0x7f; });
    check.that(is_url, "address",
               "the dashboard's address without a user, such as http://head:8265",
               "'" + without_user_info(address) + "'");
    check.that(token_file.empty() || token_env.empty(), "token_env", "one place of the token",
               "two: `token_file` too");
    check.that(token_env.empty() || is_variable_name(token_env), "token_env",
               "the name of a variable", "'" + token_env + "'");
    constexpr int last = 65535;
    check.that(first_port >= 1024 && first_port <= last_port && last_port <= last, "ports",
               "a range within 1024 to 65535, such as 18000-18999",
               std::to_string(first_port) + "-" + std::to_string(last_port));
    check.within("bound", bound_seconds, 10, longest_seconds);
    for (const auto& [resource, amount] : resources) {
        check.that(resource != "GPU", "resources",
                   "other names than GPU, which each layout says itself", "'GPU'");
        check.that(amount > 0 && std::isfinite(amount), "resources", "amounts above 0",
                   "'" + resource + "': " + text_of(amount));
    }
    return check.text();
}

std::shared_ptr<const Launcher> ray_launcher(RayOptions options) {
    check_options("ray", options.why_invalid());
    while (options.address.ends_with('/')) options.address.pop_back();
    return std::make_shared<RayLauncher>(std::move(options));
}

}  // namespace servetune
