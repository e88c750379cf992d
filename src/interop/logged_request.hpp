// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "log_time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// What a line of a log tells of a request. No text of the line is in it.
struct LoggedRequest {
    enum class Part {
        whole,     ///< all that the log has to say
        received,  ///< it came
        details,   ///< of its prompt, where lines of their own have them
        piece,     ///< of its answer: `output_tokens` are those of the piece
        answered,  ///< it ended well
        lost       ///< it ended otherwise
    };
    /// Why it is no request that an engine would have to serve.
    enum class Kept { yes, failed, cached, other };

    Part part = Part::whole;
    Kept kept = Kept::yes;
    std::uint64_t id = 0;       ///< a hash; 0: none
    std::uint64_t session = 0;  ///< a hash; 0: none
    std::optional<double> start{};
    bool whole_seconds = false;                                   ///< its clock shows no fractions
    bool has_year = true;                                         ///< and its dates have one
    std::optional<std::int64_t> input_tokens{}, output_tokens{};  ///< as a tokenizer counted them
    double input_estimate = 0,
           output_estimate = 0;           ///< of texts or bytes; 0: nothing to estimate from
    bool bytes_only = false;              ///< the estimates are of bytes on the wire
    bool cut = false;                     ///< the log has only the first part of the prompt
    std::vector<std::uint64_t> blocks{};  ///< names; equal names, equal beginnings
    std::int64_t block_tokens = 0;        ///< of each
    bool blocks_of_text = false;          ///< their length is an estimate
};

/// Reads the lines of one log, whatever wrote it: a line of JSON (a proxy's payload or spend log,
/// an engine's, a web server's, a request with its time, a trace), a row of CSV below a header, a
/// line of an engine's text log, or of a web server's access log.
class LogLines {
public:
    /// Nothing: the line tells of no request. `with_prompts`: also what needs their texts read.
    std::optional<LoggedRequest> read(std::string_view line, bool with_prompts);

    [[nodiscard]] std::size_t understood() const { return understood_; }  ///< lines so far
    [[nodiscard]] bool clock_was_set() const { return clock_.was_set(); }

private:
    std::optional<LoggedRequest> read_line(std::string_view line);
    std::optional<LoggedRequest> engine_line(std::string_view line);
    std::optional<LoggedRequest> engine_object(std::string_view line, const LogTime& time);
    std::optional<LoggedRequest> access_line(std::string_view line);

    bool with_prompts_ = false;
    bool first_ = true;
    std::vector<std::string> columns_{};
    LogClock clock_{};
    std::size_t understood_ = 0;
};

/// The text of a CSV line's cells, without the quotes around them.
std::vector<std::string> csv_cells(std::string_view line);

/// Of an access log's words, by whatever names they came.
struct AccessWords {
    std::string_view method{}, path{}, status{}, content_type{}, request_bytes{}, answer_bytes{};
    std::optional<double> seconds{};  ///< that it took
};
/// Fills `request` in from them. `end`: when it was logged.
void read_access(const AccessWords& words, double end, LoggedRequest& request);
/// Whether a path is one where an answer of a model is asked for.
bool asks_model(std::string_view path);

/// A request of a JSON object or of a CSV row that was made one. Nothing: it is none.
std::optional<LoggedRequest> read_json_request(std::string_view line, bool with_prompts,
                                               LogClock& clock);
/// Whether columns are those of a table of requests.
bool names_requests(const std::vector<std::string>& columns);
/// As read_json_request, of cells below their columns.
std::optional<LoggedRequest> read_csv_request(const std::vector<std::string>& columns,
                                              const std::vector<std::string>& cells,
                                              bool with_prompts, LogClock& clock);

}  // namespace servetune
