// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/launcher.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// Processes of another machine, by OpenSSH's client. Keys only: nobody is there to type a
/// password.
///
/// The words of the engine, its environment and its files travel through the client's standard
/// input, so no process list shows the environment, and no shell reads the words. The other machine
/// needs sshd and a POSIX shell with coreutils, util-linux (setsid, taskset) and grep. The engine
/// ends when the connection does: a small script beside it hears from us every few seconds, and
/// ends the engine's process group when it does not for half a minute.
struct SshOptions {
    std::string host{};  ///< as `ssh` takes it: a name, user@name, or a Host of ssh_config
    std::vector<std::string>
        program{};  ///< the client and its options, such as {"ssh", "-p", "2222"}; empty: `ssh`
    /// The address of that machine that the engine listens on and the load test goes to. Empty: the
    /// engine listens on that machine's loopback, and the requests go through the connection (`ssh
    /// -L`).
    std::string address{};
    double unheard_within_seconds =
        30;  ///< the other side ends the engine where it has not heard from us for so long

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

/// Jobs of Slurm, one for each engine, by `srun` in the foreground: its output is the engine's, its
/// exit code too, and no shell or shared file is between. A job that waits in the queue has not
/// begun to start. The job is found by its name (squeue), which carries the study's mark, and ended
/// by scancel, which sends TERM, then KILL after the cluster's KillWait. Preemption, a time limit
/// and a node that is gone are the machine's fault. The nodes must see the programs and the model
/// under the same paths; a job's environment is this program's own and the study's.
struct SlurmOptions {
    /// The address of the node that the engine listens on: 0.0.0.0 for all, since nobody knows the
    /// node before. The load test goes to the node's NodeAddr.
    std::string listen{};
    std::vector<std::string>
        options{};  ///< further words of `srun`, such as --partition=gpu and --time=4:00:00
    std::string gres =
        "gpu";  ///< the name of the devices, such as gpu:h100; empty: none are asked for

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

/// Jobs of Ray, one for each engine, by the jobs REST API of its dashboard; no Python is needed
/// here. A job that waits for its devices has not begun to start. Ray leaves an engine alive when
/// its node's Ray or the head dies, so each is started by `timeout` and ends at its bound whatever
/// happens. The nodes must see the programs and the model under the same paths, and this machine
/// must reach the nodes.
struct RayOptions {
    std::string address{};     ///< of the dashboard, such as http://head:8265
    std::string token_file{};  ///< the token of Ray's authentication is in it
    std::string token_env{};   ///< or in this variable; both empty: none is sent
    int first_port = 18000,
        last_port = 18999;  ///< engines listen on ports of this range, each on another
    /// Every engine is ended so long after its start: longer than any trial takes.
    double bound_seconds = 6 * 3600;
    /// What a job asks for beside its GPUs: CPU, memory (bytes), and names of the cluster's own,
    /// such as accelerator_type:H100.
    std::map<std::string, double> resources{};

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

/// How requests get to an engine in a pod.
enum class KubernetesReach {
    pod,      ///< straight to the pod's address: this program runs in the cluster or its network
    forward,  ///< through `kubectl port-forward`: from anywhere, at the API server's speed
    node      ///< the pod has its node's network, and this program reaches that address
};
inline constexpr std::array<std::pair<KubernetesReach, std::string_view>, 3> kubernetes_reaches{
    {{KubernetesReach::pod, "pod"},
     {KubernetesReach::forward, "forward"},
     {KubernetesReach::node, "node"}}};

/// Jobs of Kubernetes, one for each engine, of one pod that is made from the user's template, by
/// kubectl: it has the user's logins, proxies and contexts. A pod that waits for a node, an image
/// or a volume has not begun to start. Eviction, preemption and a lost node are the cluster's
/// fault. The engine is the template's container named `engine`, else its only one. An engine that
/// is spread over nodes has a pod on each, which starts it once all of them are there.
struct KubernetesOptions {
    std::vector<std::string> program{};  ///< the client and its options; empty: `kubectl`
    std::string
        pod_template{};  ///< JSON of a Pod, a PodTemplate or a PodTemplateSpec; what is ours is not in it
    std::string context{};  ///< of the kubeconfig; empty: its current one, or the pod's own account
    std::string name_space{};  ///< empty: the context's
    /// Nothing: `pod` where this program runs in a pod itself, else `forward`.
    std::optional<KubernetesReach> reach{};
    std::vector<std::string>
        images{};  ///< versions that compete, the first is the default; empty: the template's image
    std::string devices =
        "nvidia.com/gpu";  ///< the resource that a layout's devices are asked for as; empty: none are asked for
    std::int64_t devices_of_trial =
        0;  ///< that a trial takes at most, for the checks before the first one; 0: not known

    /// What cannot be in these options, for a person; empty: nothing. A part of the template that
    /// is not the user's to say is named with its path and the reason.
    [[nodiscard]] std::string why_invalid() const;
};

/// Throw UsageError where the options cannot be.
[[nodiscard]] std::shared_ptr<const Launcher> ssh_launcher(SshOptions options);
[[nodiscard]] std::shared_ptr<const Launcher> slurm_launcher(SlurmOptions options);
[[nodiscard]] std::shared_ptr<const Launcher> ray_launcher(RayOptions options);
[[nodiscard]] std::shared_ptr<const Launcher> kubernetes_launcher(KubernetesOptions options);

}  // namespace servetune
