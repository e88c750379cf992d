// SPDX-License-Identifier: Apache-2.0
#include "artefact_values.hpp"

#include "base/nesting.hpp"
#include "servetune/error.hpp"
#include "template_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <regex>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Flags = std::vector<std::vector<Word>>;  ///< a flag, with the words that are its values

std::string word_value(const Word& word) {
    std::string result;
    for (const WordPiece& piece : word)
        result += piece.variable ? variable_mark + piece.text + variable_mark : piece.text;
    return result;
}

OrderedJson word_values(const std::vector<Word>& words) {
    OrderedJson result = OrderedJson::array();
    for (const Word& word : words) result.push_back(word_value(word));
    return result;
}

OrderedJson environment_value(const std::string& name, const Word& word) {
    Word assignment{{name + "="}};
    assignment.insert(assignment.end(), word.begin(), word.end());
    const bool secret = has_variable(word);
    return {{"variable", name},
            {"secret", secret},
            {"value", word_value(secret ? Word{{name, true}} : word)},
            {"assignment", word_value(assignment)}};
}

OrderedJson engine_values(const DeploymentModel& deployment, std::size_t i) {
    const DeployedEngine& engine = deployment.engines[i];
    const bool alone = deployment.engines.size() == 1;
    OrderedJson result{{"role", engine.role},
                       {"called", !engine.role.empty() ? engine.role
                                  : alone              ? "engine"
                                                       : fmt::format("engine-{}", i)},
                       {"argv", word_values(engine.argv)},
                       {"program", word_value(engine.argv.front())},
                       {"rest", word_values({engine.argv.begin() + 1, engine.argv.end()})},
                       {"port", engine.port},
                       {"container_port", deployment.first().port},
                       {"gpus", engine.gpus},
                       {"takes_gpus", engine.gpus > 0},
                       {"devices", engine.devices},
                       {"variables", engine.variables},
                       {"environment", OrderedJson::array()},
                       {"own_environment", OrderedJson::array()},
                       {"shared_environment", OrderedJson::array()},
                       {"files", OrderedJson::array()},
                       {"binds", OrderedJson::array()}};
    const auto shared = [&](const auto& entry) {
        return std::all_of(
            deployment.engines.begin(), deployment.engines.end(), [&](const DeployedEngine& other) {
                const auto found = other.environment.find(entry.first);
                return found != other.environment.end() && found->second == entry.second;
            });
    };
    for (const auto& entry : engine.environment) {
        const OrderedJson value = environment_value(entry.first, entry.second);
        result["environment"].push_back(value);
        result[shared(entry) ? "shared_environment" : "own_environment"].push_back(value);
    }
    for (const std::string& path : deployment.mounts)
        result["binds"].push_back({{"source", path}, {"target", path}});
    for (const auto& [name, content] : engine.files) {
        result["files"].push_back({{"file", name}, {"content", content}});
        result["binds"].push_back({{"source", "./" + name}, {"target", "/run/servetune/" + name}});
    }
    return result;
}

[[noreturn]] void refuse_engine(const DeploymentModel& deployment, const char* platform) {
    throw UsageError(std::string(platform) + " does not run " + deployment.engine +
                     " (`started_by` in its engine file)");
}

/// How a word is shown where no secret may stand.
std::string shown_word(const Word& word) {
    std::string result;
    for (const WordPiece& piece : word)
        result += piece.variable ? "${" + piece.text + "}" : piece.text;
    return result;
}

std::string word_without_secret(const Word& word, const char* platform) {
    if (has_variable(word))
        throw UsageError("'" + shown_word(word) + "' has a secret, and " + platform +
                         " puts no variable into flags; say it in an environment variable that the "
                         "engine reads");
    return word.empty() ? "" : word.front().text;
}

/// The engine's flags, without those that only its own HTTP server has (PlatformStarts), which are
/// added to `left_out`.
Flags flags_for_platform(const DeploymentModel& deployment, std::string& left_out) {
    Flags flags;
    for (const Word& word : deployment.first().flags()) {
        const std::string text = shown_word(word);
        const bool flag = text.size() > 1 && text.front() == '-' &&
                          std::isdigit(static_cast<unsigned char>(text[1])) == 0;
        if (flag || flags.empty()) flags.emplace_back();
        flags.back().push_back(word);
    }
    std::erase_if(flags, [&](const std::vector<Word>& flag) {
        const std::string text = shown_word(flag.front());
        const std::string name = text.substr(0, text.find('='));
        const std::vector<std::string>& server = deployment.platforms.server_flags;
        if (std::none_of(server.begin(), server.end(), [&](const std::string& one) {
                return one.ends_with('*') ? name.starts_with(one.substr(0, one.size() - 1))
                                          : name == one;
            }))
            return false;
        for (const Word& word : flag) left_out += (left_out.empty() ? "" : " ") + shown_word(word);
        return true;
    });
    return flags;
}

/// Values of a platform that answers requests itself: flags of the engine's own server are left
/// out, and so are secrets that only these have.
void add_platform(const DeploymentModel& deployment, const Flags& flags, const char* platform,
                  const char* service_ending, const std::string& left_out, OrderedJson& values) {
    std::set<std::string> variables;
    const DeployedEngine& engine = deployment.first();
    for (const auto& [name, word] : engine.environment)
        if (has_variable(word)) variables.insert(name);
    for (const std::vector<Word>& flag : flags)
        for (const Word& word : flag)
            for (const WordPiece& piece : word)
                if (piece.variable) variables.insert(piece.text);
    values.update(OrderedJson{
        {"variables", variables},
        {"has_environment",
         values["has_environment"] == true && (!variables.empty() || !engine.environment.empty() ||
                                               !values["their_environment"].empty())},
        {"platform", platform},
        {"service_ending", service_ending},
        {"left_out", left_out}});
}

OrderedJson engine_argument_value(const std::string& text, const std::string& flag) {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if (text.size() > 1 &&
        std::string_view("kKmMgGtT").find(text.back()) != std::string_view::npos &&
        text.find_first_not_of("0123456789.") == text.size() - 1)
        throw UsageError(flag + " " + text + ": Ray's engine_kwargs take no '" + text.back() +
                         "', write the number out");
    const auto parsed = shallow_json<OrderedJson>(text);
    const bool number = parsed.is_number() &&
                        (digits || text.find_first_not_of("0123456789.eE+-") == std::string::npos);
    return number || parsed.is_boolean() || parsed.is_structured() ? parsed : OrderedJson(text);
}

/// Puts a flag into the arguments of the engine in Python: `max_num_seqs`;
/// `--compilation-config.mode` is a key of an object.
void add_engine_argument(const std::vector<Word>& flag, OrderedJson& arguments) {
    const std::string first = word_without_secret(flag.front(), "Ray");
    const auto equals = first.find('=');
    const std::string spelled = first.substr(0, equals);
    if (!spelled.starts_with("--"))
        throw UsageError("'" + spelled +
                         "' has no name in Ray's engine_kwargs: write the whole name of the flag");
    std::vector<std::string> values;
    if (equals != std::string::npos) values.push_back(first.substr(equals + 1));
    for (std::size_t i = 1; i < flag.size(); ++i)
        values.push_back(word_without_secret(flag[i], "Ray"));
    const bool off = values.empty() && spelled.starts_with("--no-");
    std::string rest = spelled.substr(off ? 5 : 2);
    const std::string base = rest.substr(0, rest.find('.'));
    std::replace(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(base.size()), '-', '_');
    OrderedJson value = values.empty() ? OrderedJson(!off) : OrderedJson::array();
    for (const std::string& one : values) value.push_back(engine_argument_value(one, spelled));
    if (values.size() == 1) value = OrderedJson(value.front());
    OrderedJson* at = &arguments;
    for (std::size_t from = 0; from != std::string::npos;) {
        const auto dot = rest.find('.', from);
        const std::string key = rest.substr(from, dot == std::string::npos ? dot : dot - from);
        if (!at->is_object() && !at->is_null())
            throw UsageError("flags that set '" + key + "' twice have no place in engine_kwargs");
        at = &(*at)[key];
        from = dot == std::string::npos ? dot : dot + 1;
    }
    if (at->is_object() && value.is_object()) at->update(value);
    else *at = value;
}

/// GPUStack splits an entry that begins with a flag as a shell does, keeps others as they are, and
/// cuts blanks at both ends (flatten_to_argv in gpustack/utils/command.py).
void add_backend_parameters(const Word& word, OrderedJson& list) {
    const std::string text = word_without_secret(word, "GPUStack");
    const auto whole = [&](const std::string& value) {
        if (value.empty() || value.starts_with("-") ||
            std::isspace(static_cast<unsigned char>(value.front())) != 0 ||
            std::isspace(static_cast<unsigned char>(value.back())) != 0)
            throw UsageError("GPUStack cannot hold the value '" + value + "' of a flag");
        list.push_back(value);
    };
    constexpr std::string_view safe =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@+%";
    const auto equals = text.find('=');
    if (!text.starts_with("-")) return whole(text);
    if (text.find_first_not_of(safe) == std::string::npos) return list.push_back(text);
    if (text.substr(0, equals).find_first_not_of(safe) != std::string::npos ||
        equals == std::string::npos)
        throw UsageError("GPUStack cannot hold the word '" + text + "'");
    list.push_back(text.substr(0, equals));
    whole(text.substr(equals + 1));
}

/// What else an object of the user's says, but for these keys.
template <std::size_t n>
OrderedJson further_keys(const nlohmann::json& object,
                         const std::array<std::string_view, n>& ours) {
    OrderedJson result = OrderedJson::array();
    for (const auto& [key, value] : object.items())
        if (std::find(ours.begin(), ours.end(), key) == ours.end())
            result.push_back({{"key", key}, {"value", value.dump()}});
    return result;
}

OrderedJson texts_of_items(const nlohmann::json& list) {
    OrderedJson result = OrderedJson::array();
    for (const nlohmann::json& item : list) result.push_back(item.dump());
    return result;
}

/// The user's pod; one container without anything where the study has none.
struct PodTemplate {
    explicit PodTemplate(const std::string& text) {
        const auto pod = shallow_json<nlohmann::json>(text);
        const auto containers = nlohmann::json::json_pointer("/spec/containers");
        if (!pod.is_object() || pod.value(containers, nlohmann::json::array()).empty()) return;
        spec = pod["spec"];
        for (std::size_t i = 0; i < spec["containers"].size(); ++i)
            if (spec["containers"][i].value("name", "") == "engine") engine = i;
    }
    [[nodiscard]] const nlohmann::json& engine_container() const {
        return spec["containers"][engine];
    }

    nlohmann::json spec = {{"containers", nlohmann::json::array({nlohmann::json::object()})}};
    std::size_t engine = 0;  ///< which of the containers: the one of that name, else the first
};

/// The pod of the engine. `gpus`: that its container asks for; `shm`: it gets a /dev/shm.
void add_pod_with(const DeploymentModel& deployment, OrderedJson& values, std::int64_t gpus,
                  bool shm) {
    if (has_variable(deployment.image))
        throw UsageError(
            "the image has a secret, and Kubernetes puts none in there; say it with --image");
    const DeployedEngine& engine = deployment.first();
    const PodTemplate pod(deployment.pod_template);
    const nlohmann::json& container = pod.engine_container();
    const auto none = nlohmann::json::array();
    const nlohmann::json their_mounts = container.value("volumeMounts", none),
                         their_volumes = pod.spec.value("volumes", none);
    OrderedJson mounts = OrderedJson::array();
    const auto mount = [&](std::string name, const std::string& path, const char* what) {
        for (const auto& one : their_mounts)
            if (one.value("mountPath", "") == path) return;  // theirs is there
        for (const auto& volume : their_volumes)
            if (volume.value("name", "") == name) name.insert(0, "servetune-");
        mounts.push_back({{"mount", name},
                          {"path", path},
                          {"memory", false},
                          {"model", false},
                          {"map", false},
                          {"read_only", what != std::string_view("memory")}});
        mounts.back()[what] = true;
    };
    if (shm) mount("shm", "/dev/shm", "memory");
    for (std::size_t i = 0; i < deployment.mounts.size(); ++i)
        mount(fmt::format("model-{}", i), deployment.mounts[i], "model");
    if (!engine.files.empty()) mount("files", "/run/servetune", "map");
    nlohmann::json resources = container.value("resources", nlohmann::json::object());
    if (!resources.empty() && gpus > 0) resources["limits"][deployment.device_resource] = gpus;
    OrderedJson their_environment = OrderedJson::array(), others = OrderedJson::array();
    for (const auto& item : container.value("env", none))
        if (const std::string name = item.value("name", "");
            !engine.environment.contains(name) && !engine.variables.contains(name))
            their_environment.push_back(item.dump());
    for (std::size_t i = 0; i < pod.spec["containers"].size(); ++i)
        if (i != pod.engine) others.push_back(pod.spec["containers"][i].dump());
    constexpr std::array<std::string_view, 8> of_container{
        "name",      "image",        "imagePullPolicy", "env",
        "resources", "volumeMounts", "lifecycle",       "workingDir"};
    constexpr std::array<std::string_view, 5> of_pod{"containers", "volumes", "restartPolicy",
                                                     "terminationGracePeriodSeconds",
                                                     "enableServiceLinks"};
    constexpr double period_seconds = 10;
    values.update(OrderedJson{
        {"pull_policy", container.value("imagePullPolicy", "IfNotPresent")},
        {"command", word_values({engine.argv.front()})},
        {"args", values["rest"]},
        {"has_environment",
         !engine.environment.empty() || !engine.variables.empty() || !their_environment.empty()},
        {"their_environment", their_environment},
        {"flags_variable", ""},
        {"working_folder", container.value("workingDir", "")},
        {"device_resource", deployment.device_resource},
        {"gpus", gpus},
        {"takes_gpus", gpus > 0},
        {"resources", resources.empty() ? "" : resources.dump()},
        {"of_guide", false},
        {"ready_path", deployment.ready_path},
        {"failures_at_start",
         static_cast<int>(std::ceil(deployment.ready_within_seconds / period_seconds)) + 1},
        {"lifecycle", container.contains("lifecycle") ? container["lifecycle"].dump() : ""},
        {"container_more", further_keys(container, of_container)},
        {"pod_more", further_keys(pod.spec, of_pod)},
        {"other_containers", others},
        {"their_mounts", texts_of_items(their_mounts)},
        {"their_volumes", texts_of_items(their_volumes)},
        {"mounts", mounts},
        {"mounted", !mounts.empty() || !their_mounts.empty()},
        {"has_volumes", !mounts.empty() || !their_volumes.empty()},
        {"spread", deployment.copies() > 1},
        {"other_port", engine.port != 8000}});
}

}  // namespace

OrderedJson values_of(const DeploymentModel& deployment) {
    OrderedJson engines = OrderedJson::array(), head = OrderedJson::array();
    std::set<std::string> variables;
    std::int64_t gpus = 0;
    for (std::size_t i = 0; i < deployment.engines.size(); ++i) {
        engines.push_back(engine_values(deployment, i));
        const DeployedEngine& engine = deployment.engines[i];
        variables.insert(engine.variables.begin(), engine.variables.end());
        gpus += engine.gpus;
    }
    if (!deployment.title.empty()) head.push_back(deployment.title);
    for (const std::string& note : deployment.to_change) head.push_back(note);
    const bool several = deployment.engines.size() > 1;
    OrderedJson values = engines.front();
    values.update(OrderedJson{{"name", deployment.name},
                              {"head", head},
                              {"model_name", deployment.model},
                              {"image", word_value(deployment.image)},
                              {"shm_bytes", deployment.shm_bytes},
                              {"copies", deployment.copies()},
                              {"count", deployment.engines.size()},
                              {"several", several},
                              {"replicas", several && !deployment.has_roles()},
                              {"roles", deployment.has_roles()},
                              {"last_port", deployment.engines.back().port},
                              {"all_gpus", gpus},
                              {"takes_all_gpus", gpus > 0},
                              {"variables", variables},
                              {"engines", engines}});
    return values;
}

void add_pod(const DeploymentModel& deployment, OrderedJson& values) {
    add_pod_with(deployment, values, deployment.first().gpus, true);
}

void add_llm_d(const DeploymentModel& deployment, OrderedJson& values) {
    add_pod(deployment, values);
    values["of_guide"] = true;
    values["beside"]["kustomization.yaml"] = filled_artefact(kustomization_yaml_in.text, values);
    if (!deployment.first().files.empty())
        values["beside"]["files.yaml"] = filled_artefact(config_map_yaml_in.text, values);
}

void add_kserve(const DeploymentModel& deployment, OrderedJson& values) {
    if (deployment.platforms.kserve.empty()) refuse_engine(deployment, "KServe");
    if (!deployment.mounts.empty())
        throw UsageError("KServe fetches the model itself, and " + deployment.model +
                         " is a folder here: hf://, s3://, oci:// or pvc:// wanted");
    add_pod_with(deployment, values, deployment.first().gpus, false);
    const bool hub = deployment.model.find("://") == std::string::npos;
    std::string flags;
    for (const Word& word : deployment.first().flags())
        flags += (flags.empty() ? "" : " ") + shell_place(word_value(word));
    values.update(OrderedJson{{"command", OrderedJson::array()},
                              {"args", OrderedJson::array()},
                              {"uri", (hub ? "hf://" : "") + deployment.model},
                              {"flags", flags}});
    if (flags.empty()) return;
    values["flags_variable"] = deployment.platforms.kserve;
    values["has_environment"] = true;
}

void add_dynamo(const DeploymentModel& deployment, OrderedJson& values) {
    if (deployment.platforms.dynamo.empty()) refuse_engine(deployment, "Dynamo");
    add_pod_with(deployment, values, deployment.first().gpus, false);
    std::string left_out;
    const Flags flags = flags_for_platform(deployment, left_out);
    OrderedJson command = OrderedJson::array(), args = OrderedJson::array();
    for (const std::string& word : deployment.platforms.dynamo)
        (args.empty() && !word.starts_with("--") ? command : args)
            .push_back(word == "{model}" ? deployment.model : word);
    for (const std::vector<Word>& flag : flags)
        for (const Word& word : flag) args.push_back(word_value(word));
    // The operator reads Dynamo's version from the image's tag, and refuses a component of an image
    // without one (deploy/operator/api/v1beta1/dynamocomponentdeployment_types.go).
    static const std::regex version(":v?[0-9]+[.][0-9]+[.][0-9]+([-+].*)?$");
    values.update(OrderedJson{
        {"command", command},
        {"args", args},
        {"image_has_version", std::regex_search(shown_word(deployment.image), version)}});
    add_platform(deployment, flags, "Dynamo", "-frontend", left_out, values);
}

void add_rayservice(const DeploymentModel& deployment, OrderedJson& values) {
    if (deployment.platforms.ray.empty()) refuse_engine(deployment, "Ray Serve LLM");
    if (!deployment.first().files.empty()) throw UsageError("Ray Serve LLM takes no options file");
    std::string left_out;
    const Flags flags = flags_for_platform(deployment, left_out);
    OrderedJson arguments = OrderedJson::object();
    for (const std::vector<Word>& flag : flags) add_engine_argument(flag, arguments);
    const auto pod = [&](OrderedJson& into, bool head) {
        add_pod_with(deployment, into, head ? 0 : deployment.first().gpus, !head);
        into["command"] = into["args"] = OrderedJson::array();  // KubeRay's own
        add_platform(deployment, flags, "Ray", "-serve-svc", left_out, into);
    };
    OrderedJson head = values;
    pod(head, true);
    pod(values, false);
    values.update(OrderedJson{{"ray_head", head},
                              {"backend", deployment.platforms.ray},
                              {"engine_kwargs", json_text(arguments, 2)}});
}

void add_gpustack(const DeploymentModel& deployment, OrderedJson& values) {
    const DeployedEngine& engine = deployment.first();
    if (deployment.platforms.gpustack.empty()) refuse_engine(deployment, "GPUStack");
    if (!engine.files.empty()) throw UsageError("GPUStack takes no options file of the engine");
    (void)word_without_secret(deployment.image, "GPUStack");
    OrderedJson parameters = OrderedJson::array(), set = OrderedJson::object();
    for (const Word& word : engine.flags()) add_backend_parameters(word, parameters);
    std::vector<std::string> missing, description = values["head"];
    for (const auto& [name, word] : engine.environment)
        if (has_variable(word)) missing.push_back(name);
        else set[name] = word_value(word);
    const std::string left_out = fmt::format("{}", fmt::join(missing, " "));
    // JSON has no comments: the description is what a person reads there.
    if (!missing.empty()) description.push_back("Set its secrets: " + left_out);
    const bool local = !deployment.mounts.empty();
    values.update(OrderedJson{{"local", local},
                              {"source", local ? "local_path" : "huggingface"},
                              {"backend", deployment.platforms.gpustack},
                              {"parameters", json_text(parameters, 2)},
                              {"variables_set", set.empty() ? "" : json_text(set, 2)},
                              {"left_out", left_out},
                              {"description", fmt::format("{}", fmt::join(description, " "))}});
}

}  // namespace servetune
