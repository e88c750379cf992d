// SPDX-License-Identifier: Apache-2.0
#include "deployment_model.hpp"

#include "base/text.hpp"
#include "base/variable_name.hpp"
#include "host/start_program.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

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
    for (const char c : lower_case(text)) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (plain) result += c;
        else if (!result.empty() && result.back() != '-') result += '-';
    }
    if (result.empty() || result.front() <= '9') result = "servetune-" + result;
    result.resize(std::min<std::size_t>(result.size(), 63));
    while (result.back() == '-') result.pop_back();
    return result;
}

/// Where nothing says otherwise an engine takes every GPU that it sees; one that was measured on
/// some of them gets those that a trial's got.
void add_visible_devices(DeploymentModel& model, const StudyFile& file) {
    const std::int64_t all = file.machine.devices.value_or(0);
    if (model.gpus <= 0 || model.gpus >= all || model.environment.contains("CUDA_VISIBLE_DEVICES"))
        return;
    std::string numbers;
    for (std::int64_t i = 0; i < all; ++i) numbers += (i == 0 ? "" : ",") + std::to_string(i);
    std::string own;
    const auto groups = groups_of_devices(numbers, {}, model.gpus);
    for (const std::string& device : groups.front()) own += (own.empty() ? "" : ",") + device;
    model.environment["CUDA_VISIBLE_DEVICES"] = {{own}};
}

/// An image that the study's containers, or the configuration, name; empty: none.
std::string image_of(const DeployChoice* deploy, const Configuration& configuration) {
    if (const Value* chosen = configuration.find(image_parameter)) return text_of(*chosen);
    if (deploy == nullptr) return "";
    if (deploy->container) return deploy->container->images.front();
    if (!deploy->wrapped) return "";
    const auto images = deploy->wrapped->setting("images");
    return images.empty() ? "" : images.front();
}

/// What the study's container or pod has beside the engine.
void leave_out(DeploymentModel& model, const std::string& what, const std::string& text) {
    model.left_out += (model.left_out.empty() ? "" : " ") + text;
    model.to_change.push_back("Not in this file, " + what + ": " + text);
}

/// The words of the engine, with its environment and files.
void add_command(DeploymentModel& model, const StudyFile& file, const Command& command,
                 const DeployChoice* deploy, StartedIn where) {
    for (const std::string& word : command.argv) {
        model.argv.push_back(word_pieces(word, file.secrets));
        if (contains(word, '\0'))
            throw UsageError("a word of the command has a character that a file cannot hold");
        if (word.starts_with('/') && (word == file.model || std::filesystem::exists(word)))
            model.mounts.push_back(word);
    }
    std::map<std::string, std::string> environment = command.environment;
    if (deploy != nullptr)
        for (const auto& [name, value] : deploy->options.deploy.environment)
            environment[name] = value;
    for (const auto& [name, value] : environment) {
        if (const std::string why = wrong_with_variable(name); !why.empty()) throw UsageError(why);
        model.environment[name] = word_pieces(value, file.secrets);
        if (has_variable(model.environment[name])) model.variables.insert(name);
    }
    for (const Word& word : model.argv)
        for (const WordPiece& piece : word)
            if (piece.variable) model.variables.insert(piece.text);
    model.files = command.files;
    for (const auto& [name, content] : model.files)
        if (const std::string shown = file.secrets(content); shown != content)
            throw UsageError("the engine's file " + name +
                             " has a secret, so it cannot be written:\n" + shown);
    if (const auto program = find_program(command.argv.front());
        where == StartedIn::service_manager && !program.empty())
        model.argv.front() = {{std::filesystem::absolute(program).string()}};
}

/// The model that the command serves: the study's, or the checkpoint that the configuration takes.
std::string rendered_model(const Engine& engine, const Command& command) {
    const auto at =
        std::find(engine.launch.begin(), engine.launch.end(), "{model}") - engine.launch.begin();
    return std::size_t(at) < engine.launch.size() ? command.argv[std::size_t(at)] : "";
}

void refuse_what_cannot_start(const StudySetup& setup, const Configuration& configuration) {
    if (!setup.file.has_commands())
        throw UsageError("this study has no commands of an engine, so there is nothing to start");
    if (std::holds_alternative<AttachChoice>(setup.file.measuring))
        throw UsageError(
            "this study searches the load of a server that somebody else runs, so there is nothing "
            "to start");
    if (setup.file.composition->needs_router(configuration))
        throw UsageError(
            "this configuration runs prefill and decode apart, in several servers, and files are "
            "written of one: `autotune report` prints the command of each");
}

}  // namespace

DeploymentModel deployment_of(const StudySetup& setup, const Configuration& configuration,
                              const DeploymentOptions& options, StartedIn where) {
    refuse_what_cannot_start(setup, configuration);
    const StudyFile& file = setup.file;
    const Engine& engine = file.composition->engine_of(configuration);
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    const bool whole_container = where == StartedIn::container || where == StartedIn::cluster;
    const bool contained = deploy != nullptr && deploy->container;
    const std::string host = !options.host.empty() ? options.host
                             : whole_container     ? "0.0.0.0"
                                                   : "127.0.0.1";
    const LaunchTarget target{file.model.empty() ? "MODEL" : file.model, host, options.port};
    const Command command = file.composition->render(configuration, target);

    DeploymentModel result{dns_name(file.name), options.title};
    result.model = rendered_model(engine, command);
    result.image = word_pieces(
        !options.image.empty() ? options.image : image_of(deploy, configuration), file.secrets);
    result.ready_path = engine.ready_path;
    result.ready_within_seconds = engine.ready_within_seconds;
    result.shm_bytes = contained ? deploy->container->shm_bytes : ContainerOptions{}.shm_bytes;
    result.port = options.port;
    if (whole_container || !contained) result.launch_words = engine.launch.size();
    add_command(result, file, whole_container ? command : setup.launched(configuration, target),
                deploy, where);
    result.gpus = options.gpus              ? *options.gpus
                  : !engine.devices.empty() ? file.composition->devices_of(configuration)
                                            : file.machine.devices.value_or(0);
    if (!whole_container) add_visible_devices(result, file);

    if (options.host.empty() && !whole_container)
        result.to_change.emplace_back(
            "It listens on 127.0.0.1: only this machine reaches it. For others: recommend --host "
            "0.0.0.0");
    if (file.model.empty()) result.to_change.emplace_back("Replace MODEL: the study names none.");
    if (options.replicas > 1 && where == StartedIn::cluster) result.copies = options.replicas;
    else if (options.replicas > 1)
        result.to_change.push_back("Measured as " + std::to_string(options.replicas) +
                                   " copies on one machine: start as many, each with a port and "
                                   "devices of its own.");
    if (whole_container && contained && !deploy->container->options.empty())
        leave_out(result, "options of the study's container",
                  file.secrets(fmt::format("{}", fmt::join(deploy->container->options, " "))));
    if (deploy != nullptr && deploy->wrapped) {
        for (const std::string& resource : deploy->wrapped->setting("devices"))
            if (!resource.empty()) result.device_resource = resource;
        for (const auto& [word, text] : deploy->wrapped->lines)
            if (word == "data" && text.starts_with("template "))
                leave_out(result, "of the study", "the pod template");
    }
    return result;
}

}  // namespace servetune
