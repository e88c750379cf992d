// SPDX-License-Identifier: Apache-2.0
// Engines as Jobs of Kubernetes, by a client of ours in the foreground.
#include "cluster_nodes.hpp"
#include "host/start_program.hpp"
#include "job_launcher.hpp"
#include "kubectl.hpp"
#include "kubernetes_checks.hpp"
#include "kubernetes_client.hpp"
#include "launch_clients.hpp"
#include "load/http.hpp"
#include "pod_manifest.hpp"
#include "pod_state.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/base/present.hpp"
#include "servetune/detail/deploy/remote_launchers.hpp"
#include "servetune/error.hpp"
#include "stand_in.hpp"
#include "takes_connection.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace servetune {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

/// What the node and the controllers need to remove a pod, beside its grace.
constexpr double removal_seconds = 60;

KubernetesOptions with_reach(KubernetesOptions options) {
    options.reach = reach_of(options);
    return options;
}

/// Of the study's jobs. A pod of a Job has another name when it is made anew, `JOB-xxxxx`
/// (k8s.io/apiserver, pkg/storage/names/generate.go; the letters are those of
/// k8s.io/apimachinery, pkg/util/rand/rand.go), and its study is the same.
std::string label_in_cluster(const std::string& mark) {
    if (!is_in_pod()) return label_here_of(mark);
    std::array<char, 256> host{};
    (void)gethostname(host.data(), host.size() - 1);
    std::string name = host.data();
    constexpr std::size_t random_letters = 5;
    const auto dash = name.rfind('-');
    if (dash != std::string::npos && name.size() - dash - 1 == random_letters &&
        name.find_first_not_of("bcdfghjklmnpqrstvwxz2456789", dash + 1) == std::string::npos)
        name.erase(dash);
    return label_of(mark + "@" + name);
}

/// The pods of a job by their index: one, or one of each node that its engine is spread over.
std::map<std::int64_t, Json> pods_in(const Json& list) {
    std::map<std::int64_t, Json> result;
    for (const Json& pod : list.is_object() ? list.value("items", Json::array()) : Json::array())
        result[index_of_pod(pod)] = pod;
    return result;
}

class KubernetesLauncher : public JobLauncher {
public:
    explicit KubernetesLauncher(const KubernetesOptions& options)
        : options_(with_reach(options)),
          container_(engine_container(options_)),
          kubectl_(options_.program, options_.context, options_.name_space) {}

    [[nodiscard]] std::string name() const override { return "kubernetes"; }
    [[nodiscard]] bool in_containers() const override { return true; }
    [[nodiscard]] std::string listen_address() const override { return "0.0.0.0"; }
    [[nodiscard]] std::vector<std::string> images() const override { return images_of(options_); }

    [[nodiscard]] std::string trouble(const std::string& image) const override {
        try {
            (void)launch_client_program();
            return kubernetes_trouble(options_, image);
        } catch (const IoError& error) {
            return error.what();
        }
    }

    [[nodiscard]] Launch launch(const LaunchRequest& request) const override {
        end_earlier();
        Launch result;
        result.name = new_launch_name(label_in_cluster(request.mark));
        result.image = request.image;
        result.program = request.command.argv.front();
        KubernetesTask task{
            .kubectl = kubectl_.words(),
            .job = trial_job(options_, request, result.name, label_in_cluster(request.mark)),
            .container = container_};
        if (options_.reach == KubernetesReach::forward) task.forwarded_port = request.port;
        result.argv = {launch_client_program(), "launch-client", "kubernetes"};
        result.environment = secret_variables();  // with which this user's kubectl may log in
        result.told = task.text() + "\n";
        result.beats = stand_in_beat;
        const std::scoped_lock lock(mutex_);
        looks_[result.name].grace_seconds = task.grace_seconds();
        looks_[result.name].port = request.port;
        looks_[result.name].pods = task.pods();
        return result;
    }

    [[nodiscard]] LaunchedAt place(const Launch& launch) const override {
        const auto now = Clock::now();
        {
            // It is asked often at first: each look is a process and a request.
            const std::scoped_lock lock(mutex_);
            const Look& look = looks_[launch.name];
            constexpr auto between_looks = 500ms;
            if (look.asked && now - *look.asked < between_looks) return {look.waits, {}};
        }
        std::map<std::int64_t, Json> pods;
        try {
            pods = pods_of(launch.name, 0ms);
        } catch (
            const KubectlError& error) {  // it is asked again, and the user may stop it meanwhile
            const std::scoped_lock lock(mutex_);
            Look& look = looks_[launch.name];
            if (!look.silent_since) look.silent_since = now;
            if (!error.temporary || now - *look.silent_since > cluster_patience) throw;
            look.asked = Clock::now();
            look.waits = std::string("the API server does not answer: ") + error.what();
            return {look.waits, {}};
        }
        std::size_t wanted = 1;
        {
            const std::scoped_lock lock(mutex_);
            looks_[launch.name].silent_since.reset();
            wanted = looks_[launch.name].pods;
        }
        std::optional<PodState> first;  // that waits
        std::size_t run = 0;
        for (const auto& [index, pod] : pods) {
            PodState one = pod_state_of(pod, container_);
            if (one.phase == PodState::Phase::ended) return {};  // the client says how
            if (one.phase == PodState::Phase::runs) ++run;
            else if (!first) first = std::move(one);
        }
        if (run == wanted) {
            const PodState leader = pod_state_of(pods.begin()->second, container_);
            return {{}, address_of(leader), leader.pod_ip, place_of_all(pods)};
        }
        const PodState state = first.value_or(PodState{.why = "a pod of the job is being made"});
        std::string waits =
            pods.empty() ? why_no_pod(launch.name, since_launch(launch.name)) : state.why;
        if (run > 0)
            waits += " (" + std::to_string(run) + " of " + std::to_string(wanted) + " pods run)";
        const std::scoped_lock lock(mutex_);
        Look& look = looks_[launch.name];
        look.asked = Clock::now();
        look.waits = waits.empty() ? "the pod waits" : waits;
        if (!state.failure || !state.hopeless) look.hopeless_since.reset();
        else if (!look.hopeless_since) look.hopeless_since = now;
        if (look.hopeless_since &&
            std::chrono::duration<double>(now - *look.hopeless_since).count() >=
                state.believed_after_seconds)
            throw UsageError(
                state.failure
                    ->message);  // not tried again: it is not the cluster that has to change
        return {look.waits, {}};
    }

    /// The client deletes the job when we hang up, and hands the engine's last words on.
    bool ask_to_end(const Launch& /*launch*/, Process& process) const override {
        process.hang_up();
        return true;
    }

    [[nodiscard]] std::optional<Failure> lost(const Launch& launch) const override {
        try {
            // Looked at first: while the API server is asked, kubectl may have made it anew.
            const int port = port_of(launch.name);
            const bool forwards = port != 0 && options_.reach == KubernetesReach::forward;
            const bool way_is_there =
                !forwards || takes_connection("127.0.0.1", std::to_string(port));
            const std::map<std::int64_t, Json> pods = pods_of(launch.name);
            if (!pods.contains(0))
                return Failure{FailureKind::infrastructure,
                               "the pod of the job " + launch.name + " is gone"};
            for (const auto& [index, pod] : pods) {
                const PodState state = pod_state_of(pod, container_);
                if (state.failure) return state.failure;
                if (state.deleted)
                    return Failure{FailureKind::infrastructure,
                                   "somebody has deleted the job " + launch.name + " or its pod"};
                if (state.phase != PodState::Phase::runs) return std::nullopt;
                if (auto silent = node_silent(pod, state)) return silent;
            }
            if (port != 0 && !forwards)
                return unreachable(address_of(pod_state_of(pods.at(0), container_)), port);
            if (!way_is_there && comes_to_answer(port))
                return Failure{FailureKind::infrastructure,
                               "kubectl port-forward to the pod of the job " + launch.name +
                                   " was cut, and the engine answers again now"};
        } catch (const IoError& error) {
            return Failure{FailureKind::infrastructure, error.what()};
        }
        return std::nullopt;
    }

    [[nodiscard]] std::optional<Failure> ended(
        const Launch& launch, int exit_code, const std::vector<std::string>& lines) const override {
        for (auto line = lines.rbegin(); line != lines.rend(); ++line)
            for (const auto& [kind, called] : failure_kinds)
                if (const std::string begin =
                        std::string(stand_in_says) + std::string(called) + ": ";
                    line->starts_with(begin))
                    return Failure{kind, line->substr(begin.size())};
        if (exit_code <= 128) return std::nullopt;
        // A signal: the engine's end, or the client's?
        try {
            const std::map<std::int64_t, Json> pods = pods_of(launch.name);
            const PodState state =
                pods.contains(0) ? pod_state_of(pods.at(0), container_) : PodState{};
            if (state.failure) return state.failure;
            if (state.exit_code == exit_code) return std::nullopt;
            return Failure{FailureKind::infrastructure, "the program here that stood for the job " +
                                                            launch.name + " was killed"};
        } catch (const IoError& error) {
            return Failure{FailureKind::infrastructure, error.what()};
        }
    }

    std::string remove(const Launch& launch) const override {
        const std::string why = JobLauncher::remove(launch);
        const std::scoped_lock lock(mutex_);
        if (why.empty()) looks_.erase(launch.name);
        return why;
    }

    std::vector<std::string> end_leftovers(const std::string& mark) const override {
        // All are asked before one is waited for.
        for (const JobLeft& job : jobs_left(mark))
            (void)kubectl_.ask({"delete", "job", job.name, "--cascade=foreground",
                                "--ignore-not-found", "--wait=false"});
        return JobLauncher::end_leftovers(mark);
    }

private:
    /// What is known of a launch.
    struct Look {
        double grace_seconds = 0;
        int port = 0;  ///< that the engine listens on; 0: it does not
        std::size_t pods = 1;
        Clock::time_point begin = Clock::now();
        std::optional<Clock::time_point> asked{};
        std::string waits{};
        std::optional<Clock::time_point> hopeless_since{};
        std::optional<Clock::time_point> silent_since{};  ///< `place` has had no answer
    };

    [[nodiscard]] std::map<std::int64_t, Json> pods_of(
        const std::string& name, milliseconds patience = Kubectl::usual_patience) const {
        return pods_in(kubectl_.json({"get", "pods", "--selector=job-name=" + name}, patience));
    }

    [[nodiscard]] std::vector<JobLeft> jobs_left(const std::string& mark) const override {
        std::vector<JobLeft> result;
        if (mark.empty()) return result;
        const Json list = kubectl_.json(
            {"get", "jobs",
             "--selector=" + std::string(pod_study_label) + "=" + label_in_cluster(mark)});
        for (const Json& job :
             list.is_object() ? list.value("items", Json::array()) : Json::array()) {
            result.push_back({job.at("metadata").at("name"),
                              "job " + job.at("metadata").at("name").get<std::string>()});
            const std::scoped_lock lock(mutex_);
            looks_[result.back().name].grace_seconds =
                job.at("spec")
                    .at("template")
                    .at("spec")
                    .value("terminationGracePeriodSeconds", removal_seconds);
        }
        return result;
    }

    [[nodiscard]] std::string address_of(const PodState& state) const {
        if (options_.reach == KubernetesReach::forward) return "127.0.0.1";
        const std::string& address =
            options_.reach == KubernetesReach::node ? state.host_ip : state.pod_ip;
        if (address.empty())
            throw IoError("Kubernetes does not say the address of the pod on " + state.node);
        return address;
    }

    [[nodiscard]] int port_of(const std::string& name) const {
        const std::scoped_lock lock(mutex_);
        return looks_[name].port;
    }

    /// A machine that is reached refuses where nobody listens; else the way is at fault.
    [[nodiscard]] static std::optional<Failure> unreachable(const std::string& address, int port) {
        const int error = connection_error(address, std::to_string(port));
        if (error == 0 || error == ECONNREFUSED || error == ECONNRESET) return std::nullopt;
        return Failure{FailureKind::infrastructure,
                       "the engine runs, and this machine cannot reach " + address + " port " +
                           std::to_string(port) + " (" + std::generic_category().message(error) +
                           "): say `reach: forward`, or run in the cluster"};
    }

    /// Whether an engine is behind the port once the client has forwarded it again: kubectl itself
    /// takes connections too, and drops them where nobody listens in the pod.
    [[nodiscard]] static bool comes_to_answer(int port) {
        constexpr auto within = 10s;
        Endpoint engine;
        engine.url = "http://127.0.0.1:" + std::to_string(port);
        for (const auto begin = Clock::now(); Clock::now() - begin < within;
             std::this_thread::sleep_for(200ms))
            if (get(engine, "/", 2).error.empty()) return true;
        return false;
    }

    [[nodiscard]] double since_launch(const std::string& name) const {
        const std::scoped_lock lock(mutex_);
        return std::chrono::duration<double>(Clock::now() - looks_[name].begin).count();
    }

    /// A job without a pod: it is new, it is held back by a queue, or its pod may not be made,
    /// which its events say. Throws UsageError where the API server refuses what it asks for,
    /// IoError where it is the cluster that fails.
    [[nodiscard]] std::string why_no_pod(const std::string& name, double seconds) const {
        constexpr double usual_seconds = 3;
        constexpr double longest_seconds = 60;
        if (seconds < usual_seconds) return "the job is being made";
        const Json job = kubectl_.json({"get", "job", name, "--ignore-not-found"});
        if (job.is_null()) {
            if (seconds > longest_seconds)
                throw IoError("there has been no job " + name + " for a minute");
            return "the job is being made";
        }
        if (job.at("spec").value("suspend", false))
            return "the job is held back by its queue (it is suspended)";
        std::string last;
        try {
            const Json events = kubectl_.json(
                {"get", "events",
                 "--field-selector=involvedObject.name=" + name + ",reason=FailedCreate"},
                0ms);
            for (const Json& event :
                 events.is_object() ? events.value("items", Json::array()) : Json::array())
                last = event.value("message", "");
        } catch (const KubectlError&) {
            last.clear();  // events may not be ours to read
        }
        if (last.empty()) return "the job has no pod yet";
        if (seconds > longest_seconds && last.find("exceeded quota") == std::string::npos) {
            const std::string what = "Kubernetes makes no pod for the job " + name + ": " + last;
            const bool refused = last.find("is forbidden: ") != std::string::npos ||
                                 last.find(" is invalid: ") != std::string::npos;
            if (refused)
                throw UsageError(what + "; mend the template, or make there what it names");
            throw IoError(what);
        }
        return "the job has no pod yet: " + last;
    }

    /// Labels of nodes are the cluster's to show: where this login may not see them, the name is
    /// all.
    [[nodiscard]] Place place_on(const std::string& node) const {
        {
            const std::scoped_lock lock(mutex_);
            if (const auto known = nodes_.find(node); known != nodes_.end()) return known->second;
        }
        const Kubectl::Answer answer =
            kubectl_.once({"get", "node", node, "--output=jsonpath={.metadata.labels}"}, "", 20s);
        Place result = node_facts(node, labels_in(answer.exit_code == 0 ? answer.output : ""));
        const bool for_good =
            answer.exit_code == 0 || answer.complaint.find("orbidden") != std::string::npos;
        if (!for_good) return result;  // the next trial asks again
        const std::scoped_lock lock(mutex_);
        return nodes_.emplace(node, std::move(result)).first->second;
    }

    /// Where these run; of several nodes, what differs is listed.
    [[nodiscard]] Place place_of_all(const std::map<std::int64_t, Json>& pods) const {
        Place result;
        for (const auto& [index, pod] : pods)
            add_place(result, place_on(pod_state_of(pod, container_).node));
        return result;
    }

    /// The API server asks the node for a line of the log.
    [[nodiscard]] std::optional<Failure> node_silent(const Json& pod, const PodState& state) const {
        try {
            constexpr auto patience_for_a_line = 5s;
            (void)kubectl_.ask({"logs", pod.at("metadata").at("name").get<std::string>(),
                                "--container=" + container_, "--tail=1"},
                               "", patience_for_a_line);
            return std::nullopt;
        } catch (const KubectlError& error) {
            return Failure{FailureKind::infrastructure,
                           "the node " + state.node + " does not answer: " + error.what()};
        }
    }

    /// Not where its pod is on a node that does not answer: no pod of ours comes to that node, and
    /// the job goes when the node is back or is removed.
    [[nodiscard]] bool keeps_others_out(const std::string& name) const override {
        try {
            const std::map<std::int64_t, Json> pods = pods_of(name);
            return std::none_of(pods.begin(), pods.end(), [&](const auto& one) {
                const PodState state = pod_state_of(one.second, container_);
                return state.phase != PodState::Phase::ended && !state.node.empty() &&
                       node_silent(one.second, state);
            });
        } catch (const IoError&) {
            return true;
        }
    }

    /// Deletes it and waits. Never by force: that says it is gone while it is not. Why it would not
    /// go; empty: it is gone.
    [[nodiscard]] std::string removed(const std::string& name) const override {
        double seconds = removal_seconds;
        {
            const std::scoped_lock lock(mutex_);
            if (const auto known = looks_.find(name); known != looks_.end())
                seconds += known->second.grace_seconds;
        }
        const auto until = Clock::now() + milliseconds(static_cast<std::int64_t>(seconds * 1000));
        const std::string bound = std::to_string(static_cast<std::int64_t>(std::ceil(seconds)));
        for (auto pause = 200ms;; pause = std::min(2 * pause, milliseconds(5000))) {
            constexpr auto longer = 10s;
            const auto answer =
                kubectl_.once({"delete", "job", name, "--cascade=foreground", "--ignore-not-found",
                               "--wait=true", "--timeout=" + bound + "s"},
                              "", std::chrono::ceil<milliseconds>(until + longer - Clock::now()));
            if (answer.exit_code == 0) return {};
            if (!is_temporary_complaint(answer.complaint) || Clock::now() + pause > until)
                return "the job " + name + " would not go: " + answer.complaint;
            std::this_thread::sleep_for(pause);
        }
    }

    const KubernetesOptions options_;
    const std::string container_;
    const Kubectl kubectl_;
    mutable std::mutex mutex_{};
    mutable std::map<std::string, Look> looks_{};
    mutable std::map<std::string, Place> nodes_{};  ///< by name, once asked
};

}  // namespace

std::shared_ptr<const Launcher> kubernetes_launcher(KubernetesOptions options) {
    check_options("kubernetes", options.why_invalid());
    return std::make_shared<KubernetesLauncher>(std::move(options));
}

}  // namespace servetune
