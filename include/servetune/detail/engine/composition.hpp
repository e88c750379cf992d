// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/engine.hpp"
#include "servetune/error.hpp"
#include "servetune/search_space.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

class EngineSpace;
struct CommandSettings;

/// What a study says of one parameter: it narrows, fixes or adds.
struct SpaceEntry {
    std::string name;                ///< `max_num_seqs`, `vllm.max_num_seqs`, or a concept
    std::optional<Domain> domain{};  ///< nothing: the engine's own
    std::optional<bool>
        offers_unset{};  ///< nothing: the engine's own, or false where a domain is given
    std::optional<Value> default_value{};
    bool fixed = false;                  ///< always `default_value`
    std::optional<bool> grows_memory{};  ///< nothing: as the engine's own
    std::map<std::string, std::string>
        checkpoints{};  ///< value (as text) -> model to serve instead of passing a flag
    /// a parameter that no engine file has; its default is of trial 0, not the engine's
    std::optional<EngineParameter> added{};
    bool of_preset =
        false;  ///< says what is worth a search; the study itself fixes nothing with it
};

/// How many devices a layout (tensor x pipeline x data parallel) may take.
struct DeviceLimit {
    std::int64_t count = 1;
    /// false: the study does not say how many there are, so one is taken, and asking for more is an
    /// error
    bool stated = false;
};

/// A rule with the model's figures in place of their names (`model_facts`), and nothing in place of
/// those not known.
[[nodiscard]] Expression with_model_facts(Expression rule,
                                          const std::map<std::string, std::int64_t>& known);

/// The engines of a study and what it says of their parameters.
struct SpaceDescription {
    std::vector<Engine> engines;
    std::vector<SpaceEntry> entries{};
    bool others_searched =
        true;  ///< false: parameters without an entry stay at their defaults and out of the space
    std::vector<Constraint> constraints{};
    std::map<std::string, std::vector<std::string>>
        arguments{};  ///< engine -> words at the end of each of its commands
    /// Engine -> what these words set, by the engine file's names of parameters.
    std::map<std::string, Assignment> set_by_arguments{};
    std::map<std::string, std::string>
        versions{};  ///< engine -> its version; without: the newest that its file covers
    std::vector<Parameter>
        load_levels{};  ///< `load.concurrency` or `load.request_rate` (engine/load_level.hpp)
    std::map<std::string, std::int64_t>
        model_facts{};  ///< of `model_facts` (engine.hpp), those that are known of the model
    /// of containers; several: `container.image` is a parameter, the first its default
    std::vector<std::string> images{};
    /// of the chip (detail/perf/hardware_spec.hpp): values that it refuses leave the space; empty:
    /// not known
    std::string architecture{};
    std::optional<DeviceLimit>
        devices{};  ///< nothing: no device is allocated for a trial (a table answers)
    /// Role -> what is said of its parameters (`prefill.count`, `prefill.max_num_seqs`). Nothing:
    /// prefill and decode are not tried apart.
    std::optional<std::map<std::string, std::vector<SpaceEntry>>> roles{};
    /// a narrowed parameter keeps the engine's own default; false: the table's rows are all there
    /// is
    bool adds_engine_default = true;
};

/// What is wrong with rules of a study (SpaceDescription::constraints): the index of the rule, and
/// what is wrong with it.
class ConstraintErrors : public SpaceError {
public:
    using Each = std::vector<std::pair<std::size_t, std::string>>;
    explicit ConstraintErrors(Each each) : SpaceError(text_of_all(each)), each_(std::move(each)) {}
    [[nodiscard]] const Each& each() const { return each_; }

private:
    static std::string text_of_all(const Each& each) {
        std::string result;
        for (const auto& [rule, what] : each) result += (result.empty() ? "" : "\n") + what;
        return result;
    }
    Each each_;
};

/// A command to start: words, never a shell line.
struct Command {
    std::vector<std::string> argv;
    std::map<std::string, std::string> environment{};
    std::map<std::string, std::string>
        files{};  ///< name, as it stands in argv -> content, to be written where it is started

    /// As a person types it into a POSIX shell, quoted where needed; environment first.
    [[nodiscard]] std::string text() const;
    /// What its files (JSON) say: dotted path -> text.
    [[nodiscard]] std::map<std::string, std::string> options() const;
};

/// One way in which commands of a study set something by themselves. What else sets it would win
/// over it, or lose.
struct PassedSetting {
    std::string
        place{};  ///< of the launch command: `{model}`, `{host}`, `{port}`; empty: of a parameter
    std::string parameter{};    ///< its name in the space
    std::string declared{};     ///< its name in the engine file
    std::string flag{};         ///< also a JSON flag as a whole
    std::string environment{};  ///< the variable
    std::string option{};       ///< dotted path in the options file
};

/// What a weight cache takes to start (WeightCacheDaemon).
struct WeightCacheCommands {
    std::string model;  ///< the study's, or a checkpoint's
    Command daemon{};
    std::vector<std::string> engine_adds{};  ///< words at the end of the engine's command
    std::string ready{};  ///< in the daemon's line that says that it holds the weights
    std::string used{};   ///< in the engine's line that says that it mapped them
    double ready_within_seconds = 0;
};

/// Fills the launch template: which model, and where to listen (no address flags when `host` is
/// empty).
struct LaunchTarget {
    std::string model;
    std::string host{};
    int port = 0;
    /// of a role (EngineRole): the first of as many free ports in a row as the server has devices
    int side_port = 0;
};

/// Servers of a configuration that are started alike.
struct ServerGroup {
    std::string role{};        ///< prefill, decode; empty: they answer requests by themselves
    std::int64_t count = 1;    ///< servers
    std::int64_t devices = 1;  ///< of one server
};

/// A server, as the router in front of it reaches it.
struct ServerAddress {
    std::string url;    ///< http://10.0.0.1:8001
    int side_port = 0;  ///< as its LaunchTarget had it
};

/// A process of a configuration, on one machine with the others.
struct ServerCommand {
    std::string name{};        ///< prefill-1, decode-1, router; empty: there is no other
    std::int64_t devices = 0;  ///< that it needs to itself
    int port = 0;
    Command command{};
};

/// The search space of a study, and the way back from its configurations to commands.
///
/// One engine: its parameters keep their names. Several: `engine` is the first parameter (its
/// default the first engine named), an engine's own parameters are called `engine.parameter` and
/// are active under it, and an entry without an engine is one parameter shared by all the engines
/// that know its name or concept. Parameters of different engines with one concept keep it as
/// `concept_name`, which links them.
class Composition {
public:
    /// Throws SpaceError: an entry no engine knows (in the version named), values outside an
    /// engine's domain (unless a checkpoint serves them), an entry that could never be active.
    explicit Composition(SpaceDescription description);

    [[nodiscard]] const std::vector<Engine>& engines() const;
    /// The version that the study names; empty: the newest.
    [[nodiscard]] std::string version_of(const Engine& engine) const;
    [[nodiscard]] const std::vector<Parameter>& parameters() const;
    [[nodiscard]] const std::vector<Constraint>& constraints() const;
    /// What a person should know of the space: values left out because they give the command of
    /// another value, parameters left out because the chip or the version takes none of their
    /// values.
    [[nodiscard]] const std::vector<std::string>& notes() const;

    /// Models that its commands may name beside the study's own: checkpoints and draft models.
    [[nodiscard]] std::vector<std::string> further_models() const;
    [[nodiscard]] std::set<std::string> checkpoints() const;

    /// The engine that a configuration runs on.
    [[nodiscard]] const Engine& engine_of(const Configuration& configuration) const;
    /// Its servers, prefill first. Several groups need a router.
    [[nodiscard]] std::vector<ServerGroup> groups(const Configuration& configuration) const;
    [[nodiscard]] bool needs_router(const Configuration& configuration) const;
    /// The command of each server of a group. Throws SpaceError for a role that is not in `groups`;
    /// without one it is the command of the engine that does all by itself.
    [[nodiscard]] Command render(const Configuration& configuration, const LaunchTarget& target,
                                 std::string_view role = "") const;
    /// The program that takes the requests and knows these servers, by role. Throws SpaceError for
    /// a configuration that needs none, and for a role without a server.
    [[nodiscard]] Command render_router(
        const Configuration& configuration, const LaunchTarget& target,
        const std::map<std::string, std::vector<ServerAddress>>& servers) const;
    /// All processes on one machine. Of several groups the router is the last: it listens on the
    /// target, servers on the ports behind it, of the loopback.
    [[nodiscard]] std::vector<ServerCommand> commands(const Configuration& configuration,
                                                      const LaunchTarget& target) const;
    /// `commands`, for a person.
    [[nodiscard]] std::string shown(const Configuration& configuration,
                                    const LaunchTarget& target) const;
    /// What commands of this engine set by themselves: the launch's own flags, and all parameters
    /// in the space.
    [[nodiscard]] std::vector<PassedSetting> passed(const Engine& engine) const;
    /// Why this engine has no weight cache in the study's version; empty: it has one.
    [[nodiscard]] std::string why_no_weight_cache(const Engine& engine) const;
    /// Why its engine cannot take this configuration's weights from a weight cache; empty: it can.
    [[nodiscard]] std::string why_no_weight_cache(const Configuration& configuration) const;
    /// The daemon that keeps this configuration's weights, with its sockets in `folder`, and what
    /// the engine's command has more. Only where `why_no_weight_cache` is empty.
    [[nodiscard]] WeightCacheCommands render_weight_cache(const Configuration& configuration,
                                                          const std::string& model,
                                                          const std::string& folder) const;
    /// What decides how large a cache this configuration's engine finds room for, as a text.
    /// Nothing: it cannot be told (Engine::cache_size), or the study sets the size itself.
    [[nodiscard]] std::optional<std::string> cache_size_key(
        const Configuration& configuration) const;
    /// The study's own words at the end of each command of this engine.
    [[nodiscard]] std::vector<std::string> arguments_of(const Engine& engine) const;
    /// How many devices its layout takes, of all groups together; 1 where the engine's flags do not
    /// decide it.
    [[nodiscard]] std::int64_t devices_of(const Configuration& configuration) const;

    /// The parameters that a command of ours or of a person sets, under the names of this space;
    /// the reverse of `render`.
    struct Parsed {
        const Engine* engine =
            nullptr;  ///< null: no engine's command and flags of no single engine
        Assignment values{};
        std::vector<std::string> unknown{};  ///< words that no parameter explains
    };
    /// `words`: a whole command, or its flags only (then the engine is the only one that knows all
    /// of them, else the first).
    [[nodiscard]] Parsed parse(const std::vector<std::string>& words,
                               const std::string& model) const;
    /// The same with its environment and options file.
    [[nodiscard]] Parsed parse(const Command& command, const std::string& model) const;
    /// The same for a command that is read already, so in the spellings that its reader knows.
    [[nodiscard]] Parsed parse(const CommandSettings& read, const std::string& model) const;

    /// A value that a person gives a parameter of this space, as its engine takes it: 8K is 8192
    /// where it takes that.
    [[nodiscard]] Value normalized(const std::string& name_in_space, const Value& value) const;
    /// What an entry or a stage calls a parameter -> its name in the space. Throws SpaceError with
    /// the nearest names.
    [[nodiscard]] std::string resolve(std::string_view name) const;

private:
    std::shared_ptr<const EngineSpace> space_;
};

/// The words of a command as documents print it: blanks separate, '...' and "..." hold together, a
/// backslash before a newline (or the blank that is left of one) joins lines. Unlike in a shell, a
/// quote inside a word stays, but for one behind `=`: `--config={"a":1}` is printed so, and
/// `--config='{"a": 1}'`.
std::vector<std::string> shell_words(std::string_view line);

/// What is wrong with entries of a space (SpaceEntry::name, or `roles`), and with each what.
class EntryErrors : public SpaceError {
public:
    using Each = std::vector<std::pair<std::string, std::string>>;
    explicit EntryErrors(Each each) : SpaceError(text_of_all(each)), each_(std::move(each)) {}
    EntryErrors(std::string entry, std::string what)
        : EntryErrors(Each{{std::move(entry), std::move(what)}}) {}
    [[nodiscard]] const Each& each() const { return each_; }

private:
    static std::string text_of_all(const Each& each) {
        std::string result;
        for (const auto& [entry, what] : each)
            result += (result.empty() ? "'" : "\n'") + entry + "': " + what;
        return result;
    }
    Each each_;
};

}  // namespace servetune
