// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "placed_yaml.hpp"
#include "servetune/engine.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// A number of GPUs that a file asks for.
struct GpuCount {
    FileWord word{};
    std::string path{};  ///< in the tree of YAML
};

/// Where a variable can be added to the environment of a command.
struct EnvironmentPlace {
    enum class Form {
        none,
        name_and_value,  ///< an item of a list of Kubernetes
        mapping,         ///< a line `NAME: value`
        assignments,     ///< an item `NAME=value`
        new_list,        ///< there is no list yet
        new_mapping,     ///< the same of compose
        shell_prefix,
        container_option,
        unit_line
    };
    Form form = Form::none;
    std::size_t at = 0;    ///< byte of the file where the new text begins
    std::string before{};  ///< what stands there before it: a line end and blanks, or nothing
    std::string path{};    ///< of the list or mapping of YAML
    std::vector<Quoting> within{};
};

/// A command of an engine in a deploy file.
struct DeployCommand {
    std::string label{};               ///< `Deployment/chat/vllm`, `line 12`
    std::vector<std::string> names{};  ///< each may choose it
    std::vector<FileWord> words{};     ///< behind the words that start the engine
    std::vector<std::string> paths{};  ///< of the nodes of YAML that hold its words
    std::string
        program{};  ///< the words that start it, for messages; empty: only its flags are there
    std::map<std::string, FileWord> environment{};
    std::map<std::string, std::string> environment_paths{};
    EnvironmentPlace add_environment{};
    std::vector<GpuCount> gpus{};
    std::string entries_path{};  ///< of the mapping whose entries are flags
    std::string unsafe{};        ///< why it is not to be changed; empty: it may be

    [[nodiscard]] std::vector<std::string> texts() const;
};

enum class DeployFileKind { yaml, unit, shell };

/// A file by which somebody starts an engine, and the commands in it.
struct DeployFile {
    DeployFileKind kind = DeployFileKind::yaml;
    std::string text{};
    std::vector<YamlNode> documents{};              ///< of YAML
    std::vector<std::vector<std::string>> lines{};  ///< else the words of all commands
    std::vector<DeployCommand> commands{};          ///< of the engine

    /// Whether nothing else than this command says something else in `now`, which was edited.
    [[nodiscard]] bool same_but_for(const DeployCommand& command, const DeployFile& now) const;
};

/// Reads a deploy file by its name and content: compose, Kubernetes, values of Helm, a unit of
/// systemd or a shell script. Throws ParseError for what is none of these, or not well-formed.
DeployFile read_deploy_file(std::string text, std::string_view name, const Engine& engine);

// The parts of it.

/// Where an engine starts among words.
struct LaunchPlace {
    std::size_t flags = 0;   ///< index of the first word behind the program
    std::size_t client = 0;  ///< of `run` in `docker run`
    bool in_container = false;
};
/// `anywhere`: also behind words that are no known wrapper of programs.
/// `variables`: what the text assigns before, for names of images.
std::optional<LaunchPlace> engine_start(const std::vector<FileWord>& words, const Engine& engine,
                                        bool anywhere,
                                        const std::map<std::string, std::string>& variables = {});
bool is_image_of(const Engine& engine, std::string_view image);
/// The commands of the engine in a shell text, also those in `bash -c '...'`.
std::vector<DeployCommand> engine_commands(const std::vector<PlacedCommand>& commands,
                                           const Engine& engine);
/// Whether words without a program are flags of the engine.
bool are_flags_of(const Engine& engine, const std::vector<FileWord>& words);
void find_in_yaml(DeployFile& file, const Engine& engine);

}  // namespace servetune
