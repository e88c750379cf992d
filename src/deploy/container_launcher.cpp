// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "host/kept_output.hpp"
#include "host/nvidia_smi.hpp"
#include "host/run_command.hpp"
#include "host/start_program.hpp"
#include "launch_clients.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/error.hpp"
#include "servetune/launcher.hpp"

#include <array>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {
namespace {

/// Begins the lines that we ask for, so that warnings of the client are not taken for an answer.
constexpr std::string_view our_line = "servetune: ";
constexpr std::string_view study_label = "servetune.study";

// Exit codes of the client (podman-run(1), docker-run(1)): it failed itself; the program could not
// be started; it was not found.
constexpr int client_failed = 125;
constexpr int cannot_be_started = 126;
constexpr int not_found = 127;

/// What was asked for with `our_line`, a line each.
std::vector<std::string> answers_in(const std::string& output) {
    std::vector<std::string> result;
    for (const std::string& line : lines_of(output))
        if (line.starts_with(our_line)) result.push_back(line.substr(our_line.size()));
    return result;
}

bool is_image_name(const std::string& name) {
    constexpr std::string_view allowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@-";
    return !name.empty() && name.front() != '-' && name.find_first_not_of(allowed) == npos;
}

bool is_mountable(const std::string& path) {
    return path.starts_with('/') && none_of(path, [](char c) {
               return c == ',' || c == ':' || c == '"' || static_cast<unsigned char>(c) < ' ';
           });
}

struct Volume {
    std::string source, target;
    bool read_only = false;
};

/// Nothing: it is none.
std::optional<Volume> volume_of(const std::string& text) {
    const auto first = text.find(':');
    if (first == npos) return std::nullopt;
    const auto second = text.find(':', first + 1);
    const std::string mode = second == npos ? "rw" : text.substr(second + 1);
    Volume volume{text.substr(0, first),
                  text.substr(first + 1, second == npos ? second : second - first - 1),
                  mode == "ro"};
    if (!is_mountable(volume.source) || !is_mountable(volume.target) ||
        (mode != "ro" && mode != "rw"))
        return std::nullopt;
    return volume;
}

std::string mount_word(const Volume& volume) {
    return "--mount=type=bind,source=" + volume.source + ",target=" + volume.target +
           (volume.read_only ? ",readonly" : "");
}

/// Variables that the client reads itself: with another value it would be another client.
bool is_of_client(const std::string& name) {
    constexpr std::array<std::string_view, 6> whole{"PATH",          "HOME",    "TMPDIR",
                                                    "SSH_AUTH_SOCK", "GODEBUG", "NOTIFY_SOCKET"};
    constexpr std::array<std::string_view, 6> beginnings{"LD_",  "DOCKER_", "CONTAINER",
                                                         "XDG_", "PODMAN_", "BUILDAH_"};
    return contains(whole, name) ||
           any_of(beginnings, [&](std::string_view one) { return name.starts_with(one); });
}

std::vector<std::string> listed_devices(const std::string& gpus) {
    return gpus.empty() ? std::vector<std::string>{}
                        : named_gpus(gpus).value_or(std::vector<std::string>{});
}

/// Podman without a specification of the devices (`nvidia-ctk cdi generate`), docker without
/// NVIDIA's runtime.
bool tells_of_no_device(std::string_view words) {
    return contains(words, "CDI device") || contains(words, "could not select device driver");
}

/// Where the folders of compiled code are for the engine, each by its variable's name.
constexpr std::string_view caches_folder = "/var/cache/servetune";

/// Containers of podman or docker, whose words differ here and there. The client of `run` stays in
/// the foreground: its output is the engine's, its exit code the engine's, and a TERM that
/// it gets goes on to the engine. The container is not removed by its end, so that it can be asked
/// how it ended; `remove` does it, and `end_leftovers` where this program was killed first: its
/// label says whose it is.
class ContainerLauncher : public Launcher {
public:
    explicit ContainerLauncher(ContainerOptions options);

    [[nodiscard]] std::string name() const final { return is_podman_ ? "podman" : "docker"; }
    [[nodiscard]] bool in_containers() const final { return true; }
    [[nodiscard]] std::vector<std::string> images() const final { return options_.images; }
    [[nodiscard]] std::string trouble(const std::string& image) const final;
    [[nodiscard]] std::string pinned(const std::string& image) const final;
    [[nodiscard]] Launch launch(const LaunchRequest& request) const final;
    [[nodiscard]] std::optional<Failure> ended(const Launch& launch, int exit_code,
                                               const std::vector<std::string>& lines) const final;
    std::string remove(const Launch& launch) const final;
    [[nodiscard]] std::vector<std::string> leftovers(const std::string& mark) const final;
    std::vector<std::string> end_leftovers(const std::string& mark) const final;
    [[nodiscard]] Command shown(const LaunchRequest& request) const final;

private:
    /// Words of `run` that give it these devices.
    [[nodiscard]] std::vector<std::string> device_words(const std::vector<std::string>& gpus) const;
    /// Whether these words say that nobody is there who runs containers.
    [[nodiscard]] bool tells_of_no_daemon(std::string_view words) const;
    struct Image {
        std::string id{};       ///< empty: it is not there
        std::string digests{};  ///< as JSON
        bool as_root = false;   ///< its program runs as root, who may write to any volume
        std::string trouble{};
    };
    [[nodiscard]] RanCommand ask(const std::vector<std::string>& words) const;
    [[nodiscard]] Image look_for(const std::string& image) const;
    [[nodiscard]] std::string kept_volume(const Image& image) const;
    [[nodiscard]] std::vector<std::string> words_for_all(const Command& engine) const;
    [[nodiscard]] std::string remove_container(const std::string& name) const;

    const ContainerOptions options_;
    const bool is_podman_ = options_.kind == ContainerKind::podman;
    const std::vector<std::string> program_;
    mutable std::mutex mutex_{};
    mutable std::map<std::string, Image>
        known_{};  ///< those that were found: for this program's life they stay what they were
};

ContainerLauncher::ContainerLauncher(ContainerOptions options)
    : options_(std::move(options)),
      program_(!options_.program.empty()
                   ? options_.program
                   : std::vector<std::string>{is_podman_ ? "podman" : "docker"}) {}

/// Podman's are names of the Container Device Interface (`nvidia-ctk cdi generate`); docker's are
/// one word that is read as a line of CSV, so a list of devices stands in quotes of its own.
std::vector<std::string> ContainerLauncher::device_words(
    const std::vector<std::string>& gpus) const {
    std::vector<std::string> words;
    std::string list;
    for (const std::string& gpu : gpus) {
        words.push_back("--device=nvidia.com/gpu=" + gpu);
        list += (list.empty() ? "" : ",") + gpu;
    }
    if (is_podman_ || gpus.empty()) return words;
    return {"--gpus=\"device=" + list + "\""};
}

bool ContainerLauncher::tells_of_no_daemon(std::string_view words) const {
    // `podman --remote` has one too. Newer dockers say `failed to connect to the docker API at
    // unix:///...`; who loses it says `error during connect`.
    constexpr std::array<std::string_view, 5> known{
        "Cannot connect to the Docker daemon", "failed to connect to the docker API",
        "error during connect", "Is the docker daemon running", "unable to connect to Podman"};
    return any_of(known, [&](std::string_view one) { return contains(words, one); });
}

RanCommand ContainerLauncher::ask(const std::vector<std::string>& words) const {
    std::vector<std::string> argv = program_;
    argv.insert(argv.end(), words.begin(), words.end());
    return ask_client(std::move(argv), "run containers");
}

/// As it was found first: whoever moves its name meanwhile changes nothing of a study.
ContainerLauncher::Image ContainerLauncher::look_for(const std::string& image) const {
    Image known;
    {
        const std::scoped_lock lock(mutex_);
        if (const auto* found = entry_in(known_, image)) known = *found;
    }
    Image result = known;
    try {
        const RanCommand command =
            ask({"image", "inspect", "--format",
                 std::string(our_line) + "{{.Id}} {{json .RepoDigests}} {{json .Config.User}}",
                 known.id.empty() ? image : known.id});
        const std::vector<std::string> answers = answers_in(command.output);
        if (command.exit_code == 0 && answers.size() == 1) {
            if (!known.id.empty()) return known;
            std::istringstream words(answers.front());
            std::string user;
            words >> result.id >> result.digests >> user;
            if (!contains(result.id, ':')) result.id.insert(0, "sha256:");
            result.as_root =
                user == R"("")" || user == R"("root")" || user == R"("0")" || user == R"("0:0")";
            const std::scoped_lock lock(mutex_);
            return known_.emplace(image, result).first->second;
        }
        const std::string complaint = complaint_in(command);
        result.trouble = tells_of_no_daemon(command.output)
                             ? name() + " cannot run containers here: " + complaint
                         : !known.id.empty()
                             ? "the image '" + image + "' (" + known.id + ") is not here any more"
                             : "there is no image '" + image + "' here (" + name() + ": " +
                                   complaint + "); images are not fetched in a trial: run `" +
                                   name() + " pull " + image + "` first";
    } catch (const IoError& error) {
        result.trouble = error.what();
    }
    return result;
}

std::string ContainerLauncher::trouble(const std::string& image) const {
    return look_for(image).trouble;
}

std::string ContainerLauncher::pinned(const std::string& image) const {
    const Image known = look_for(image);
    return known.id.empty() ? "" : known.id + " " + known.digests;
}

/// The volume in which containers of an image find what earlier ones compiled: code of another
/// image is none of theirs. Empty where the engine may not be allowed to write there.
std::string ContainerLauncher::kept_volume(const Image& image) const {
    const auto sets_user = [](const std::string& word) {
        return word.starts_with("--user") || word.starts_with("-u");
    };
    if (!image.as_root || any_of(options_.options, sets_user)) return {};
    constexpr std::size_t enough = 16;  // of the id's hexadecimal digits
    return "servetune-caches-" + image.id.substr(image.id.find(':') + 1, enough);
}

/// Words of `run` that are the same for a trial and for a person.
std::vector<std::string> ContainerLauncher::words_for_all(const Command& engine) const {
    std::vector<std::string> words{"--network=host",
                                   "--shm-size=" + std::to_string(options_.shm_bytes)};
    if (options_.memory_bytes > 0)
        words.push_back("--memory=" + std::to_string(options_.memory_bytes));
    for (const std::string& text : options_.volumes) words.push_back(mount_word(*volume_of(text)));
    for (const std::string& model : options_.models)
        if (any_of(engine.argv, [&](const std::string& word) { return word.ends_with(model); }))
            words.push_back(mount_word({model, model, true}));
    words.insert(words.end(), options_.options.begin(), options_.options.end());
    return words;
}

Launch ContainerLauncher::launch(const LaunchRequest& request) const {
    const Image image = look_for(request.image);
    if (!image.trouble.empty()) throw IoError(image.trouble);
    Launch result{program_, request.environment, new_launch_name(label_of(request.mark)),
                  request.image, request.command.argv.front()};
    std::vector<std::string>& argv = result.argv;
    const auto add = [&](const std::vector<std::string>& words) {
        argv.insert(argv.end(), words.begin(), words.end());
    };
    add({"run", "--name=" + result.name, "--pull=never", "--log-driver=none",
         "--label=" + std::string(study_label) + "=" + label_of(request.mark)});
    add(words_for_all(request.command));
    add(device_words(listed_devices(request.gpus)));
    std::string cores;
    for (const int core : request.cores) cores += (cores.empty() ? "" : ",") + std::to_string(core);
    if (!cores.empty()) argv.push_back("--cpuset-cpus=" + cores);
    // Names alone: the client takes the values from its own environment, so that no process list
    // shows them. The last three are Process's marks, by which its end and the watchdog find the
    // engine.
    result.environment.erase(
        "CUDA_VISIBLE_DEVICES");  // in the container the devices it has are all there are
    const std::string volume = kept_volume(image);
    bool keeps = false;
    for (const std::string& name : request.caches)
        if (!volume.empty())
            keeps =
                result.environment.emplace(name, std::string(caches_folder) + "/" + name).second ||
                keeps;  // a study's own stays
    if (keeps)
        argv.push_back("--mount=type=volume,source=" + volume +
                       ",target=" + std::string(caches_folder));
    for (const auto& [name, value] : result.environment) {
        if (is_of_client(name))
            throw IoError("the engine's environment has '" + name + "', which would change " +
                          this->name() +
                          " itself; set it in the image, or by `options` of the container");
        argv.push_back("--env=" + name);
    }
    for (const char* name : {"SERVETUNE_STUDY", "SERVETUNE_GROUP", "SPT_NOENV"})
        argv.push_back(std::string("--env=") + name);
    if (!request.command.files.empty())
        argv.push_back(mount_word({request.folder.string(), std::string(files_folder), true}));
    argv.push_back("--entrypoint=" + request.command.argv.front());
    argv.push_back(image.id);
    for (std::size_t i = 1; i < request.command.argv.size(); ++i)
        argv.push_back(with_place(request.command.argv[i], request.command.files, files_folder));
    return result;
}

std::optional<Failure> ContainerLauncher::ended(const Launch& launch, int exit_code,
                                                const std::vector<std::string>& lines) const {
    std::string all;
    for (const std::string& line : lines) all += line + "\n";
    const std::string last = complaint_in({.exit_code = exit_code, .output = all});
    const bool client_speaks = contains(all, "Error: ") || contains(all, "docker: ");
    if (tells_of_no_daemon(all))
        return Failure{FailureKind::infrastructure,
                       name() + " cannot run containers here: " + last};
    if (exit_code >= client_failed && exit_code <= not_found && client_speaks &&
        tells_of_no_device(all))
        return Failure{FailureKind::infrastructure, name() +
                                                        " cannot give the container its GPUs (" +
                                                        last + "); see NVIDIA's container toolkit"};
    if (exit_code == client_failed)
        return Failure{FailureKind::infrastructure,
                       name() + " could not run the image '" + launch.image + "': " + last};
    if ((exit_code == cannot_be_started || exit_code == not_found) && client_speaks)
        return Failure{FailureKind::unsupported, "the image '" + launch.image + "' cannot start '" +
                                                     launch.program + "': " + last};
    try {
        const RanCommand command = ask(
            {"container", "inspect", "--format",
             std::string(our_line) + "{{.State.OOMKilled}} {{.HostConfig.Memory}}", launch.name});
        for (const std::string& answer : answers_in(command.output))
            if (answer.starts_with("true"))
                return Failure{FailureKind::out_of_memory,
                               "the container was killed for want of memory (its bound: " +
                                   (answer.size() > 5 && answer.substr(5) != "0"
                                        ? answer.substr(5) + " bytes"
                                        : std::string("the machine's memory")) +
                                   ")"};
        if (command.exit_code != 0 && tells_of_no_daemon(command.output))
            return Failure{
                FailureKind::infrastructure,
                name() + " cannot run containers here any more: " + complaint_in(command)};
    } catch (const IoError& error) {
        return Failure{FailureKind::infrastructure, error.what()};
    }
    return std::nullopt;
}

/// Why a container would not go; empty: it is gone, or never was.
std::string ContainerLauncher::remove_container(const std::string& name) const {
    // At once, in any state, with its anonymous volumes.
    std::vector<std::string> words{"rm", "--force", "--volumes", name};
    if (is_podman_) words.insert(words.begin() + 2, "--time=0");
    try {
        const RanCommand command = ask(words);
        if (command.exit_code == 0) return {};
        const std::string said = lower_case(command.output);
        if (contains(said, "no such container") || contains(said, "no container with")) return {};
        return "the container " + name + " would not go: " + complaint_in(command);
    } catch (const IoError& error) {
        return "the container " + name + " would not go: " + error.what();
    }
}

std::string ContainerLauncher::remove(const Launch& launch) const {
    const std::string why = remove_container(launch.name);
    return why.empty() ? why : why + "\n";
}

std::vector<std::string> ContainerLauncher::leftovers(const std::string& mark) const {
    if (mark.empty() || find_program(program_.front()).empty()) return {};  // it has started none
    const RanCommand command =
        ask({"ps", "--all", "--filter", "label=" + std::string(study_label) + "=" + label_of(mark),
             "--format", std::string(our_line) + "{{.Names}} {{.Status}}"});
    if (command.exit_code != 0)
        throw IoError(name() + " does not say which containers an earlier run has left: " +
                      complaint_in(command));
    return answers_in(command.output);
}

std::vector<std::string> ContainerLauncher::end_leftovers(const std::string& mark) const {
    std::vector<std::string> result;
    for (const std::string& left : leftovers(mark))
        if (std::string why = remove_container(left.substr(0, left.find(' '))); !why.empty())
            result.push_back(std::move(why));
    return result;
}

Command ContainerLauncher::shown(const LaunchRequest& request) const {
    const Command& engine = request.command;
    Command result{program_, {}, engine.files};
    const auto add = [&](const std::vector<std::string>& words) {
        result.argv.insert(result.argv.end(), words.begin(), words.end());
    };
    add({"run", "--rm"});
    add(words_for_all(engine));
    add(device_words(listed_devices(request.gpus)));
    for (const auto& [name, value] : engine.environment)
        result.argv.push_back("--env=" + name + "=" + value);
    for (const auto& [name, value] : request.environment)
        if (!engine.environment.contains(name)) result.argv.push_back("--env=" + name);
    for (const auto& [name, content] : engine.files)
        result.argv.push_back("--volume=./" + name + ":" + std::string(files_folder) + "/" + name +
                              ":ro");
    add({"--entrypoint=" + engine.argv.front(), request.image});
    for (std::size_t i = 1; i < engine.argv.size(); ++i)
        result.argv.push_back(with_place(engine.argv[i], engine.files, files_folder));
    return result;
}

}  // namespace

std::string ContainerOptions::why_invalid() const {
    OptionCheck check;
    check.that(!images.empty(), "image", "the name of an image", "none");
    for (const std::string& image : images)
        check.that(is_image_name(image), "image", "a name such as docker.io/org/engine:1.0",
                   "'" + image + "'");
    for (const std::string& volume : volumes)
        check.that(volume_of(volume).has_value(), "volumes",
                   "SOURCE:TARGET or SOURCE:TARGET:ro, absolute paths without ',' and '\"'",
                   "'" + volume + "'");
    for (const std::string& model : models)
        check.that(is_mountable(model), "model",
                   "an absolute path without ',', ':' and '\"', as it is mounted",
                   "'" + model + "'");
    check.that(program.empty() || !program.front().empty(), "program", "a program and its words",
               "an empty word");
    check.that(shm_bytes > 0, "shm_bytes", "at least 1", std::to_string(shm_bytes));
    check.that(memory_bytes >= 0, "memory_bytes", "at least 0", std::to_string(memory_bytes));
    return check.text();
}

std::shared_ptr<const Launcher> container_launcher(ContainerOptions options) {
    check_options("containers", options.why_invalid());
    return std::make_shared<ContainerLauncher>(std::move(options));
}

}  // namespace servetune
