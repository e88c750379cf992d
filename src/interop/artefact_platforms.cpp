// SPDX-License-Identifier: Apache-2.0
// Artefacts for platforms that start engines with words of their own: they take flags, each in its
// way.
#include "artefact_words.hpp"
#include "artefact_writers.hpp"
#include "base/nesting.hpp"

#include "servetune/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <regex>

namespace servetune {
namespace {

void refuse_engine(const DeploymentModel& deployment, const std::string& platform) {
    throw UsageError(platform + " does not run " + deployment.engine +
                     " (`started_by` in its engine file)");
}

/// How a word is shown where no secret may stand.
std::string shown_word(const Word& word) {
    std::string result;
    for (const WordPiece& piece : word)
        result += piece.variable ? "${" + piece.text + "}" : piece.text;
    return result;
}

std::string plain_word(const Word& word, const std::string& platform) {
    if (has_variable(word))
        throw UsageError("'" + shown_word(word) + "' has a secret, and " + platform +
                         " puts no variable into flags; say it in an environment variable that the "
                         "engine reads");
    return word.empty() ? "" : word.front().text;
}

std::string left_out_line(const std::string& platform, const std::string& flags) {
    return flags.empty()
               ? ""
               : comment_line("Not in this file, flags of the engine's own server, which " +
                              platform + " replaces: " + flags);
}

std::string other_version_line(const std::string& platform) {
    return comment_line("The engine in " + platform +
                        "'s image must have the version that was measured.");
}

std::string fixed_port_line(const DeploymentModel& deployment, const std::string& service) {
    return deployment.first().port == 8000
               ? ""
               : comment_line("It answers at port 8000 of the Service " + service + ".");
}

/// The deployment without secrets that only flags have which are left out.
DeploymentModel with_kept_flags(DeploymentModel deployment, const EngineFlags& flags) {
    DeployedEngine& engine = deployment.engines.front();
    engine.variables.clear();
    for (const auto& [name, word] : engine.environment)
        if (has_variable(word)) engine.variables.insert(name);
    for (const std::vector<Word>& flag : flags.kept)
        for (const Word& word : flag)
            for (const WordPiece& piece : word)
                if (piece.variable) engine.variables.insert(piece.text);
    return deployment;
}

/// The operator reads Dynamo's version from the image's tag, and refuses a component of an image
/// without one (deploy/operator/api/v1beta1/dynamocomponentdeployment_types.go).
std::string dynamo_version_line(const Word& image) {
    static const std::regex version(":v?[0-9]+[.][0-9]+[.][0-9]+([-+].*)?$");
    const bool has_version = !image.empty() && std::regex_search(image.front().text, version);
    return has_version ? ""
                       : comment_line(
                             "The image's tag is no version: add runtimeVersionOverride, Dynamo's "
                             "version, to both components.");
}

/// Go templates are put into the whole of an LLMInferenceService, the user's words too (kserve:
/// ReplaceVariables in pkg/controller/v1alpha2/llmisvc/config_merge.go).
std::string without_templates(const std::string& text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool opens = text.compare(i, 2, "{{") == 0;
        result += opens ? "{{`{{`}}" : std::string(1, text[i]);
        if (opens) ++i;
    }
    return result;
}

/// An argument of the engine in Python, of a flag: `max_num_seqs`, and what it is set to.
struct EngineArgument {
    std::vector<std::string> path;  ///< `--compilation-config.mode` is two
    nlohmann::ordered_json value;
};

nlohmann::ordered_json argument_value(const std::string& text, const std::string& flag) {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    const bool scaled = text.size() > 1 &&
                        std::string_view("kKmMgGtT").find(text.back()) != std::string_view::npos &&
                        text.find_first_not_of("0123456789.") == text.size() - 1;
    if (scaled)
        throw UsageError(flag + " " + text + ": Ray's engine_kwargs take no '" + text.back() +
                         "', write the number out");
    const auto parsed = shallow_json<nlohmann::ordered_json>(text);
    const bool number = parsed.is_number() &&
                        (digits || text.find_first_not_of("0123456789.eE+-") == std::string::npos);
    return number || parsed.is_boolean() || parsed.is_structured() ? parsed
                                                                   : nlohmann::ordered_json(text);
}

EngineArgument engine_argument(const std::vector<Word>& flag) {
    const std::string first = plain_word(flag.front(), "Ray");
    const auto equals = first.find('=');
    std::string name = first.substr(0, equals);
    if (!name.starts_with("--"))
        throw UsageError("'" + name +
                         "' has no name in Ray's engine_kwargs: write the whole name of the flag");
    std::vector<std::string> values;
    if (equals != std::string::npos) values.push_back(first.substr(equals + 1));
    for (std::size_t i = 1; i < flag.size(); ++i) values.push_back(plain_word(flag[i], "Ray"));
    const bool off = values.empty() && name.starts_with("--no-");
    name.erase(0, off ? 5 : 2);
    EngineArgument result;
    for (std::size_t at = 0; at != std::string::npos;) {
        const auto dot = name.find('.', at);
        result.path.push_back(name.substr(at, dot == std::string::npos ? dot : dot - at));
        at = dot == std::string::npos ? dot : dot + 1;
    }
    std::replace(result.path.front().begin(), result.path.front().end(), '-', '_');
    if (values.empty()) result.value = !off;
    else if (values.size() == 1) result.value = argument_value(values.front(), "--" + name);
    else
        for (const std::string& value : values)
            result.value.push_back(argument_value(value, "--" + name));
    return result;
}

nlohmann::ordered_json engine_kwargs(const std::vector<std::vector<Word>>& flags) {
    nlohmann::ordered_json result = nlohmann::ordered_json::object();
    for (const std::vector<Word>& flag : flags) {
        const EngineArgument argument = engine_argument(flag);
        nlohmann::ordered_json* at = &result;
        for (const std::string& key : argument.path) {
            if (!at->is_object() && !at->is_null())
                throw UsageError("flags that set '" + key +
                                 "' twice have no place in engine_kwargs");
            at = &(*at)[key];
        }
        if (at->is_object() && argument.value.is_object()) at->update(argument.value);
        else *at = argument.value;
    }
    return result;
}

/// GPUStack splits an entry that begins with a flag as a shell does, keeps others as they are, and
/// cuts blanks at both ends (flatten_to_argv in gpustack/utils/command.py).
void add_backend_parameters(const Word& word, nlohmann::ordered_json& list) {
    const std::string text = plain_word(word, "GPUStack");
    const auto safe = [](const std::string& part) {
        return std::all_of(part.begin(), part.end(), [](unsigned char c) {
            return std::isalnum(c) != 0 ||
                   std::string_view("-_=./:,@+%").find(static_cast<char>(c)) !=
                       std::string_view::npos;
        });
    };
    const auto whole = [&](const std::string& value) {
        const bool cut = value.empty() ||
                         std::isspace(static_cast<unsigned char>(value.front())) != 0 ||
                         std::isspace(static_cast<unsigned char>(value.back())) != 0;
        if (cut || value.starts_with("-"))
            throw UsageError("GPUStack cannot hold the value '" + value + "' of a flag");
        return value;
    };
    if (!text.starts_with("-")) list.push_back(whole(text));
    else if (safe(text)) list.push_back(text);
    else if (const auto equals = text.find('=');
             equals != std::string::npos && safe(text.substr(0, equals))) {
        list.push_back(text.substr(0, equals));
        list.push_back(whole(text.substr(equals + 1)));
    } else throw UsageError("GPUStack cannot hold the word '" + text + "'");
}

}  // namespace

EngineFlags engine_flags(const DeploymentModel& deployment) {
    std::vector<std::vector<Word>> flags;
    for (const Word& word : deployment.first().flags()) {
        const bool flag = !word.empty() && !word.front().variable && word.front().text.size() > 1 &&
                          word.front().text.front() == '-' &&
                          std::isdigit(static_cast<unsigned char>(word.front().text[1])) == 0;
        if (flag || flags.empty()) flags.emplace_back();
        flags.back().push_back(word);
    }
    const auto of_server = [&](const std::vector<Word>& flag) {
        const std::string name = flag.front().empty() ? ""
                                                      : flag.front().front().text.substr(
                                                            0, flag.front().front().text.find('='));
        return std::any_of(deployment.platforms.server_flags.begin(),
                           deployment.platforms.server_flags.end(), [&](const std::string& one) {
                               return one.ends_with('*')
                                          ? name.starts_with(one.substr(0, one.size() - 1))
                                          : name == one;
                           });
    };
    EngineFlags result;
    for (const std::vector<Word>& flag : flags)
        if (!of_server(flag)) result.kept.push_back(flag);
        else
            for (const Word& word : flag)
                result.left_out += (result.left_out.empty() ? "" : " ") + shown_word(word);
    return result;
}

Artefact kserve_artefact(const DeploymentModel& deployment) {
    if (deployment.platforms.kserve.empty()) refuse_engine(deployment, "KServe");
    if (!deployment.mounts.empty())
        throw UsageError("KServe fetches the model itself, and " + deployment.model +
                         " is a folder here: hf://, s3://, oci:// or pvc:// wanted");
    const std::string name = yaml_scalar(deployment.name);
    // The template gives these words to `eval` within double quotes: the shell reads them once.
    const std::string words = joined(deployment.first().flags(), " ", shell_word);
    PodWish wish;
    wish.container = "main";
    wish.probes = PodWish::Probes::none;
    wish.shm = false;
    if (!words.empty())
        wish.more_environment = "- {name: " + yaml_scalar(deployment.platforms.kserve) +
                                ", value: " + kubernetes_word({{without_templates(words)}}) + "}\n";
    const PodText pod = pod_text(deployment, wish);
    std::string head =
        head_lines(deployment) + pod.what_needed + fixed_port_line(deployment, "that KServe makes");
    if (deployment.image.empty()) head += other_version_line("KServe");
    if (!deployment.first().variables.empty())
        head += comment_line(
            "KServe fetches the model itself: a token for that belongs into a Secret of its "
            "service account.");
    const std::string uri = deployment.model.find("://") == std::string::npos
                                ? "hf://" + deployment.model
                                : deployment.model;
    std::string text =
        head + pod.config_map +
        "apiVersion: serving.kserve.io/v1alpha2\nkind: LLMInferenceService\nmetadata: {name: " +
        name + "}\nspec:\n  model:\n    uri: " + yaml_scalar(uri) +
        "\n    name: " + yaml_scalar(deployment.model) +
        "\n  replicas: " + std::to_string(deployment.copies()) +
        "\n  router: {route: {}, gateway: {}, scheduler: {}}\n  template:\n" +
        indented(pod.pod, 4) + "    containers:\n" + indented(pod.containers, 6);
    // `dshm` is the template's own volume at /dev/shm, of 1 GiB.
    text += fmt::format(
                "    volumes:\n      - name: dshm\n        emptyDir: {{medium: Memory, sizeLimit: "
                "\"{}\"}}\n",
                deployment.shm_bytes) +
            indented(pod.volumes, 6);
    return {deployment.name + ".yaml", text};
}

Artefact dynamo_artefact(const DeploymentModel& deployment) {
    if (deployment.platforms.dynamo.empty()) refuse_engine(deployment, "Dynamo");
    const EngineFlags flags = engine_flags(deployment);
    PodWish wish;
    wish.container = "main";
    wish.probes = PodWish::Probes::none;  // the operator's own
    wish.shm = false;                     // sharedMemorySize
    for (const std::string& word : deployment.platforms.dynamo) {
        const bool program = wish.args.empty() && !word.starts_with("--");
        (program ? wish.command : wish.args)
            .push_back({{word == "{model}" ? deployment.model : word}});
    }
    for (const std::vector<Word>& flag : flags.kept)
        wish.args.insert(wish.args.end(), flag.begin(), flag.end());
    const PodText pod = pod_text(with_kept_flags(deployment, flags), wish);
    DeploymentModel front = deployment;
    front.engines.front() = {};
    front.mounts.clear();
    front.pod_template.clear();
    PodWish front_wish;
    front_wish.container = "main";
    front_wish.probes = PodWish::Probes::none;
    front_wish.shm = false;
    std::string text =
        head_lines(deployment) + pod.what_needed + left_out_line("Dynamo", flags.left_out) +
        fixed_port_line(deployment, deployment.name + "-frontend") + other_version_line("Dynamo") +
        dynamo_version_line(deployment.image) + pod.config_map +
        "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nmetadata: {name: " +
        yaml_scalar(deployment.name) +
        "}\nspec:\n  components:\n    - name: Frontend\n      type: frontend\n      replicas: 1\n  "
        "    podTemplate:\n"
        "        spec:\n          containers:\n" +
        indented(list_item(pod_text(front, front_wish).container), 12) +
        "    - name: Worker\n      type: worker\n      replicas: " +
        std::to_string(deployment.copies()) + "\n";
    text += fmt::format("      sharedMemorySize: \"{}\"\n      podTemplate:\n        spec:\n",
                        deployment.shm_bytes) +
            indented(pod.pod, 10) + "          containers:\n" + indented(pod.containers, 12);
    if (!pod.volumes.empty()) text += "          volumes:\n" + indented(pod.volumes, 12);
    return {deployment.name + ".yaml", text, {}, flags.left_out};
}

Artefact rayservice_artefact(const DeploymentModel& deployment) {
    if (deployment.platforms.ray.empty()) refuse_engine(deployment, "Ray Serve LLM");
    if (!deployment.first().files.empty()) throw UsageError("Ray Serve LLM takes no options file");
    const EngineFlags flags = engine_flags(deployment);
    const nlohmann::ordered_json config{
        {"model_loading_config",
         {{"model_id", deployment.model}, {"model_source", deployment.model}}},
        {"llm_engine", deployment.platforms.ray},
        {"engine_kwargs", engine_kwargs(flags.kept)},
        {"deployment_config", {{"num_replicas", deployment.copies()}}},
    };
    const nlohmann::ordered_json applications{{"applications",
                                               {{{"name", "llm"},
                                                 {"import_path", "ray.serve.llm:build_openai_app"},
                                                 {"route_prefix", "/"},
                                                 {"args", {{"llm_configs", {config}}}}}}}};
    PodWish wish;
    wish.container = "ray-worker";
    wish.probes = PodWish::Probes::none;  // KubeRay's own
    const PodText pod = pod_text(with_kept_flags(deployment, flags), wish);
    DeploymentModel head = with_kept_flags(deployment, flags);
    head.engines.front().gpus = 0;
    wish.container = "ray-head";
    wish.shm = false;
    const PodText head_pod = pod_text(head, wish);
    const std::int64_t copies = deployment.copies();
    std::string text =
        head_lines(deployment) + pod.what_needed + left_out_line("Ray", flags.left_out) +
        fixed_port_line(deployment, deployment.name + "-serve-svc") + other_version_line("Ray") +
        "apiVersion: ray.io/v1\nkind: RayService\nmetadata: {name: " +
        yaml_scalar(deployment.name) + "}\nspec:\n  serveConfigV2: |\n" +
        indented(applications.dump(2) + "\n", 4) +
        "  rayClusterConfig:\n    headGroupSpec:\n      rayStartParams: {num-cpus: \"0\", "
        "num-gpus: \"0\"}\n      template:\n"
        "        spec:\n          containers:\n" +
        indented(list_item(head_pod.container), 12);
    if (!head_pod.volumes.empty()) text += "          volumes:\n" + indented(head_pod.volumes, 12);
    text +=
        fmt::format(
            "    workerGroupSpecs:\n      - groupName: engine\n        replicas: {0}\n        "
            "minReplicas: {0}\n        maxReplicas: {0}\n"
            "        rayStartParams: {{num-gpus: \"{1}\"}}\n        template:\n          spec:\n",
            copies, gpus_of_pod(deployment)) +
        indented(pod.pod, 12) + "            containers:\n" + indented(pod.containers, 14) +
        "            volumes:\n" + indented(pod.volumes, 14);
    return {deployment.name + ".yaml", text, {}, flags.left_out};
}

Artefact gpustack_artefact(const DeploymentModel& deployment) {
    const DeployedEngine& engine = deployment.first();
    if (deployment.platforms.gpustack.empty()) refuse_engine(deployment, "GPUStack");
    if (!engine.files.empty()) throw UsageError("GPUStack takes no options file of the engine");
    const bool path = !deployment.mounts.empty();
    nlohmann::ordered_json model{{"name", deployment.name},
                                 {"source", path ? "local_path" : "huggingface"},
                                 {path ? "local_path" : "huggingface_repo_id", deployment.model},
                                 {"replicas", deployment.copies()},
                                 {"categories", {"llm"}},
                                 {"backend", deployment.platforms.gpustack},
                                 {"backend_parameters", nlohmann::ordered_json::array()}};
    for (const Word& word : engine.flags())
        add_backend_parameters(word, model["backend_parameters"]);
    Artefact result{deployment.name + ".json", ""};
    std::vector<std::string> missing;
    for (const auto& [name, word] : engine.environment)
        if (has_variable(word)) missing.push_back(name);
        else model["env"][name] = word.empty() ? "" : word.front().text;
    if (engine.gpus > 0) model["gpu_selector"] = {{"gpus_per_replica", engine.gpus}};
    if (!deployment.image.empty()) model["image_name"] = plain_word(deployment.image, "GPUStack");
    // JSON has no comments: the description is what a person reads there.
    std::string description = deployment.title;
    for (const std::string& note : deployment.to_change)
        description += (description.empty() ? "" : " ") + note;
    if (!missing.empty()) {
        result.left_out = fmt::format("{}", fmt::join(missing, " "));
        description += (description.empty() ? "" : " ") + ("Set its secrets: " + result.left_out);
    }
    if (!description.empty()) model["description"] = description;
    result.text = model.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    return result;
}

}  // namespace servetune
