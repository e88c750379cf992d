// SPDX-License-Identifier: Apache-2.0
#include "kubernetes_checks.hpp"

#include "base/nesting.hpp"
#include "base/text.hpp"
#include "cluster_nodes.hpp"
#include "host/kept_output.hpp"
#include "kubectl.hpp"
#include "pod_manifest.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace servetune {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// What the launcher asks for, as `auth can-i VERB RESOURCE`.
struct Right {
    std::string_view verb, resource;
    enum class When { always, forward } when = When::always;
};
constexpr std::array<Right, 10> rights{{{"create", "jobs.batch"},
                                        {"get", "jobs.batch"},
                                        {"list", "jobs.batch"},
                                        {"delete", "jobs.batch"},
                                        {"get", "pods"},
                                        {"list", "pods"},
                                        {"watch", "pods"},
                                        {"get", "pods/log"},
                                        {"get", "pods/portforward", Right::When::forward},
                                        {"create", "pods/portforward", Right::When::forward}}};

bool speaks_of(const std::string& text, std::string_view words) {
    return text.find(words) != std::string::npos;
}

/// The words of an error without what only says where it was read.
std::string without_preamble(std::string text) {
    for (const std::string_view begin : {"error: ", "Error from server "})
        if (text.starts_with(begin)) text.erase(0, begin.size());
    if (const auto at = text.find("error when creating "); at != std::string::npos)
        if (const auto colon = text.find("\": ", at); colon != std::string::npos)
            text.erase(at, colon + 3 - at);
    return text;
}

class Asker {
public:
    Asker(const KubernetesOptions& options, std::chrono::milliseconds patience)
        : options_(options),
          patience_(patience),
          kubectl_(options.program, options.context, options.name_space) {}

    [[nodiscard]] std::string context() const {
        return options_.context.empty() ? std::string("the current context")
                                        : "the context '" + options_.context + "'";
    }
    [[nodiscard]] std::string name_space() const {
        return options_.name_space.empty() ? std::string("its namespace")
                                           : "the namespace '" + options_.name_space + "'";
    }

    [[nodiscard]] Kubectl::Answer ask(const std::vector<std::string>& words,
                                      const std::string& input = "") const {
        return kubectl_.once(words, input, 60s);
    }
    /// The same, again and again for a while unless `good`.
    template <class Good>
    [[nodiscard]] Kubectl::Answer ask_patiently(const std::vector<std::string>& words,
                                                Good good) const {
        const auto until = Clock::now() + patience_;
        for (auto wait = std::chrono::milliseconds(500);; wait *= 2) {
            Kubectl::Answer answer = ask(words);
            if (good(answer) || Clock::now() + wait > until) return answer;
            std::this_thread::sleep_for(wait);
        }
    }
    [[nodiscard]] bool may(std::string_view verb, std::string_view resource) const {
        return ask_patiently(words_of(verb, resource), [](const Kubectl::Answer& one) {
                   return one.exit_code == 0;
               }).exit_code == 0;
    }
    /// The same, believed at once.
    [[nodiscard]] bool may_now(std::string_view verb, std::string_view resource) const {
        return ask(words_of(verb, resource)).exit_code == 0;
    }
    /// What the API server says to a manifest; empty: it takes it.
    [[nodiscard]] std::string judged(const Json& manifest) const {
        const Kubectl::Answer answer = ask(
            {"create", "--dry-run=server", "--validate=strict", "--output=name", "--filename=-"},
            manifest.dump());
        return answer.exit_code == 0 ? "" : without_preamble(answer.complaint);
    }

private:
    static std::vector<std::string> words_of(std::string_view verb, std::string_view resource) {
        std::vector<std::string> result{"auth", "can-i", std::string(verb), std::string(resource)};
        if (const auto slash = resource.find('/');
            slash != std::string_view::npos) {  // to kubectl `pods/log` is a pod named log
            result.back() = resource.substr(0, slash);
            result.push_back("--subresource=" + std::string(resource.substr(slash + 1)));
        }
        return result;
    }
    const KubernetesOptions& options_;
    const std::chrono::milliseconds patience_;
    const Kubectl kubectl_;
};

/// `create --validate=ignore` and `--validate=strict` came with 1.25 (its changelog).
std::string wrong_with_client(const Asker& asker) {
    const Kubectl::Answer answer = asker.ask({"version", "--client", "--output=json"});
    const Json json = shallow_json<Json>(answer.output);
    const Json version =
        json.is_object() ? json.value("clientVersion", Json::object()) : Json::object();
    const std::string called = version.is_object() ? version.value("gitVersion", "") : "";
    if (answer.exit_code != 0 || called.empty())
        return "kubectl does not say its version: " + answer.complaint;
    constexpr int oldest_minor = 25;
    const int minor = std::atoi(version.value("minor", "").c_str());  // `27+` of some clouds
    if (version.value("major", "") == "1" && minor < oldest_minor)
        return "kubectl " + called + " is too old: 1.25 or newer wanted";
    return "";
}

std::string wrong_with_context(const Asker& asker, const KubernetesOptions& options) {
    if (options.context.empty()) {
        if (is_in_pod()) return "";  // its own account
        const Kubectl::Answer current = asker.ask({"config", "current-context"});
        if (current.exit_code == 0) return "";
        return "kubectl has no current context (" + without_preamble(current.complaint) +
               "): `kubectl config use-context NAME`, or say `context` of `kubernetes`";
    }
    const Kubectl::Answer known = asker.ask({"config", "get-contexts", "--output=name"});
    std::string listed;
    for (const std::string& name : lines_of(known.output)) {
        if (name == options.context) return "";
        if (!trimmed(name).empty()) listed += (listed.empty() ? "" : ", ") + name;
    }
    return "kubectl knows no context '" + options.context + "'; it knows " +
           (listed.empty() ? "none" : listed);
}

/// Asked first: an expired login and a server that is not there look alike to the questions after
/// it.
std::string wrong_with_login(const Asker& asker) {
    const auto answers = [](const Kubectl::Answer& one) {
        return one.exit_code == 0 || one.output.starts_with("no");
    };
    const Kubectl::Answer answer =
        asker.ask_patiently({"auth", "can-i", "create", "jobs.batch"}, answers);
    if (answers(answer)) return "";
    const std::string complaint = without_preamble(answer.complaint);
    for (const std::string_view words : {"Unauthorized", "must be logged in", "getting credentials",
                                         "provide credentials", "expired"})
        if (speaks_of(complaint, words))
            return "the cluster does not accept the login of " + asker.context() +
                   " (expired?): log in again until `kubectl auth can-i create jobs` answers; it "
                   "says: " +
                   complaint;
    return "the API server of " + asker.context() + " does not answer: " + complaint;
}

std::string missing_rights(const Asker& asker, const KubernetesOptions& options) {
    const auto wanted = [&](const Right& right) {
        return right.when == Right::When::always || reach_of(options) == KubernetesReach::forward;
    };
    std::string missing;
    for (const Right& right : rights)
        if (wanted(right) && !(missing.empty() ? asker.may(right.verb, right.resource)
                                               : asker.may_now(right.verb, right.resource)))
            missing += (missing.empty() ? "" : ", ") + std::string(right.verb) + " " +
                       std::string(right.resource);
    if (missing.empty()) return "";
    return "the login of " + asker.context() + " may not, in " + asker.name_space() + ": " +
           missing +
           "; ask for a Role with these verbs: `autotune init --as kubernetes` writes one";
}

/// For who may not create pods. Quantities of devices are plain numbers; scoped quotas are not for
/// all pods.
std::string wrong_with_quota(const Asker& asker, const KubernetesOptions& options) {
    if (options.devices.empty()) return "";
    const Json list =
        shallow_json<Json>(asker.ask({"get", "resourcequotas", "--output=json"}).output);
    if (!list.is_object()) return "";  // this login may not read them
    const std::string resource = "requests." + options.devices;
    for (const Json& quota : list.value("items", Json::array())) {
        const Json& spec = quota.at("spec");
        const Json status = quota.value("status", Json::object());
        const Json hard = status.value("hard", Json::object()).value(resource, Json());
        const Json used = status.value("used", Json::object()).value(resource, Json("0"));
        if (spec.contains("scopes") || spec.contains("scopeSelector") || !hard.is_string() ||
            !used.is_string())
            continue;
        if (std::atoll(used.get<std::string>().c_str()) + options.devices_of_trial >
            std::atoll(hard.get<std::string>().c_str()))
            return "exceeded quota: " + quota.at("metadata").value("name", "") +
                   ", requested: " + resource + "=" + std::to_string(options.devices_of_trial) +
                   ", used: " + resource + "=" + used.get<std::string>() +
                   ", limited: " + resource + "=" + hard.get<std::string>();
    }
    return "";
}

/// A trial as it will be, but for its words.
Json trial_like(const KubernetesOptions& options, const std::string& image) {
    LaunchRequest request;
    request.command.argv = {"true"};
    request.image = image;
    request.devices = options.devices_of_trial;
    return trial_job(options, request, "servetune-check", "check");
}

std::string wrong_with_manifest(const Asker& asker, const KubernetesOptions& options,
                                const std::string& image) {
    const Json job = trial_like(options, image);
    std::string said = asker.judged(job);
    if (said.empty() && !asker.may_now("create", "pods")) said = wrong_with_quota(asker, options);
    else if (said.empty()) {
        Json pod = job["spec"]["template"];
        pod["apiVersion"] = "v1";
        pod["kind"] = "Pod";
        pod["metadata"]["generateName"] = "servetune-check-";
        said = asker.judged(pod);
    }
    if (said.empty()) return "";
    if (speaks_of(said, "exceeded quota"))
        return "the quota of " + asker.name_space() + " leaves no room for a trial: " + said;
    if (speaks_of(said, "unknown field"))
        return "the template has a field that this cluster does not know: " + said;
    if (speaks_of(said, "namespaces") && speaks_of(said, "not found"))
        return "there is no such namespace: " + said;
    return "the cluster would refuse a trial, made of the template: " + said;
}

}  // namespace

KubernetesReach reach_of(const KubernetesOptions& options) {
    return options.reach.value_or(is_in_pod() ? KubernetesReach::pod : KubernetesReach::forward);
}

std::string kubernetes_trouble(const KubernetesOptions& options, const std::string& image,
                               std::chrono::milliseconds patience) {
    try {
        const Asker asker(options, patience);
        if (std::string why = wrong_with_client(asker); !why.empty()) return why;
        if (std::string why = wrong_with_context(asker, options); !why.empty()) return why;
        if (std::string why = wrong_with_login(asker); !why.empty()) return why;
        if (std::string why = missing_rights(asker, options); !why.empty()) return why;
        return wrong_with_manifest(asker, options, image);
    } catch (const Error& error) {
        return error.what();
    }
}

std::vector<std::string> kubernetes_remarks(const KubernetesOptions& options) {
    std::vector<std::string> result;
    try {
        const Asker asker(options, 0s);
        // Measured on one machine with kubectl 1.37; a cluster's way is longer.
        if (reach_of(options) == KubernetesReach::forward)
            result.emplace_back(
                "requests will go through the API server (kubectl port-forward): about 20 a second "
                "where each opens a connection, and "
                "0.3 ms more for each token; in the cluster autotune reaches the pods themselves");
        if (!asker.may_now("create", "pods"))
            result.push_back(
                "whether admission takes a trial's pod is seen with the first trial: this login "
                "may not create "
                "pods, which the check (`create --dry-run=server`) needs");
        const Kubectl::Answer answer =
            asker.ask({"get", "nodes", std::string("--output=") + nodes_jsonpath});
        if (answer.exit_code != 0) {
            result.push_back("whether a node fits is seen with the first trial: " +
                             (speaks_of(answer.complaint, "orbidden")
                                  ? std::string("this login may not list nodes")
                                  : without_preamble(answer.complaint)));
            return result;
        }
        const Json job = trial_like(options, "")["spec"];
        if (std::string why =
                why_no_node_fits(nodes_in(answer.output), job["template"]["spec"], options.devices,
                                 options.devices_of_trial, job["completions"].get<std::size_t>());
            !why.empty())
            result.push_back(why + "; trials wait until one does");
    } catch (const Error& error) {
        result.emplace_back(error.what());
    }
    return result;
}

}  // namespace servetune
