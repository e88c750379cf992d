// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "deployment_model.hpp"
#include "engine/command_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

using Texts = std::vector<std::string>;

/// What a deploy file has to say of the engine: all that a study recommends of it.
struct DeploySpec {
    Engine engine{};
    std::shared_ptr<const CommandReader> reader{};  ///< of this engine
    Texts flags{};                                  ///< behind the launch, without secrets
    std::map<std::string, std::string> environment{};
    std::set<std::string> tuned{};  ///< parameters, flags of JSON and variables of the search
    Texts unknown{};                ///< what no file says: files of options
    std::string model{};
    std::set<std::string> other_models{};  ///< that the study can serve instead; empty: one model
    std::int64_t gpus = 0;                 ///< 0: not known
};
DeploySpec deploy_spec_of(const StudySetup& setup, const Configuration& configuration,
                          const DeploymentModel& deployment);

/// A flag of a command with its value.
struct FlagUnit {
    std::string key{};   ///< the parameter, a flag of JSON, or the flag; `{model}`, `{launch}`
    std::string flag{};  ///< as the engine file spells it
    std::string value{};
    Texts words{};
    std::size_t begin = 0, end = 0;  ///< words of the command
    bool alone = false;              ///< a flag without a value
    bool not_about_speed = false;
    bool known = false;  ///< a parameter of the engine's file, and a value that it has
    const EngineParameter* parameter = nullptr;  ///< of the engine that was asked

    /// A part of JSON: `--config.key=1`.
    [[nodiscard]] bool dotted() const { return key.starts_with("-") && flag != key; }
    [[nodiscard]] const std::string& name() const { return key.starts_with("-") ? key : flag; }
    /// As written. `masked`: without a value that the engine's file does not know: it may be a
    /// secret.
    [[nodiscard]] std::string text(bool masked = false) const;
};
/// The flags of words behind an engine's program.
std::vector<FlagUnit> flag_units(const Texts& words, const Engine& engine,
                                 const CommandReader& reader);

/// A word of a command in a file of YAML.
struct DeployWord {
    std::string text{};
    std::size_t begin = 0,
                end = 0;  ///< bytes of the file, its quotes too; both 0: not to be changed
    enum class Stands { block_item, flow_item, in_line } stands = Stands::block_item;
    std::size_t list = 0;  ///< words of one list or line have one number
};

/// A command of the engine in a deploy file.
struct DeployCommand {
    std::string label{};              ///< `Deployment/chat/vllm`, `chat`
    std::vector<DeployWord> words{};  ///< behind the words that start the engine
    std::map<std::string, std::string> environment{};
    bool more_variables = false;  ///< others come from where the file does not say them
    bool of_recipe = false;       ///< of vllm-project/recipes
    /// Of a recipe: lists that its site adds for some chips, variants and features, by their place
    /// in the file; and where words go into its empty list (0: it has some).
    std::vector<std::pair<std::string, Texts>> added{};
    std::size_t empty_list = 0;
    std::string
        unsure{};  ///< why its flags are not known, or not to be changed; empty: they may be

    [[nodiscard]] Texts texts() const;
};

/// A deploy file: YAML whose commands are lists of words or one line, every word literal.
struct DeployFile {
    std::string text{};
    /// Of each node outside of commands, in their order: its key; its kind, size and text.
    Texts parts{};
    std::vector<DeployCommand> commands{};  ///< of the engine
    Texts checkpoints{};                    ///< named outside of commands: `line 7: modelURL`
};
/// Throws ParseError for what is no such file: another format, a template, aliases, tags, a key
/// twice, more than 1 MiB.
DeployFile read_deploy_file(std::string text, std::string_view name, const Engine& engine);

/// A flag, a variable, the model or the number of GPUs that is not as recommended.
struct DeployChange {
    std::string name{};    ///< the flag as the engine file spells it, the variable, `GPUs`, `model`
    std::string before{};  ///< what the file says, as words; empty: nothing
    std::string after{};   ///< what is recommended; empty: nothing
    bool by_hand = false;  ///< no flag and no model of the study: it is printed, not written
};
struct DeployDifference {
    std::vector<DeployChange> changes{};
    Texts risks{};               ///< what else was not measured, a sentence each
    Texts unknown{};             ///< what the file cannot tell, a sentence each
    bool no_checkpoint = false;  ///< its command does not say which one it serves
};
/// Values that the engine's file does not know are masked in it.
DeployDifference difference_of(const DeployCommand& command, const DeploySpec& spec);

struct DeployEdit {
    DeployDifference difference{};
    std::string text{};    ///< the whole file, changed
    std::string unsafe{};  ///< why the file is not changed; `text` is then empty
};
/// Writes the recommended flags and model into a command of the file. What comes out is read again:
/// its command must say what is recommended, and all else the same as before, or the edit is
/// unsafe.
DeployEdit edit_deploy_file(const DeployFile& file, const DeployCommand& command,
                            const DeploySpec& spec, std::string_view name);

/// Writes the whole of a changed file in the place of the old one, behind its links and with its
/// mode. Throws IoError where it is no longer what was read, or would lose anything else.
void replace_deploy_file(const std::filesystem::path& file, const std::string& before,
                         const std::string& after);

}  // namespace servetune
