// SPDX-License-Identifier: Apache-2.0
#include "deployment_model.hpp"

#include "base/nesting.hpp"
#include "base/variable_name.hpp"
#include "host/nvidia_smi.hpp"
#include "host/start_program.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

namespace servetune {
namespace {

/// The variable that a secret comes from; empty: none that could be read where the artefact runs.
std::string variable_of(const Redactor::Piece& secret) {
    const std::string& shown = secret.shown;
    const bool named = secret.as_it_is && shown.starts_with("${") && shown.ends_with('}');
    const std::string name = named ? shown.substr(2, shown.size() - 3) : "";
    return is_variable_name(name) ? name : "";
}

/// Which parts of a word are secrets is known from where they stand: `${NAME}` that a study means
/// literally stays text.
Word word_pieces(const std::string& text, const Redactor& secrets) {
    Word result;
    for (const Redactor::Piece& piece : secrets.pieces(text)) {
        const bool secret = !piece.shown.empty();
        result.push_back(secret ? WordPiece{variable_of(piece), true} : WordPiece{piece.text});
        if (secret && result.back().text.empty())
            throw UsageError(
                "'" + secrets(text) +
                "' has a secret that no variable holds in the form that stands there (in JSON, "
                "base64, a URL or the like), "
                "so no file can be made without it; keep the whole word in a variable: ${NAME}");
    }
    return result;
}

/// RFC 1035, as a Service of Kubernetes wants it: at most 63 of a-z, 0-9 and '-', a letter first,
/// no '-' at the end.
std::string dns_name(const std::string& text) {
    std::string result;
    for (const char c : text) {
        const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        const bool plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
        if (plain) result += lower;
        else if (!result.empty() && result.back() != '-') result += '-';
    }
    if (result.empty() || result.front() <= '9') result = "servetune-" + result;
    result.resize(std::min<std::size_t>(result.size(), 63));
    while (result.back() == '-') result.pop_back();
    return result;
}

std::string list_of(const std::vector<std::string>& devices) {
    std::string list;
    for (const std::string& device : devices) list += (list.empty() ? "" : ",") + device;
    return list;
}

/// The devices of each engine that takes `each`, as the trials' engines got them: of those that are
/// named, else of the first `all` by number.
std::vector<std::vector<std::string>> equal_shares(std::vector<std::string> names, std::int64_t all,
                                                   std::int64_t each) {
    for (auto i = static_cast<std::int64_t>(names.size()); i < all; ++i)
        names.push_back(std::to_string(i));
    return groups_of_devices(list_of(names), {}, each);
}

/// Where nothing says otherwise an engine takes every GPU that it sees; one that was measured on
/// some of them gets these.
void add_visible_devices(DeployedEngine& engine, const StudySetup& setup) {
    const bool known = setup.file.machine.devices.has_value() && engine.gpus > 0 &&
                       engine.gpus < *setup.file.machine.devices;
    if (!known || engine.environment.contains("CUDA_VISIBLE_DEVICES")) return;
    engine.environment["CUDA_VISIBLE_DEVICES"] = {
        {list_of(equal_shares({}, *setup.file.machine.devices, engine.gpus).front())}};
}

/// The devices that the study lists, not those of whoever writes the artefact; empty: none.
std::vector<std::string> devices_of_study(const DeployedEngine& engine, const StudySetup& setup) {
    const auto* deploy = std::get_if<DeployChoice>(&setup.file.measuring);
    std::string listed = deploy != nullptr ? deploy->options.deploy.gpus : "";
    if (const auto named = engine.environment.find("CUDA_VISIBLE_DEVICES");
        listed.empty() && named != engine.environment.end())
        listed = named->second.empty() ? "" : named->second.front().text;
    return listed.empty() ? std::vector<std::string>{}
                          : named_gpus(listed).value_or(std::vector<std::string>{});
}

/// The replica's share of the devices that all of them were measured on: of those that the study
/// lists, else the first ones.
void add_share(DeployedEngine& engine, const StudySetup& setup, const DeploymentOptions& options,
               std::int64_t replica) {
    std::vector<std::string> names = devices_of_study(engine, setup);
    if (engine.gpus > 0)
        engine.devices = equal_shares(std::move(names), options.replicas * engine.gpus,
                                      engine.gpus)[static_cast<std::size_t>(replica)];
    engine.environment["CUDA_VISIBLE_DEVICES"] = {{list_of(engine.devices)}};
}

using Json = nlohmann::json;

/// The pod that a launcher's `template` says; empty where there is none.
Json pod_of(const WrappedOptions& launcher) {
    Json result = Json::object();
    for (const auto& [word, text] : launcher.lines)
        if (word == "data" && text.starts_with("template ")) {
            result = shallow_json<Json>(text.substr(text.find(' ') + 1));
            if (result.is_object() && result.contains("template")) result = result["template"];
        }
    return result.is_object() && result.contains("spec") && result["spec"].is_object()
               ? result
               : Json::object();
}

/// An image that the study's containers, or the configuration, name; empty: none.
std::string image_of(const StudySetup& setup, const Configuration& configuration) {
    const auto* deploy = std::get_if<DeployChoice>(&setup.file.measuring);
    if (const Value* chosen = configuration.find(image_parameter)) return text_of(*chosen);
    if (deploy == nullptr) return "";
    if (deploy->container) return deploy->container->images.front();
    if (!deploy->wrapped) return "";
    if (const auto images = deploy->wrapped->setting("images"); !images.empty())
        return images.front();
    const Json containers =
        pod_of(*deploy->wrapped).value("/spec/containers"_json_pointer, Json::array());
    for (const Json& container : containers)
        if (container.value("name", "") == "engine" || containers.size() == 1)
            return container.value("image", "");
    return "";
}

/// What the pods of the study's trials were made from.
void add_pod_template(DeploymentModel& model, const StudyFile& file, bool cluster) {
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    if (deploy == nullptr || !deploy->wrapped) return;
    const Json pod = pod_of(*deploy->wrapped);
    if (!pod.contains("spec")) return;
    for (const std::string& resource : deploy->wrapped->setting("devices"))
        if (!resource.empty()) model.device_resource = resource;
    if (!cluster) {
        model.left_out = "the pod template";
        model.to_change.emplace_back("Not in this file: what the pod template of the study says.");
        return;
    }
    if (const std::string shown = file.secrets(pod.dump()); shown != pod.dump())
        throw UsageError(
            "the pod template of the study has a secret, so it cannot be written; take it from a "
            "Secret there: " +
            shown);
    model.pod_template = pod.dump();
    if (pod.contains("metadata"))
        model.to_change.push_back("Not in this file, of the study's pod template: metadata " +
                                  pod["metadata"].dump());
}

/// The words of one engine, with its environment and files.
DeployedEngine engine_words(const StudySetup& setup, const Configuration& configuration,
                            const Command& command, StartedIn where) {
    const StudyFile& file = setup.file;
    const bool whole_container = where == StartedIn::container || where == StartedIn::cluster;
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    DeployedEngine result;
    for (const std::string& word : command.argv)
        result.argv.push_back(word_pieces(word, file.secrets));
    if (whole_container || deploy == nullptr || !deploy->container)
        result.launch_words = file.composition->engine_of(configuration).launch.size();
    std::map<std::string, std::string> environment = command.environment;
    if (deploy != nullptr)
        for (const auto& [name, value] : deploy->options.deploy.environment)
            environment[name] = value;
    for (const auto& [name, value] : environment) {
        if (const std::string why = wrong_with_variable(name); !why.empty()) throw UsageError(why);
        result.environment[name] = word_pieces(value, file.secrets);
    }
    for (const Word& word : result.argv)
        for (const WordPiece& piece : word)
            if (piece.variable) result.variables.insert(piece.text);
    for (const auto& [name, word] : result.environment)
        if (has_variable(word)) result.variables.insert(name);
    result.files = command.files;
    for (const auto& [name, content] : result.files)
        if (const std::string shown = file.secrets(content); shown != content)
            throw UsageError("the engine's file " + name +
                             " has a secret, so it cannot be written:\n" + shown);
    if (const auto program = find_program(command.argv.front());
        where == StartedIn::service_manager && !program.empty())
        result.argv.front() = {{std::filesystem::absolute(program).string()}};
    for (const Word& word : result.argv)
        for (const WordPiece& piece : word)
            if (piece.text.find('\0') != std::string::npos)
                throw UsageError("a word of the command has a character that a file cannot hold");
    return result;
}

/// Prefill and decode apart: their servers, with the devices that the trials' got, and the router.
std::vector<DeployedEngine> role_engines(const StudySetup& setup,
                                         const Configuration& configuration,
                                         const LaunchTarget& target,
                                         const DeploymentOptions& options, StartedIn where) {
    if (options.gpus)
        throw UsageError(
            "--gpus: each server of a role takes the GPUs of its layout, so leave it out");
    std::vector<DeployedEngine> result;
    std::vector<std::int64_t> counts;
    for (const ServerCommand& one : setup.file.composition->commands(configuration, target)) {
        result.push_back(engine_words(setup, configuration, one.command, where));
        DeployedEngine& engine = result.back();
        if (!engine.files.empty())
            throw UsageError("the roles of this engine have files, which would have one name");
        engine.role = one.name;
        engine.port = one.port;
        engine.gpus = one.devices;
        counts.push_back(one.devices);
    }
    const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    std::vector<std::string> names = devices_of_study(result.front(), setup);
    for (auto i = static_cast<std::int64_t>(names.size()); i < all; ++i)
        names.push_back(std::to_string(i));
    const auto shares = shares_of_devices(names, counts);
    for (std::size_t i = 0; i < result.size(); ++i) {
        result[i].devices = shares[i];
        result[i].environment.erase("CUDA_VISIBLE_DEVICES");
        const bool sees_others =
            where != StartedIn::container && !shares[i].empty();  // a container has no others
        if (sees_others) result[i].environment["CUDA_VISIBLE_DEVICES"] = {{list_of(shares[i])}};
    }
    return result;
}

/// The model that the command serves: the study's, or the checkpoint that the configuration takes.
std::string rendered_model(const Engine& engine, const Command& command) {
    const auto at =
        std::find(engine.launch.begin(), engine.launch.end(), "{model}") - engine.launch.begin();
    return static_cast<std::size_t>(at) < engine.launch.size()
               ? command.argv[static_cast<std::size_t>(at)]
               : "";
}

void refuse_what_cannot_start(const StudySetup& setup) {
    if (!setup.file.has_commands())
        throw UsageError("this study has no commands of an engine, so there is nothing to start");
    if (std::holds_alternative<AttachChoice>(setup.file.measuring))
        throw UsageError(
            "this study searches the load of a server that somebody else runs, so there is nothing "
            "to start");
}

}  // namespace

DeploymentModel deployment_of(const StudySetup& setup, const Configuration& configuration,
                              const DeploymentOptions& options, StartedIn where) {
    refuse_what_cannot_start(setup);
    const StudyFile& file = setup.file;
    const Engine& engine = file.composition->engine_of(configuration);
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    const bool whole_container = where == StartedIn::container || where == StartedIn::cluster;
    const std::string host = !options.host.empty() ? options.host
                             : whole_container     ? "0.0.0.0"
                                                   : "127.0.0.1";
    const std::string model = file.model.empty() ? "MODEL" : file.model;
    const Command command = file.composition->render(configuration, {model, host, options.port});

    DeploymentModel result{dns_name(file.name), options.title};
    result.engine = engine.name;
    result.model = rendered_model(engine, command);
    result.image = word_pieces(
        !options.image.empty() ? options.image : image_of(setup, configuration), file.secrets);
    result.ready_path = engine.ready_path;
    result.ready_within_seconds = engine.ready_within_seconds;
    result.platforms = engine.started_by;
    result.shm_bytes = deploy != nullptr && deploy->container ? deploy->container->shm_bytes
                                                              : ContainerOptions{}.shm_bytes;
    for (const std::string& word : command.argv)
        if (word.starts_with('/') && (word == file.model || std::filesystem::exists(word)))
            result.mounts.push_back(word);
    add_pod_template(result, file, where == StartedIn::cluster);
    if (options.host.empty() && !whole_container)
        result.to_change.emplace_back(
            "It listens on 127.0.0.1: only this machine reaches it. For others: recommend --host "
            "0.0.0.0");
    if (file.model.empty()) result.to_change.emplace_back("Replace MODEL: the study names none.");
    if (whole_container && deploy != nullptr && deploy->container &&
        !deploy->container->options.empty()) {
        result.left_out +=
            file.secrets(fmt::format("{}", fmt::join(deploy->container->options, " ")));
        result.to_change.push_back("Not in this file, options of the study's container: " +
                                   result.left_out);
    }

    if (file.composition->needs_router(configuration)) {
        result.engines =
            role_engines(setup, configuration, {model, host, options.port}, options, where);
        std::string router;  // its program, before its flags
        for (const Word& word : result.engines.back().argv) {
            if (word.front().text.starts_with("--")) break;
            router += (router.empty() ? "" : " ") + word.front().text;
        }
        result.to_change.push_back("Prefill and decode apart on one machine, as measured; `" +
                                   router + "` has to be " +
                                   (whole_container ? "in the image too." : "installed too."));
        return result;
    }
    const std::int64_t replicas = std::max<std::int64_t>(1, options.replicas);
    const bool alike = where == StartedIn::cluster;
    for (std::int64_t i = 0; i < (alike ? 1 : replicas); ++i) {
        const int port = options.port + static_cast<int>(i);
        const LaunchTarget target{model, host, whole_container ? options.port : port};
        DeployedEngine one =
            engine_words(setup, configuration,
                         whole_container ? file.composition->render(configuration, target)
                                         : setup.launched(configuration, target),
                         where);
        one.port = port;
        one.copies = alike ? replicas : 1;
        one.gpus = options.gpus              ? *options.gpus
                   : !engine.devices.empty() ? file.composition->devices_of(configuration)
                                             : file.machine.devices.value_or(0);
        if (replicas > 1 && !alike) add_share(one, setup, options, i);
        if (replicas > 1 && whole_container)
            one.environment.erase("CUDA_VISIBLE_DEVICES");  // it has no others
        if (replicas == 1 && !whole_container) add_visible_devices(one, setup);
        result.engines.push_back(std::move(one));
    }
    return result;
}

}  // namespace servetune
