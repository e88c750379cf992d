// SPDX-License-Identifier: Apache-2.0
#include "artefact.hpp"

#include "base/variable_name.hpp"
#include "host/nvidia_smi.hpp"
#include "host/start_program.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <vector>

namespace servetune {
namespace {

/// A part of a word: text, or the value of a variable that is known only where the artefact runs.
struct Piece {
    std::string text;
    bool variable = false;
};
using Word = std::vector<Piece>;

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
        result.push_back(secret ? Piece{variable_of(piece), true} : Piece{piece.text});
        if (secret && result.back().text.empty())
            throw UsageError("'" + secrets(text) +
                             "' has a secret that no variable holds in the form that stands there (in JSON, base64, a URL or the like), "
                             "so no file can be made without it; keep the whole word in a variable: ${NAME}");
    }
    return result;
}

bool has_variable(const Word& word) {
    return std::any_of(word.begin(), word.end(), [](const Piece& piece) { return piece.variable; });
}

/// What a configuration comes to, wherever it runs.
struct ServingParts {
    std::string name{};        ///< of the study, as DNS takes it
    std::vector<Word> argv{};  ///< of the engine or of the client of its container
    std::map<std::string, Word> environment{};
    std::map<std::string, std::string> files{};
    std::set<std::string> variables{};  ///< those that must be there
    std::int64_t gpus = 0;
    int port = 0;
    std::vector<std::string> devices{};  ///< by number, where several replicas share them out
    std::string ready_path{};
    double ready_within_seconds = 0;
    std::vector<std::string> mounts{};  ///< models that are paths
    std::int64_t shm_bytes = 0;
    Word image{};            ///< of compose and Kubernetes
    std::string left_out{};  ///< Artefact::left_out
    std::string title{};
    std::vector<std::string> to_change{};  ///< what a person may have to replace or add, a line each
};

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

void refuse_bytes(const Word& word, std::string_view refused, std::string_view format) {
    for (const Piece& piece : word)
        if (piece.text.find('\0') != std::string::npos || piece.text.find_first_of(refused) != std::string::npos)
            throw UsageError(fmt::format("a word of the command has a character that a {} cannot hold", format));
}

/// A line of comment in any of the formats: nothing in it ends it, and it does not go on in the
/// next one.
std::string comment(std::string_view text) {
    std::string line = "# " + printable_line(text);
    if (line.ends_with('\\')) line += ' ';
    return line + "\n";
}

// ---- a word in each format

std::string shell_word(const Word& word) {
    constexpr std::string_view safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@+%";
    std::string result;
    for (const Piece& piece : word) {
        if (piece.variable) result += "\"${" + piece.text + "}\"";
        else if (!piece.text.empty() && piece.text.find_first_not_of(safe) == std::string::npos) result += piece.text;
        else {
            result += "'";
            for (const char c : piece.text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
            result += "'";
        }
    }
    return result.empty() ? "''" : result;
}

/// systemd.syntax(7), "Quoting", and systemd.unit(5), "Specifiers": quotes and backslashes are
/// escaped, `%` is doubled. `dollars`: so is `$`, as a command line wants it (systemd.service(5))
/// and Environment= does not (systemd.exec(5)).
std::string unit_quoted(const Word& word, bool dollars) {
    refuse_bytes(word, "\n\r", "systemd unit");
    std::string result = "\"";
    for (const Piece& piece : word)
        if (piece.variable) result += "${" + piece.text + "}";
        else
            for (const char c : piece.text) {
                if (c == '%' || (c == '$' && dollars)) result += c;
                if (c == '"' || c == '\\') result += '\\';
                result += c;
            }
    return result + "\"";
}
std::string unit_word(const Word& word) { return unit_quoted(word, true); }

/// The first word of ExecStart=: what it may begin with changes how it is run, and no variable is
/// put in.
std::string unit_program(const Word& word) {
    const std::string path = word.size() == 1 && !word.front().variable ? word.front().text : "";
    if (path.empty() || std::string_view("@-:+!").find(path.front()) != std::string_view::npos || path.find('$') != std::string::npos)
        throw UsageError("a systemd unit cannot start '" + path + "': a program that begins with none of @-:+! and has no $ wanted");
    return unit_word(word);
}

/// A double-quoted scalar of YAML.
std::string quoted_yaml(const std::string& text) {
    for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(character_length(rest)))
        if (character_length(rest) == 0) throw UsageError("a word of the command is not UTF-8, and YAML cannot hold it");
    return yaml_quoted(text);
}

/// The text with every `$` doubled, so that it is no variable (compose: "Interpolation"; Kubernetes
/// reads `$$` as `$` in commands, arguments and variables alike: "Define Dependent Environment
/// Variables").
std::string with_doubled_dollars(const std::string& text) {
    std::string result;
    for (const char c : text) result += c == '$' ? std::string("$$") : std::string(1, c);
    return result;
}

/// compose.yaml: `${NAME}` is taken from the caller's environment or from `.env`.
std::string compose_word(const Word& word) {
    std::string text;
    for (const Piece& piece : word) text += piece.variable ? "${" + piece.text + "?}" : with_doubled_dollars(piece.text);
    return quoted_yaml(text);
}

/// Kubernetes: `$(NAME)` is a variable of the container.
std::string kubernetes_word(const Word& word) {
    std::string text;
    for (const Piece& piece : word) text += piece.variable ? "$(" + piece.text + ")" : with_doubled_dollars(piece.text);
    return quoted_yaml(text);
}

// ---- the parts

ServingParts parts_of(const StudySetup& setup, const Configuration& configuration, const ArtefactOptions& options, bool whole_container,
                      bool absolute_program) {
    const StudyFile& file = setup.file;
    if (!file.has_commands()) throw UsageError("this study has no commands of an engine, so there is nothing to start");
    if (std::holds_alternative<AttachChoice>(file.measuring))
        throw UsageError("this study searches the load of a server that somebody else runs, so there is nothing to start");
    const Engine& engine = file.composition->engine_of(configuration);
    const std::string host = !options.host.empty() ? options.host : whole_container ? "0.0.0.0" : "127.0.0.1";
    const LaunchTarget target{file.model.empty() ? "MODEL" : file.model, host, options.port};
    const Command engine_command = file.composition->render(configuration, target);
    const Command command = whole_container ? engine_command : setup.launched(configuration, target);
    ServingParts parts{dns_name(file.name)};
    for (const std::string& word : command.argv) parts.argv.push_back(word_pieces(word, file.secrets));
    std::map<std::string, std::string> environment = command.environment;
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    if (deploy != nullptr)
        for (const auto& [name, value] : deploy->options.deploy.environment) environment[name] = value;
    for (const auto& [name, value] : environment) {
        if (const std::string why = wrong_with_variable(name); !why.empty()) throw UsageError(why);
        parts.environment[name] = word_pieces(value, file.secrets);
    }
    parts.image = word_pieces(options.image, file.secrets);
    for (const Word& word : parts.argv)
        for (const Piece& piece : word)
            if (piece.variable) parts.variables.insert(piece.text);
    for (const auto& [name, word] : parts.environment)
        if (has_variable(word)) parts.variables.insert(name);
    parts.files = command.files;
    for (const auto& [name, content] : parts.files)
        if (const std::string shown = file.secrets(content); shown != content)
            throw UsageError("the engine's file " + name + " has a secret, so it cannot be written:\n" + shown);
    // A service manager does not search a person's $PATH.
    if (const auto program = find_program(command.argv.front()); !whole_container && absolute_program && !program.empty())
        parts.argv.front() = {{std::filesystem::absolute(program).string()}};
    const bool by_flags = !engine.devices.empty();
    parts.gpus = options.gpus ? *options.gpus : by_flags ? file.composition->devices_of(configuration) : file.machine.devices.value_or(0);
    parts.port = options.port;
    parts.ready_path = engine.ready_path;
    parts.ready_within_seconds = engine.ready_within_seconds;
    for (const std::string& word : engine_command.argv)
        if (word.starts_with('/') && (word == file.model || std::filesystem::exists(word))) parts.mounts.push_back(word);
    parts.shm_bytes = deploy != nullptr && deploy->container ? deploy->container->shm_bytes : ContainerOptions{}.shm_bytes;
    parts.title = options.title;
    if (options.host.empty() && !whole_container)
        parts.to_change.emplace_back("It listens on 127.0.0.1: only this machine reaches it. For others: recommend --host 0.0.0.0");
    if (file.model.empty()) parts.to_change.emplace_back("Replace MODEL: the study names none.");
    if (whole_container && deploy != nullptr && deploy->container && !deploy->container->options.empty()) {
        parts.left_out = file.secrets(fmt::format("{}", fmt::join(deploy->container->options, " ")));
        parts.to_change.push_back("Not in this file, options of the study's container: " + parts.left_out);
    }
    return parts;
}

std::string list_of(const std::vector<std::string>& devices) {
    std::string list;
    for (const std::string& device : devices) list += (list.empty() ? "" : ",") + device;
    return list;
}

/// The devices of each engine that takes `each`, as the trials' engines got them: of those that are
/// named, else of the first `all` by number.
std::vector<std::vector<std::string>> shares_of_devices(std::vector<std::string> names, std::int64_t all, std::int64_t each,
                                                        const DeviceTopology& topology) {
    for (auto i = static_cast<std::int64_t>(names.size()); i < all; ++i) names.push_back(std::to_string(i));
    return groups_of_devices(list_of(names), {}, each, topology);
}

/// Where nothing says otherwise an engine takes every GPU that it sees; one that was measured on
/// some of them gets these.
void add_visible_devices(ServingParts& parts, const StudySetup& setup, const DeviceTopology& topology) {
    const bool known = setup.file.machine.devices.has_value() && parts.gpus > 0 && parts.gpus < *setup.file.machine.devices;
    if (!known || parts.environment.contains("CUDA_VISIBLE_DEVICES")) return;
    parts.environment["CUDA_VISIBLE_DEVICES"] = {
        {list_of(shares_of_devices({}, *setup.file.machine.devices, parts.gpus, topology).front())}};
}

/// The replica's share of the devices that all of them were measured on: of those that the study
/// lists, else the first ones.
void add_share(ServingParts& parts, const StudySetup& setup, const ArtefactOptions& options, std::int64_t replica) {
    const auto* deploy = std::get_if<DeployChoice>(&setup.file.measuring);
    std::string listed = deploy != nullptr ? deploy->options.deploy.gpus : "";
    if (const auto named = parts.environment.find("CUDA_VISIBLE_DEVICES"); listed.empty() && named != parts.environment.end())
        listed = named->second.empty() ? "" : named->second.front().text;
    std::vector<std::string> names;  // not those of whoever writes the artefact
    if (!listed.empty()) names = named_gpus(listed).value_or(names);
    if (parts.gpus > 0)
        parts.devices = shares_of_devices(std::move(names), options.replicas * parts.gpus, parts.gpus,
                                          options.topology)[static_cast<std::size_t>(replica)];
    parts.environment["CUDA_VISIBLE_DEVICES"] = {{list_of(parts.devices)}};
}

/// The title, and what a person may have to change.
std::string title_line(const ServingParts& parts) {
    std::string result = parts.title.empty() ? "" : comment(parts.title);
    for (const std::string& note : parts.to_change) result += comment(note);
    return result;
}

std::string words_of(const std::vector<Word>& words, const std::string& between, std::string (*text)(const Word&)) {
    std::string result;
    for (const Word& word : words) result += (result.empty() ? "" : between) + text(word);
    return result;
}

// ---- the formats

using AllParts = std::vector<ServingParts>;  ///< of each replica; they differ in port and devices

std::string exports_text(const ServingParts& parts, bool devices_too) {
    std::string result;
    for (const auto& [name, word] : parts.environment)
        if (!has_variable(word) && (devices_too || name != "CUDA_VISIBLE_DEVICES"))
            result += "export " + name + "=" + shell_word(word) + "\n";
    return result;
}

std::string ports_line(const AllParts& all) {
    if (all.size() < 2) return "";
    return fmt::format("# {} replicas, ports {} to {}: put a load balancer before them (fewest requests in flight)\n", all.size(),
                       all.front().port, all.back().port);
}

std::string shell_text(const AllParts& all) {
    const ServingParts& parts = all.front();
    std::string result = "#!/bin/sh\n" + title_line(parts) + ports_line(all);
    for (const std::string& name : parts.variables) result += ": \"${" + name + ":?the engine needs it}\"\nexport " + name + "\n";
    result += exports_text(parts, all.size() == 1);
    if (all.size() == 1) return result + "exec " + words_of(parts.argv, " ", shell_word) + "\n";
    result += "st_pids=\ntrap 'trap \"\" INT TERM; kill $st_pids 2>/dev/null; wait; exit 143' INT TERM\n";
    for (const ServingParts& one : all)
        result += "CUDA_VISIBLE_DEVICES=" + shell_word(one.environment.at("CUDA_VISIBLE_DEVICES")) + " " +
                  words_of(one.argv, " ", shell_word) + " &\nst_pids=\"$st_pids $!\"\n";
    return result + "st_code=0\nfor st_pid in $st_pids; do wait \"$st_pid\" || st_code=$?; done\nexit $st_code\n";
}

std::string slurm_text(const AllParts& all) {
    const ServingParts& parts = all.front();
    const auto count = static_cast<std::int64_t>(all.size());
    std::string result =
        "#!/bin/sh\n" + title_line(parts) + ports_line(all) +
        "# Add what your cluster wants, such as --partition, --account and --time, as lines like these:\n#SBATCH --job-name=" + parts.name +
        fmt::format("\n#SBATCH --nodes=1\n#SBATCH --ntasks={}\n", count);
    if (parts.gpus > 0) result += fmt::format("#SBATCH --gres=gpu:{}\n", count * parts.gpus);
    result += "#SBATCH --output=%x-%j.log\n";
    for (const std::string& name : parts.variables) result += ": \"${" + name + ":?the engine needs it: sbatch --export=ALL}\"\n";
    result += exports_text(parts, count == 1);
    if (count == 1) return result + "exec srun " + words_of(parts.argv, " ", shell_word) + "\n";
    // A step sees the devices that it was given as 0, 1, ... Without --mem=0 the first would have
    // the memory of all, and the others would wait for its end (tried with Slurm 22.05).
    for (const ServingParts& one : all)
        result += fmt::format("srun --exact --mem=0 --ntasks=1 --gres=gpu:{} ", one.gpus) + words_of(one.argv, " ", shell_word) + " &\n";
    return result + "wait\n";
}

std::string unit_text(const ServingParts& parts) {
    std::string result = title_line(parts);
    result += "[Unit]\nDescription=LLM serving engine of the study " + parts.name +
              "\nWants=network-online.target\nAfter=network-online.target\n\n[Service]\nType=exec\n";
    for (const auto& [name, word] : parts.environment)
        if (!has_variable(word)) {
            Word assigned{{name + "="}};
            assigned.insert(assigned.end(), word.begin(), word.end());
            result += "Environment=" + unit_quoted(assigned, false) + "\n";
        }
    if (!parts.variables.empty()) {
        result += "# lines NAME=value, for root alone:";
        for (const std::string& name : parts.variables) result += " " + name;
        result += "\nEnvironmentFile=/etc/" + parts.name + ".env\n";
    }
    if (!parts.files.empty()) result += "# the files beside this unit lie there\nWorkingDirectory=/etc/" + parts.name + "\n";
    result += "ExecStart=" + unit_program(parts.argv.front());
    for (std::size_t i = 1; i < parts.argv.size(); ++i) result += " " + unit_word(parts.argv[i]);
    result += "\n";
    result += "Restart=on-failure\nRestartSec=5\nTimeoutStopSec=60\nLimitNOFILE=65536\n\n[Install]\nWantedBy=multi-user.target\n";
    return result;
}

/// A unit for each replica: `NAME-0.service`, and the others beside it.
Artefact units_of(const AllParts& all) {
    const ServingParts& first = all.front();
    if (all.size() == 1) return {first.name + ".service", unit_text(first), first.files};
    Artefact result{first.name + "-0.service", ports_line(all) + unit_text(first), first.files};
    for (std::size_t i = 1; i < all.size(); ++i)
        result.beside[fmt::format("{}-{}.service", first.name, i)] = ports_line(all) + unit_text(all[i]);
    return result;
}

std::string compose_service(const ServingParts& parts, const std::string& called, const ArtefactOptions& options) {
    std::string result = "  " + called + ":\n    image: " + compose_word(parts.image) + "\n    entrypoint: [" +
                         compose_word(parts.argv.front()) + "]\n    command:\n";
    for (std::size_t i = 1; i < parts.argv.size(); ++i) result += "      - " + compose_word(parts.argv[i]) + "\n";
    result +=
        fmt::format("    ports: [\"{}:{}\"]\n    shm_size: {}\n    restart: unless-stopped\n", parts.port, options.port, parts.shm_bytes);
    if (!parts.environment.empty()) result += "    environment:\n";
    for (const auto& [name, word] : parts.environment)
        result += "      " + quoted_yaml(name) + ": " + (has_variable(word) ? compose_word({{name, true}}) : compose_word(word)) + "\n";
    if (!parts.mounts.empty() || !parts.files.empty()) result += "    volumes:\n";
    for (const std::string& path : parts.mounts)
        result += "      - {type: bind, source: " + compose_word({{path}}) + ", target: " + compose_word({{path}}) + ", read_only: true}\n";
    for (const auto& [name, content] : parts.files)
        result += "      - {type: bind, source: " + compose_word({{"./" + name}}) +
                  ", target: " + compose_word({{"/run/servetune/" + name}}) + ", read_only: true}\n";
    if (!parts.files.empty()) result += "    working_dir: /run/servetune\n";
    std::string which;
    for (const std::string& device : parts.devices) which += (which.empty() ? "device_ids: [" : ", ") + compose_word({{device}});
    if (parts.gpus > 0)
        result += fmt::format(
            "    deploy:\n      resources:\n        reservations:\n          devices: [{{driver: nvidia, {}, capabilities: [gpu]}}]\n",
            which.empty() ? fmt::format("count: {}", parts.gpus) : which + "]");
    return result;
}

std::string compose_text(const AllParts& all, const ArtefactOptions& options) {
    std::string result = title_line(all.front()) + ports_line(all) + "name: " + quoted_yaml(all.front().name) + "\nservices:\n";
    for (std::size_t i = 0; i < all.size(); ++i)
        result += compose_service(all[i], all.size() == 1 ? "engine" : fmt::format("engine-{}", i), options);
    return result;
}

std::string kubernetes_text(const ServingParts& parts, std::size_t replicas, const ArtefactOptions& options) {
    constexpr double probe_seconds = 10;
    if (has_variable(parts.image)) throw UsageError("the image has a secret, and Kubernetes puts none in there; say it with --image");
    const std::string name = quoted_yaml(parts.name);
    std::string volumes = fmt::format("        - name: shm\n          emptyDir: {{medium: Memory, sizeLimit: \"{}\"}}\n", parts.shm_bytes);
    std::string mounts = "            - {name: shm, mountPath: /dev/shm}\n";
    for (std::size_t i = 0; i < parts.mounts.size(); ++i) {
        volumes += fmt::format("        - name: model-{}\n          hostPath: {{path: {}}}\n", i, quoted_yaml(parts.mounts[i]));
        mounts += fmt::format("            - {{name: model-{}, mountPath: {}, readOnly: true}}\n", i, quoted_yaml(parts.mounts[i]));
    }
    std::string result = title_line(parts);
    if (replicas > 1) result += "# the Service spreads connections over the pods at random, not by requests in flight\n";
    if (!parts.variables.empty()) {
        result += "# needs: kubectl create secret generic " + parts.name;
        for (const std::string& variable : parts.variables) result += " --from-env-file=FILE (" + variable + "=...)";
        result += "\n";
    }
    if (!parts.files.empty()) {
        result += "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n";
        for (const auto& [file, content] : parts.files) result += "  " + quoted_yaml(file) + ": " + quoted_yaml(content) + "\n";
        result += "---\n";
        volumes += "        - name: files\n          configMap: {name: " + name + "}\n";
        mounts += "            - {name: files, mountPath: /run/servetune, readOnly: true}\n";
    }
    result += "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + name + "\n  labels: {app: " + name +
              "}\nspec:\n  replicas: " + std::to_string(replicas) +
              "\n  strategy: {type: Recreate}\n  selector:\n    matchLabels: {app: " + name +
              "}\n  template:\n    metadata:\n      labels: {app: " + name +
              "}\n    spec:\n      containers:\n        - name: engine\n          image: " + quoted_yaml(options.image) +
              "\n          imagePullPolicy: IfNotPresent\n          command: [" + kubernetes_word(parts.argv.front()) +
              "]\n          args:\n";
    for (std::size_t i = 1; i < parts.argv.size(); ++i) result += "            - " + kubernetes_word(parts.argv[i]) + "\n";
    if (!parts.environment.empty() || !parts.variables.empty()) result += "          env:\n";
    std::set<std::string> secret = parts.variables;
    for (const auto& [variable, word] : parts.environment)
        if (!has_variable(word)) result += "            - {name: " + quoted_yaml(variable) + ", value: " + kubernetes_word(word) + "}\n";
        else secret.insert(variable);
    for (const std::string& variable : secret)
        result += "            - name: " + quoted_yaml(variable) + "\n              valueFrom: {secretKeyRef: {name: " + name +
                  ", key: " + quoted_yaml(variable) + "}}\n";
    if (!parts.files.empty()) result += "          workingDir: /run/servetune\n";
    if (parts.gpus > 0) result += fmt::format("          resources:\n            limits: {{nvidia.com/gpu: {}}}\n", parts.gpus);
    if (!parts.ready_path.empty())
        result += fmt::format(
            "          startupProbe:\n            httpGet: {{path: {0}, port: {1}}}\n            periodSeconds: 10\n            "
            "failureThreshold: {2}\n          readinessProbe:\n            httpGet: {{path: {0}, port: {1}}}\n            periodSeconds: "
            "10\n",
            quoted_yaml(parts.ready_path), options.port, static_cast<int>(std::ceil(parts.ready_within_seconds / probe_seconds)) + 1);
    result += "          volumeMounts:\n" + mounts + "      volumes:\n" + volumes;
    result += "---\napiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec:\n  selector: {app: " + name +
              fmt::format("}}\n  ports: [{{port: {0}, targetPort: {0}}}]\n", options.port);
    return result;
}

}  // namespace

Artefact artefact_of(ArtefactKind kind, const StudySetup& setup, const Configuration& configuration, const ArtefactOptions& given) {
    const bool whole_container = kind == ArtefactKind::compose || kind == ArtefactKind::kubernetes;
    ArtefactOptions options = given;
    if (whole_container && options.image.empty()) {
        const auto* deploy = std::get_if<DeployChoice>(&setup.file.measuring);
        const Value* chosen = configuration.find(image_parameter);
        if (chosen != nullptr) options.image = text_of(*chosen);
        else if (deploy != nullptr && deploy->container) options.image = deploy->container->images.front();
        else {
            const std::vector<std::string>& images = setup.file.composition->engine_of(configuration).images;
            throw UsageError("an image is needed that has the engine: --image " + (images.empty() ? "IMAGE" : images.front()) +
                             (images.empty() || images.front().find(':') != std::string::npos ? "" : ":TAG") +
                             ", or `container` in the study");
        }
    }
    const std::int64_t replicas = std::max<std::int64_t>(1, options.replicas);
    const auto* deploy = std::get_if<DeployChoice>(&setup.file.measuring);
    if (replicas > 1 && !whole_container && deploy != nullptr && deploy->container)
        throw UsageError("several containers are started by compose or Kubernetes: --as compose, --as kubernetes");
    AllParts all;
    for (std::int64_t i = 0; i < (kind == ArtefactKind::kubernetes ? 1 : replicas); ++i) {
        ArtefactOptions of_one = options;
        if (!whole_container) of_one.port += static_cast<int>(i);
        all.push_back(parts_of(setup, configuration, of_one, whole_container, kind == ArtefactKind::systemd));
        all.back().port = options.port + static_cast<int>(i);
        if (replicas > 1 && kind != ArtefactKind::kubernetes) add_share(all.back(), setup, options, i);
        if (replicas > 1 && whole_container) all.back().environment.erase("CUDA_VISIBLE_DEVICES");  // it has no others
        if (replicas == 1 && !whole_container) add_visible_devices(all.back(), setup, options.topology);
        for (const Word& word : all.back().argv) refuse_bytes(word, "", "file");
    }
    const ServingParts& parts = all.front();
    switch (kind) {
        case ArtefactKind::shell: return {parts.name + ".sh", shell_text(all), parts.files, {}, true};
        case ArtefactKind::systemd: return units_of(all);
        case ArtefactKind::compose: return {"compose.yaml", compose_text(all, options), parts.files, parts.left_out};
        case ArtefactKind::kubernetes:
            return {parts.name + ".yaml", kubernetes_text(parts, static_cast<std::size_t>(replicas), options), {}, parts.left_out};
        case ArtefactKind::slurm: return {parts.name + ".sbatch", slurm_text(all), parts.files};
    }
    throw std::logic_error("no such artefact");
}

}  // namespace servetune
