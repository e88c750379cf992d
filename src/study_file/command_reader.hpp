// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// What the words of a serving command say that the audit needs.
struct CommandFacts {
    std::string engine{};             ///< the engine that it starts; empty: none that is known, or the words are flags only
    std::string model{};              ///< empty: the words name none
    std::string quantization{};       ///< empty: that of the checkpoint
    double devices = 1;               ///< product of the factors under `devices` of the engine file, >= 1
    bool prefix_cache_off = false;    ///< a flag switches it off
    bool speculates = false;          ///< some method of speculation is on
    std::optional<double> guesses{};  ///< tokens guessed a step, where the words say it
};

/// What a flag, however it is spelled, is in the engine file.
struct SpelledFlag {
    std::string flag{};         ///< as the engine file has it, with the dotted rest of a part of a JSON flag
    bool is_model = false;      ///< it names the model
    bool switches_off = false;  ///< it is a negation of `flag`
    bool beginning = false;     ///< only the beginning of `flag`, which some parsers take for the whole
};

/// Reads serving commands, as people write them, by what the engine files say: `launch` and
/// `started_as` tell whose command it is, the concepts of the parameters what their flags mean, the
/// versions files and `aliases` how else the flags are spelled. Words that no engine starts with
/// (flags alone) are read by the flags of all engines; of two that spell a flag alike the first
/// counts.
///
/// The concepts that it reads: `quantization`, `prefix_cache`, `no_prefix_cache`, `draft_model` and
/// all that begin with `speculative`; of these `speculative_tokens`, `speculative_tree_tokens` and
/// `speculative_ngram_tokens` say how many tokens are guessed. A flag that no engine file has
/// counts as speculation where `speculative` is a part of its name.
class CommandReader {
public:
    /// `root`: the folder of the search spaces, whose `engines/versions/` is read. Throws IoError
    /// and ParseError.
    CommandReader(const std::vector<Engine>& engines, const std::filesystem::path& root);

    [[nodiscard]] CommandFacts read(const std::vector<std::string>& words) const;

    /// The same command with the launcher and the spelling of flags that the engine files have, so
    /// that `Composition::parse` reads it: `A=1 vllm serve x -tp 2` has `--tensor-parallel-size`
    /// and the environment A. Flags alone become a command of `engine`; without one they stay as
    /// they are.
    [[nodiscard]] Command spelled_out(const std::vector<std::string>& words, const std::string& engine = "") const;
    /// The flag that a spelling stands for: an alias, `_` for `-`, a negation such as `--no-x`, a
    /// part of a JSON flag, the beginning of a flag. Nothing: no flag of this engine's file.
    [[nodiscard]] std::optional<SpelledFlag> flag_of(const std::string& spelling, const std::string& engine) const;
    /// The model that a command names, by position or by a flag; empty: none.
    [[nodiscard]] std::string model_of(const std::vector<std::string>& words) const { return read(words).model; }

private:
    enum class Meaning { none, model, quantization, devices, prefix_cache, no_prefix_cache, speculation, guesses };
    struct Flag {
        Meaning meaning = Meaning::none;
        bool switches_off = false;                              ///< of a bool: this spelling is for false
        std::string usual{};                                    ///< the value that changes nothing: the parameter's default
        std::vector<std::pair<std::string, Meaning>> fields{};  ///< of a flag that takes JSON: key -> what it means
    };
    using Flags = std::map<std::string, Flag>;
    struct Known {
        std::string engine;
        std::vector<std::vector<std::string>> starts;  ///< the words that commands begin with
        bool model_by_position = false;                ///< the first word behind them that belongs to no flag
        std::vector<std::string> program;              ///< the words that our own commands begin with
        std::string model_flag;                        ///< empty: by position
        Flags flags;
        std::map<std::string, std::string> spelling;  ///< other spelling -> the engine file's; "" for the model
        /// Every spelling with `-` for `_`, without the rest behind a dot -> what it is.
        std::map<std::string, SpelledFlag> plain;
        std::set<std::string> of_others{};  ///< such spellings of flags that the engine file does not have
    };
    struct Start {
        const Known* known = nullptr;
        std::size_t behind = 0;  ///< index of the first word behind it
    };

    static Meaning meaning_of(const Engine& engine, const EngineParameter& declared);
    static Flags flags_of(const Engine& engine);
    static void add_spellings(Known& known, const Engine& engine, const std::filesystem::path& root);
    static void apply(const Flag& flag, const std::string& value, CommandFacts& facts);
    static void add_plain_spellings(Known& known, const std::set<std::string>& ours);
    [[nodiscard]] static std::optional<SpelledFlag> flag_of(const std::string& spelling, const Known& known);
    [[nodiscard]] Start start_of(const std::vector<std::string>& words) const;
    /// What a flag means to this engine, or to any (null); none where nobody knows it.
    [[nodiscard]] Flag meaning_of(const Known* known, const std::string& flag) const;

    std::vector<Known> known_;
};

}  // namespace servetune
