// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/constraint.hpp"
#include "servetune/parameter.hpp"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// Where a value goes: a flag, an environment variable, or a place in the engine's options file.
struct Destination {
    std::string flag{};      ///< `--max-num-seqs`; of a bool: passed when it is true
    std::string off_flag{};  ///< of a bool: passed when it is false; empty: nothing is passed then
    std::string environment{};  ///< name of an environment variable
    std::string option{};       ///< dotted path in the options file: `kv_cache_config.dtype`
};

/// What a value of a parameter can mean to the cost model, where its own name does not say it
/// (EngineParameter::means):
/// - `none`: something is switched off; `engine`: as if the flag were not passed
/// - of a quantization, `as_checkpoint`: that of the checkpoint, whichever it is
/// - of a cache, `bf16` and `fp8_e4m3`: its number type
/// - of a capacity policy, `evicts`: requests may lose their cache again, so nothing is reserved
///   for them
/// - of a performance mode, `double_batches`: twice the default batch sizes
/// - of a method of speculation, the other five
inline constexpr std::array<std::string_view, 12> value_meanings{
    "none",           "engine", "as_checkpoint", "bf16",  "fp8_e4m3", "evicts",
    "double_batches", "ngram",  "mtp",           "eagle", "eagle3",   "draft_model"};

/// Values that an engine takes beside those that a search of the whole parameter looks at.
struct FurtherValues {
    Domain domain;        ///< integers or a choice
    std::string since{};  ///< first engine version that takes them; empty: all that the file covers
};

/// A parameter of an engine and how it reaches the engine.
struct EngineParameter {
    Parameter parameter;
    Destination destination{};
    Destination earlier{};  ///< how it was passed in versions up to `earlier_until`
    std::string earlier_until{};
    std::map<std::string, std::vector<Value>>
        values_since{};  ///< version -> values of a choice that came with it
    std::map<std::string, std::vector<Value>>
        values_until{};  ///< version -> values last seen in it
    std::map<std::string, std::vector<std::string>>
        architectures{};  ///< value (as text) -> chips that take it; others: all
    /// Value (as text) -> one of `value_meanings`; others mean what they say.
    std::map<std::string, std::string> means{};
    std::optional<FurtherValues> also{};
    std::map<std::string, Value>
        same_as{};  ///< another word for a value (as text) -> the value, or `Unset`: `auto`, -1
    bool suffixes = false;  ///< takes 8k for 8000 and 8K for 8192
    std::string since{};    ///< first engine version that has it; empty: all that the file covers
    std::string until{};    ///< last engine version that has it
    std::string source{};   ///< where it was checked
};

/// Several parameters that make one flag together: `--speculative-config={"method":...}`.
struct JsonFlag {
    std::string flag;
    std::vector<std::pair<std::string, std::string>> fields;  ///< JSON key -> parameter name
    std::vector<Condition> when{};  ///< all must hold, or the flag is not passed
};

/// One factor of the number of devices that an engine takes. Parameters that share devices which
/// are counted already (experts, context and data parallel attention within the tensor-parallel
/// ranks) are no factors; rules bound them.
struct DeviceFactor {
    std::string parameter;
    std::vector<Condition>
        unless{};  ///< where these hold it shares devices that are counted already
};

/// What rules may say of the model that is served, beside the engine's own parameters:
/// `model.attention_heads % tp_size == 0`. Where the model is not known, a part of a rule that
/// needs one of these is not known either.
inline constexpr std::array<std::string_view, 7> model_facts{
    "model.layers",       "model.attention_heads",     "model.experts",
    "model.kv_heads",     "model.queries_per_kv_head", "model.context_tokens",
    "model.weight_blocks"};

/// A program of the engine that keeps a checkpoint's weights in the devices' memory, so that
/// engines which start later map them and load nothing. Words and values may hold {model} and
/// {folder}, a folder for its sockets.
struct WeightCacheDaemon {
    std::vector<std::string> launch{};  ///< its command
    std::vector<std::string>
        arguments{};  ///< flags that it takes too where the study gives them to every command
    std::vector<std::string>
        parameters{};  ///< whose flags it is given too: those that the weights depend on
    std::vector<Condition> when{};      ///< all must hold, or the engine takes no weights from it
    std::vector<std::string> engine{};  ///< further words of the engine's command
    std::string ready{};                ///< in its line that says that it holds them
    std::string used{};                 ///< in the engine's line that says that it mapped them
    double ready_within_seconds = 0;
    std::string since{};  ///< first engine version that has it
};

/// How a start is told how large a cache an earlier one has found room for, so that it need not
/// find out.
struct CacheSize {
    std::string log{};      ///< stands before the number, in the line that tells the size
    double unit_bytes = 1;  ///< of that number
    std::string flag{};     ///< takes the size in bytes
    /// A log with one of these tells the size for its own start only.
    std::vector<std::string> unless{};
    std::vector<std::string> free{};  ///< parameters that leave it as it is; all others may not
    std::vector<Condition> when{};    ///< all must hold, or no start is told
    std::string since{};              ///< first engine version that is told
    std::string source{};
};

/// What the command of one role has more, where prefill and decode run apart. Words and values may
/// hold {host}, and {side_port}: the first of as many free ports in a row as the server has
/// devices.
struct EngineRole {
    std::string name;  ///< prefill, decode
    std::vector<std::string> arguments{};
    std::map<std::string, std::string> environment{};
};

/// How an engine runs prefill and decode apart, and the program that takes the requests then.
struct EngineRoles {
    std::vector<EngineRole> each;  ///< in the order in which a request passes them
    /// The router's command, with {host} and {port}. A part of several words stands once for each
    /// server of the role that it names: {prefill_url}, {prefill_side_port}.
    std::vector<std::vector<std::string>> router;
    std::string router_ready{};  ///< path that answers 200 once the router serves
    std::string since{};         ///< first engine version that has them
    std::string source{};
};

/// How the log of a dead engine is read: the first pattern found decides.
struct FailurePattern {
    std::string kind;  ///< a name of FailureKind (outcome.hpp)
    std::vector<std::string> match;
    std::vector<std::string> unless{};  ///< a line with one of these does not count
    /// Of `ignored_flags`: it counts where the command sets one of these (`max_tokens` of
    /// --max-tokens; a variable; a key); empty: where the line names what the command sets.
    std::vector<std::string> of{};
    std::string source{};  ///< the log or the code that has these words, with the engine's version
};

/// A serving engine: data, read from search_spaces/engines/NAME.yaml, never C++.
struct Engine {
    enum class FlagStyle { equals, separate };  ///< `--flag=value` or `--flag value`

    std::string name;
    std::string versions{};
    std::vector<std::string> launch{};  ///< words, with {model}, {host} and {port} to fill in
    /// Other words that commands of this engine begin with, beside those of `launch`: for reading
    /// commands that people wrote.
    std::vector<std::vector<std::string>> started_as{};
    /// Container images, without their registry, whose entry point is this engine: words behind
    /// them are its flags. One without a tag has any.
    std::vector<std::string> images{};
    /// Other spelling of a flag -> the parameter it sets, or `{model}`: for reading too, beside the
    /// spellings of the versions files.
    std::map<std::string, std::string> aliases{};
    /// Flags that leave the speed and the memory of a serving engine as they are: names, paths,
    /// seeds, logs, parsers.
    std::vector<std::string> not_about_speed{};
    /// What makes the program list its flags; the answers are tried in turn until one is
    /// whole.
    std::vector<std::vector<std::string>> help{{"--help"}};
    /// Words by which a line of that help names a flag that the program no longer takes.
    std::vector<std::string> help_of_removed{};
    FlagStyle flag_style = FlagStyle::equals;
    std::string options_flag{};             ///< takes the options file; empty: the engine has none
    std::vector<std::string> file_flags{};  ///< each takes a file that may set any other flag
    std::vector<std::string>
        flag_variables{};  ///< beginnings of environment variables that set flags
    std::vector<std::string>
        environment_prefixes{};  ///< beginnings of variables that can change the engine's speed
    std::vector<std::string> caches{};  ///< variables that name folders of compiled code
    /// Where files of models may be: FOLDER/*.ENDING, with `~` or `$NAME` at its start. Not empty:
    /// {model} is a file. Empty: it is a name on the hub or a folder.
    std::vector<std::string> model_files{};
    std::string ready_path{};  ///< answers 200 once the engine serves
    double ready_within_seconds = 0;
    /// style, chat, completions, models, server_info; what is not here is as OpenAI has it
    std::map<std::string, std::string> api{};
    /// Flag -> its name in the answer of `server_info`; of others the flag without leading dashes
    /// and with `_` for `-`.
    std::map<std::string, std::string> reported_as{};
    std::vector<std::pair<std::string, std::map<std::string, std::string>>>
        between_runs{};  ///< path to POST to -> environment it needs
    std::map<std::string, std::string> counters{};
    std::vector<FailurePattern> failures{};
    std::vector<EngineParameter> parameters{};
    std::vector<JsonFlag> json_flags{};
    std::vector<std::string>
        architectures{};  ///< chips that it runs on (detail/perf/hardware_spec.hpp); empty: any
    std::optional<WeightCacheDaemon> weight_cache{};
    std::optional<CacheSize> cache_size{};  ///< nothing: telling it saves nothing
    std::optional<EngineRoles> roles{};     ///< nothing: it does not run prefill and decode apart
    std::vector<DeviceFactor>
        devices{};  ///< their product is the number of devices; empty: flags do not decide it
    std::vector<Constraint> constraints{};
    /// Rules that not all versions have, by their text (text_of) -> first and last version; empty:
    /// no bound.
    std::map<std::string, std::pair<std::string, std::string>> constraint_versions{};

    [[nodiscard]] const EngineParameter* find(std::string_view parameter) const {
        for (const EngineParameter& candidate : parameters)
            if (candidate.parameter.name == parameter) return &candidate;
        return nullptr;
    }
};

}  // namespace servetune
