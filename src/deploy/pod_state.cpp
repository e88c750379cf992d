// SPDX-License-Identifier: Apache-2.0
// Words and conditions are those of Kubernetes 1.37: its API reference (Pod), "Disruptions",
// "Node-pressure Eviction", and the source of kubelet and controllers (pkg/kubelet/images/types.go,
// pkg/kubelet/container/sync_result.go, pkg/util/node/node.go); most were seen on a cluster.
#include "pod_state.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <charconv>
#include <string_view>

namespace servetune {
namespace {

using Json = nlohmann::json;
using namespace std::string_literals;

/// A registry, a volume or a webhook may be back in a while.
constexpr double minutes_of_patience = 300;
/// The kubelet reads secrets and maps through a cache, and its first look may be too early.
constexpr double short_patience = 60;

const Json& member_of_pod(const Json& object, std::string_view name) {
    static const Json none;
    if (!object.is_object()) return none;
    const auto found = object.find(name);
    return found == object.end() ? none : *found;
}

std::string pod_text(const Json& object, std::string_view name) {
    const Json& value = member_of_pod(object, name);
    return value.is_string() ? value.get<std::string>() : "";
}

/// The element of a list whose `name` is this; null where there is none.
const Json& named_status(const Json& list, const std::string& name, std::string_view key = "name") {
    static const Json none;
    if (list.is_array())
        for (const Json& one : list)
            if (pod_text(one, key) == name) return one;
    return none;
}

/// A reason and, where there is one, its message.
std::string with_message(std::string reason, const std::string& message) {
    if (message.empty() || message == reason) return reason;
    return reason.empty() ? message : reason + ": " + message;
}

/// Why a container waits, and whether it will for ever.
struct WaitingReason {
    std::string_view reason, words;
    double believed_after_seconds;
    std::string_view remedy;
};
constexpr std::array<WaitingReason, 11> waiting_reasons{{
    {"InvalidImageName", "its image has no valid name", 0, "mend `image` of the template"},
    {"ErrImageNeverPull", "its image is not on the node, and imagePullPolicy is Never", 0,
     "put the image there, or let it be pulled"},
    {"ErrImagePull", "its image cannot be pulled", minutes_of_patience,
     "look at `image` and `imagePullSecrets` of the template"},
    {"ImagePullBackOff", "its image cannot be pulled", minutes_of_patience,
     "look at `image` and `imagePullSecrets` of the template"},
    {"ImageInspectError", "its image cannot be read", minutes_of_patience,
     "look at the node's images"},
    {"RegistryUnavailable", "the image's registry does not answer", minutes_of_patience,
     "look at `image` of the template"},
    {"SignatureValidationFailed", "the image's signature is not valid", minutes_of_patience,
     "look at the cluster's image policy"},
    {"CreateContainerConfigError", "its container lacks something", short_patience,
     "make what is missing in that namespace"},
    {"CreateContainerError", "its container cannot be made", short_patience,
     "look at the template"},
    {"RunContainerError", "its container cannot be run", short_patience, "look at the template"},
    {"CrashLoopBackOff", "it ends again and again", minutes_of_patience, "look at its log"},
}};

/// Conditions DisruptionTarget.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> disruptions{{
    {"PreemptionByScheduler", "was preempted for a pod of higher priority"},
    {"PreemptionByKubeScheduler", "was preempted for a pod of higher priority"},
    {"EvictionByEvictionAPI", "was evicted, as when its node is drained"},
    {"DeletionByTaintManager", "was removed from its node, which does not answer or was tainted"},
    {"DeletionByPodGC", "lost its node"},
    {"TerminationByKubelet", "was ended by its node, for want of a resource or as it shuts down"},
}};

/// Reasons of a whole pod.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> pod_reasons{{
    {"DeadlineExceeded", "ran into its bound: raise `activeDeadlineSeconds` in the template"},
    {"Evicted", "was evicted by its node, which ran short"},
    {"NodeLost", "lost its node"},
    {"NodeShutdown", "lost its node, which shuts down"},
    {"Terminated", "was ended by its node, which shuts down"},
    {"Preempting", "was preempted for a critical pod of its node"},
    {"UnexpectedAdmissionError", "was refused by its node, as its devices could not be given out"},
    {"NodeAffinity", "was refused by its node, whose labels have changed"},
}};

template <std::size_t n>
std::string words_in_table(
    const std::array<std::pair<std::string_view, std::string_view>, n>& table,
    const std::string& name) {
    for (const auto& [known, words] : table)
        if (known == name) return std::string(words);
    return "";
}

Failure of_cluster(const std::string& pod, const std::string& what) {
    return {FailureKind::infrastructure, "the pod " + pod + " " + what};
}

bool condition_holds(const Json& condition, const char* status) {
    return pod_text(condition, "status") == status;
}

class PodReader {
public:
    PodReader(const Json& pod, const std::string& engine)
        : pod_(pod),
          spec_(member_of_pod(pod, "spec")),
          status_(member_of_pod(pod, "status")),
          engine_(engine) {}

    PodState read() {
        state_.node = pod_text(spec_, "nodeName");
        state_.pod_ip = pod_text(status_, "podIP");
        state_.host_ip = pod_text(status_, "hostIP");
        state_.deleted = !pod_text(member_of_pod(pod_, "metadata"), "deletionTimestamp").empty();
        const Json& engine = member_of_pod(
            named_status(member_of_pod(status_, "containerStatuses"), engine_), "state");
        const Json& ended = member_of_pod(engine, "terminated");
        const std::string phase = pod_text(status_, "phase");
        if (member_of_pod(ended, "exitCode").is_number_integer())
            state_.exit_code = member_of_pod(ended, "exitCode").get<int>();
        if (ended.is_object() || phase == "Failed" || phase == "Succeeded")
            state_.phase = PodState::Phase::ended;
        else if (member_of_pod(engine, "running").is_object()) state_.phase = PodState::Phase::runs;
        if (state_.phase == PodState::Phase::ended) read_end(ended);
        else if (const std::string done = disrupted(); !done.empty())
            state_.failure = of_cluster(name(), done);
        else if (phase == "Unknown")
            state_.failure = of_cluster(name(), "has a node that does not answer: " + state_.node);
        else if (state_.phase == PodState::Phase::runs) read_running();
        else read_waiting(engine);
        return state_;
    }

private:
    [[nodiscard]] std::string name() const {
        return pod_text(member_of_pod(pod_, "metadata"), "name");
    }
    [[nodiscard]] const Json& condition(const std::string& type) const {
        return named_status(member_of_pod(status_, "conditions"), type, "type");
    }

    [[nodiscard]] std::string disrupted() const {
        const Json& target = condition("DisruptionTarget");
        if (!condition_holds(target, "True")) return "";
        const std::string reason = pod_text(target, "reason");
        const std::string known = words_in_table(disruptions, reason);
        return (known.empty() ? "was disrupted" : known) + " (" +
               with_message(reason, pod_text(target, "message")) + ")";
    }

    void read_end(const Json& ended) {
        const std::string reason = pod_text(status_, "reason");
        const std::string of_engine = pod_text(ended, "reason");
        const std::string message = pod_text(ended, "message");
        if (!reason.empty()) {
            const std::string known = words_in_table(pod_reasons, reason);
            state_.failure =
                of_cluster(name(), (known.empty() ? "was ended by the cluster" : known) + " (" +
                                       with_message(reason, pod_text(status_, "message")) + ")");
        } else if (of_engine == "OOMKilled") state_.failure = out_of_memory();
        else if (const std::string done = disrupted(); !done.empty())
            state_.failure = of_cluster(name(), done);
        else if (of_engine == "ContainerStatusUnknown")
            state_.failure = of_cluster(name(), "was lost by its node: " + message);
        else if (of_engine == "StartError" || of_engine == "ContainerCannotRun")
            read_no_start(message);
        else if (!ended.is_object() && pod_text(status_, "phase") == "Failed") read_failed_before();
    }

    /// runc says `exec: "NAME": ...` where there is no such program, or it cannot be run.
    void read_no_start(const std::string& message) {
        const bool no_program = message.find(" exec: ") != std::string::npos ||
                                message.find("exec format error") != std::string::npos;
        const std::string image =
            pod_text(named_status(member_of_pod(spec_, "containers"), engine_), "image");
        state_.hopeless = no_program;
        state_.failure = no_program
                             ? Failure{FailureKind::unsupported,
                                       "the image" + (image.empty() ? "" : " '" + image + "'") +
                                           " cannot start the engine's program: " + message}
                             : of_cluster(name(), "could not start its container: " + message);
    }

    /// The pod failed before the engine began: what comes first did.
    void read_failed_before() {
        state_.failure = of_cluster(name(), "failed before its container '" + engine_ + "' began");
        for (const Json& one : all_init()) {
            const Json& ended = member_of_pod(member_of_pod(one, "state"), "terminated");
            if (!ended.is_object() || member_of_pod(ended, "exitCode") == 0) continue;
            state_.failure = of_cluster(
                name(),
                "failed, as its init container '" + pod_text(one, "name") +
                    "' ended with exit code " + member_of_pod(ended, "exitCode").dump() + " (" +
                    with_message(pod_text(ended, "reason"), pod_text(ended, "message")) + ")");
            return;
        }
    }

    [[nodiscard]] Failure out_of_memory() const {
        const Json& container = named_status(member_of_pod(spec_, "containers"), engine_);
        const std::string limit =
            pod_text(member_of_pod(member_of_pod(container, "resources"), "limits"), "memory");
        return {FailureKind::out_of_memory,
                "the pod " + name() + " was killed for want of memory: " +
                    (limit.empty()
                         ? "its container '" + engine_ + "' has no limit, so its node had no more"
                         : "the limit of its container '" + engine_ + "' is " + limit +
                               " (`resources.limits.memory` of the template; /dev/shm counts)")};
    }

    /// A lost node's pods keep their containers' last word, and only the pod is said not to be
    /// ready.
    void read_running() {
        const Json& ready = condition("Ready");
        if (condition_holds(ready, "False") &&
            condition_holds(condition("ContainersReady"), "True") &&
            pod_text(ready, "reason") != "ReadinessGatesNotReady")
            state_.failure = of_cluster(name(), "has a node that does not answer: " + state_.node);
    }

    void read_waiting(const Json& engine) {
        const Json& scheduled = condition("PodScheduled");
        if (state_.node.empty()) {
            const std::string message = pod_text(scheduled, "message");
            const bool gated = pod_text(scheduled, "reason") == "SchedulingGated";
            state_.why = gated ? "the pod is held back by its queue (scheduling gates)"
                               : "the pod waits for a node";
            if (!message.empty()) state_.why += ": " + message;
            // Nobody makes a claim but the user.
            if (message.find("persistentvolumeclaim \"") != std::string::npos &&
                message.find("not found") != std::string::npos)
                give_up(short_patience,
                        of_cluster(name(), "names a volume claim that is not there: " + message));
            return;
        }
        for (const Json& one : all_init()) {
            const Json& state = member_of_pod(one, "state");
            if (member_of_pod(state, "waiting").is_object() &&
                pod_text(member_of_pod(state, "waiting"), "reason") != "PodInitializing")
                return read_container_waits(one);
            const bool is_sidecar =
                member_of_pod(one, "started") == true;  // it runs beside the others
            if (member_of_pod(state, "running").is_object() && !is_sidecar) {
                state_.why = "the pod's init container '" + pod_text(one, "name") + "' runs on " +
                             state_.node;
                return;
            }
        }
        if (member_of_pod(engine, "waiting").is_object())
            return read_container_waits(
                named_status(member_of_pod(status_, "containerStatuses"), engine_));
        state_.why = "the pod's image and volumes are made ready on " + state_.node;
    }

    void read_container_waits(const Json& container) {
        const Json& waiting = member_of_pod(member_of_pod(container, "state"), "waiting");
        const std::string reason = pod_text(waiting, "reason");
        const std::string message = with_message(reason, pod_text(waiting, "message"));
        state_.why = "the pod's image and volumes are made ready on " + state_.node;
        for (const WaitingReason& known : waiting_reasons) {
            if (known.reason != reason) continue;
            const std::string of = "(container '" + pod_text(container, "name") + "'): ";
            state_.why = "the pod waits, as " + std::string(known.words) + " " + of + message;
            give_up(known.believed_after_seconds,
                    of_cluster(name(), "cannot start, as " + std::string(known.words) + " " + of +
                                           message + "; " + std::string(known.remedy)));
        }
    }

    void give_up(double after_seconds, Failure failure) {
        state_.failure = std::move(failure);
        state_.hopeless = true;
        state_.believed_after_seconds = after_seconds;
    }

    [[nodiscard]] const Json& all_init() const {
        static const Json none = Json::array();
        const Json& all = member_of_pod(status_, "initContainerStatuses");
        return all.is_array() ? all : none;
    }

    const Json& pod_;
    const Json& spec_;
    const Json& status_;
    const std::string& engine_;
    PodState state_{};
};

}  // namespace

std::int64_t index_of_pod(const nlohmann::json& pod) {
    const std::string text = pod_text(member_of_pod(member_of_pod(pod, "metadata"), "annotations"),
                                      "batch.kubernetes.io/job-completion-index");
    std::int64_t index = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), index);
    return index;
}

PodState pod_state_of(const nlohmann::json& pod, const std::string& engine) {
    return PodReader(pod, engine).read();
}

}  // namespace servetune
