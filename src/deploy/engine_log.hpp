// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/failure_reader.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/host/process.hpp"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// What a command sets, by the names that a log may use: `--max-tokens` and `max_tokens`,
/// variables, words of JSON, keys of the options file. Not what `=false` turns off.
std::vector<std::string> names_set(const Command& command);

/// How large a cache an engine's start has found room for, in bytes: the smallest that its log
/// tells. Nothing: it tells none, or none that later starts may be told.
std::optional<std::int64_t> cache_bytes_in(std::string_view log, const CacheSize& size);

/// What an engine prints, read as it comes for the lines that its file knows. Any thread may ask.
class EngineLog {
public:
    /// Engine and process must outlive it. `set`: what the engine's command sets (names_set).
    EngineLog(const Engine& engine, const Process& process, std::vector<std::string> set = {})
        : engine_(engine), process_(process), set_(std::move(set)) {}

    /// Reads what is new.
    void read();
    /// From here on the engine serves: `under_load` counts from now.
    void serving();

    /// Why a start failed: the first line of a kind that is known, else the first of kind `other`,
    /// else the exception of the process that failed first, else the first line that says that it
    /// crashed.
    [[nodiscard]] std::optional<DecisiveLine> cause() const;
    /// For how long it has said nothing more since it said a cause, other than one of kind `other`.
    [[nodiscard]] std::chrono::duration<double> since_cause() const;
    /// Why it broke under load: the first line since `serving` that says that it crashed, ran out
    /// of memory or that the machine failed.
    [[nodiscard]] std::optional<DecisiveLine> under_load() const;
    /// The exception that the first process of a server died of since `serving`.
    [[nodiscard]] std::optional<std::string> exception_under_load() const;
    /// The first line which says that a flag has no effect. No cause of a failed start.
    [[nodiscard]] std::optional<std::string> ignored_flag() const;
    /// Lines of a server that serves all the same which say that it does not do what was asked.
    [[nodiscard]] std::vector<std::string> unsupported() const;
    /// The first line of an error's level; empty: there is none.
    [[nodiscard]] std::string first_error() const;
    /// Whether it printed how it is used, as programs do that refuse their words.
    [[nodiscard]] bool shows_usage() const;
    /// The lines that decide, then the last ones: ten at most.
    [[nodiscard]] std::vector<std::string> decisive() const;

private:
    void look_at(const std::string& line);

    const Engine& engine_;
    const Process& process_;
    const std::vector<std::string> set_;
    mutable std::mutex mutex_{};
    std::size_t position_ = 0;
    std::string unfinished_{};           ///< the last line, as far as it was printed
    std::vector<DecisiveLine> found_{};  ///< the first of them
    std::optional<std::string> ignored_{};
    TracebackReader tracebacks_{engine_};  ///< since `serving`
    std::string first_error_{};
    std::size_t served_from_ = std::size_t(-1);  ///< in `found_`
    std::chrono::steady_clock::time_point heard_{};
    bool usage_ = false;
};

}  // namespace servetune
