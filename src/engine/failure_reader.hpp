// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"
#include "servetune/outcome.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Why an engine died, read from its log.
struct DecisiveLine {
    FailureKind kind = FailureKind::other;
    std::string line{};
};

/// The first line of a log that contains one of the engine's patterns, and the kind of failure that
/// this pattern stands for; of several patterns in one line the first of the engine file. Nothing
/// where no line has any. A line that is a warning by its level is no cause of a failure; one that
/// says that a flag has no effect counts for what is among `set`.
std::optional<DecisiveLine> decisive_line(const Engine& engine, std::span<const std::string> log,
                                          std::span<const std::string> set = {});

/// The exception that ended a program of one or several processes: which one failed first, not what
/// the others said when they noticed it.
///
/// Reads a log line by line. Engines write Python tracebacks in three ways, and several processes
/// write at once: each line behind the process's prefix ("(EngineCore pid=902) ERROR ..."), only
/// the first line behind it, or no prefix at all. The first complete traceback counts. Of a chain
/// ("During handling of the above exception, ...") its last exception counts, but for one of which
/// the engine's file says that it only follows (`crashed_under_load`). Tracebacks in messages
/// below the level of an error are skipped, and so are those of a program that is told to end. C++
/// programs say "terminate called after throwing" and `what()`.
class TracebackReader {
public:
    TracebackReader() = default;
    /// The engine must outlive it.
    explicit TracebackReader(const Engine& engine) : engine_(&engine) {}
    void read(std::string_view line);
    /// "ModuleNotFoundError: No module named 'flashinfer'", with the line that follows a message in
    /// several lines. Nothing: no exception was printed.
    [[nodiscard]] const std::optional<std::string>& exception() const { return exception_; }
    /// The innermost place in the code, as Python prints it: `File "...", line 11, in <module>`.
    /// Empty: unknown.
    [[nodiscard]] const std::string& place() const { return place_; }

private:
    struct Open {
        std::string prefix;      ///< before the traceback, clock times as zeros
        bool first_line = true;  ///< the next line tells whether each line has the prefix
        bool linked = false;     ///< goes on with the chain of `exception_`
        bool ignored = false;    ///< a warning, or the end that somebody asked for
        std::size_t lines = 0;
        std::string place{};
    };
    /// False: the line belongs to another process, or the traceback is over without an exception.
    bool continue_with(Open& open, std::string_view line, std::string_view same);
    void finish(const Open& open, std::string_view text);
    void read_after_exception(std::string_view line, std::string_view same);

    [[nodiscard]] bool follows(const std::string& exception) const;

    const Engine* engine_ = nullptr;
    std::vector<Open> open_{};
    std::optional<std::string> exception_{};
    std::string place_{};
    std::string prefix_{};  ///< of the traceback that `exception_` ended
    bool message_goes_on_ = false;
    bool chain_goes_on_ = false;
    bool thrown_ = false;  ///< C++: `what()` comes next
};

/// Whether a line says by its level that something failed: "0.00.076.293 E llama_model_load: ...",
/// "[ERROR] ...", "error: ...".
bool is_error_line(std::string_view line);

/// The kind of failure that an exception of Python itself stands for; `other` where its name says
/// nothing: engines' own words are in their files (`failures:`).
FailureKind kind_of_exception(std::string_view exception);

}  // namespace servetune
