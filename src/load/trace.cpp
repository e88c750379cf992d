// SPDX-License-Identifier: Apache-2.0
#include "data_files.hpp"
#include "json_line.hpp"
#include "servetune/detail/base/fingerprint.hpp"
#include "base/nearest.hpp"
#include "servetune/error.hpp"
#include "text_stream.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

namespace servetune {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_row_bytes =
    std::size_t{16}
    << 20U;  ///< of a line; 10 million tokens have 20 000 hash ids of at most 20 digits

/// Which column is what, in the order of preference.
struct Columns {
    std::array<std::string_view, 7> names;
};
constexpr Columns input_names{{"input_tokens", "input_length", "ContextTokens", "prompt_tokens",
                               "Request tokens", "num_prefill_tokens", ""}};
constexpr Columns output_names{{"output_tokens", "output_length", "GeneratedTokens",
                                "completion_tokens", "Response tokens", "num_decode_tokens", ""}};
constexpr Columns time_names{{"timestamp_seconds", "timestamp_milliseconds", "timestamp",
                              "TIMESTAMP", "Timestamp", "arrived_at", ""}};

constexpr Columns session_names{{"session_id", "session", "conversation_id", "", "", "", ""}};

template <class Has>
std::string_view first_column(const Columns& columns, const Has& has) {
    for (const std::string_view name : columns.names)
        if (!name.empty() && has(name)) return name;
    return "";
}

std::string names_of(const Columns& columns) {
    std::vector<std::string> names;
    for (const std::string_view name : columns.names)
        if (!name.empty()) names.emplace_back(name);
    return listed(names);
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar (Hinnant, "chrono-Compatible Low-Level
/// Date Algorithms").
std::int64_t days_from_civil(std::int64_t year, int month, int day) {
    year -= month <= 2 ? 1 : 0;
    const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
    const std::int64_t year_of_era = year - era * 400;
    const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146'097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719'468;
}

/// A moment as whole seconds and their fraction: a double alone keeps no microseconds of a date.
struct Moment {
    std::int64_t whole = 0;
    double fraction = 0;
    [[nodiscard]] double since(const Moment& other) const {
        return static_cast<double>(whole - other.whole) + (fraction - other.fraction);
    }
};

/// `2023-11-16 18:17:03.9799600`, also with T, Z or +hh:mm; or a number.
std::optional<Moment> moment_of(std::string_view text) {
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && stop == text.data() + text.size()) {
        if (!(std::abs(number) < 1e15)) return std::nullopt;
        const double whole = std::floor(number);
        return Moment{static_cast<std::int64_t>(whole), number - whole};
    }
    constexpr std::string_view pattern = "dddd-dd-dd?dd:dd:dd";
    if (text.size() < pattern.size()) return std::nullopt;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        if (pattern[i] == 'd'   ? !digit
            : pattern[i] == '?' ? text[i] != ' ' && text[i] != 'T'
                                : text[i] != pattern[i])
            return std::nullopt;
    }
    const auto digits = [&](std::size_t from, std::size_t count) {
        int value = 0;
        for (std::size_t i = from; i < from + count; ++i) value = value * 10 + (text[i] - '0');
        return value;
    };
    const int month = digits(5, 2);
    const int day = digits(8, 2);
    if (month < 1 || month > 12 || day < 1 || day > 31 || digits(11, 2) > 23 ||
        digits(14, 2) > 59 || digits(17, 2) > 60)
        return std::nullopt;
    Moment result{days_from_civil(digits(0, 4), month, day) * 86'400 + digits(11, 2) * 3600L +
                      digits(14, 2) * 60L + digits(17, 2),
                  0};
    std::size_t at = pattern.size();
    if (at < text.size() && text[at] == '.') {
        ++at;
        for (double unit = 0.1; at < text.size() && text[at] >= '0' && text[at] <= '9';
             ++at, unit /= 10)
            result.fraction += unit * (text[at] - '0');
    }
    const std::string_view zone = text.substr(at);
    if (zone.empty() || zone == "Z" || zone == "z") return result;
    const auto is_digit = [&](std::size_t i) { return zone[i] >= '0' && zone[i] <= '9'; };
    if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':' || !is_digit(1) ||
        !is_digit(2) || !is_digit(4) || !is_digit(5))
        return std::nullopt;
    const int offset = digits(at + 1, 2) * 3600 + digits(at + 4, 2) * 60;
    result.whole += zone[0] == '+' ? -offset : offset;
    return result;
}

/// A row whose time is still a moment.
struct RawRow {
    TraceRow row;
    std::optional<Moment> moment{};
};

std::int64_t length_of(const TextStream& stream, std::size_t line, std::string_view column,
                       std::string_view text) {
    double value = 0;  // some traces write 374.0
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size() ||
        !(value >= 0 && value <= static_cast<double>(most_length_tokens)) ||
        value != std::floor(value))
        stream.fail(line, "'" + std::string(column) + "': a number of tokens in [0, " +
                              std::to_string(most_length_tokens) + "] wanted, got '" +
                              std::string(text.substr(0, 40)) + "'");
    return static_cast<std::int64_t>(value);
}

Moment moment_at(const TextStream& stream, std::size_t line, std::string_view column,
                 std::string_view text, bool milliseconds) {
    auto result = moment_of(text);
    if (!result)
        stream.fail(line,
                    "'" + std::string(column) +
                        "': seconds or a date and time (2023-11-16 18:17:03.97) wanted, got '" +
                        std::string(text.substr(0, 40)) + "'");
    if (milliseconds) {
        const double all = static_cast<double>(result->whole % 1000) + result->fraction;
        const std::int64_t seconds = result->whole / 1000;
        *result = {seconds, all / 1000};
    }
    return *result;
}

std::vector<std::string_view> cells_of(std::string_view line) {
    std::vector<std::string_view> cells;
    while (true) {
        const std::size_t comma = std::min(line.find(','), line.size());
        std::string_view cell = line.substr(0, comma);
        while (!cell.empty() && (cell.front() == ' ' || cell.front() == '"')) cell.remove_prefix(1);
        while (!cell.empty() && (cell.back() == ' ' || cell.back() == '"')) cell.remove_suffix(1);
        cells.push_back(cell);
        if (comma == line.size()) return cells;
        line.remove_prefix(comma + 1);
    }
}

/// Rows of a CSV file whose first line names the columns.
class CsvTrace {
public:
    CsvTrace(const TextStream& stream, std::size_t line, std::string_view header) {
        const std::vector<std::string_view> names = cells_of(header);
        const auto column = [&](const Columns& columns) {
            const std::string_view name = first_column(columns, [&](std::string_view wanted) {
                return std::find(names.begin(), names.end(), wanted) != names.end();
            });
            return std::pair{
                std::string(name),
                name.empty() ? -1 : std::find(names.begin(), names.end(), name) - names.begin()};
        };
        count_ = names.size();
        input_ = column(input_names);
        output_ = column(output_names);
        time_ = column(time_names);
        session_ = column(session_names);
        if (input_.second < 0)
            stream.fail(line, "a column with the prompts' lengths wanted, one of: " +
                                  names_of(input_names));
        if (output_.second < 0)
            stream.fail(line, "a column with the answers' lengths wanted, one of: " +
                                  names_of(output_names));
    }

    [[nodiscard]] RawRow row(const TextStream& stream, std::size_t line,
                             std::string_view text) const {
        const std::vector<std::string_view> cells = cells_of(text);
        if (cells.size() != count_)
            stream.fail(line, std::to_string(count_) + " cells wanted, got " +
                                  std::to_string(cells.size()));
        const auto cell = [&](const auto& column) {
            return cells[static_cast<std::size_t>(column.second)];
        };
        RawRow result;
        result.row.input_tokens = length_of(stream, line, input_.first, cell(input_));
        result.row.output_tokens = length_of(stream, line, output_.first, cell(output_));
        if (session_.second >= 0) result.row.session = fingerprint_of(cell(session_)).bits;
        if (time_.second >= 0)
            result.moment = moment_at(stream, line, time_.first, cell(time_),
                                      time_.first == "timestamp_milliseconds");
        return result;
    }

private:
    std::size_t count_ = 0;
    std::pair<std::string, std::ptrdiff_t> input_, output_, time_, session_;
};

/// Of a list or an object its kind only: printing one takes a stack as deep as it nests.
std::string text_of_cell(const Json& value) {
    return value.is_structured() ? value.type_name() : value.dump();
}

RawRow json_row(const TextStream& stream, std::size_t line, const std::string& text) {
    Json object = json_of_line(stream, line, text);
    if (!object.is_object())
        stream.fail(line, "an object wanted, got " + std::string(object.type_name()));
    const auto has = [&](std::string_view name) { return object.contains(std::string(name)); };
    const auto plain = [&](std::string_view name) {
        const Json& value = object[std::string(name)];
        return value.is_string() ? value.get<std::string>() : text_of_cell(value);
    };
    const std::string_view input = first_column(input_names, has);
    const std::string_view output = first_column(output_names, has);
    const std::string_view time = first_column(time_names, has);
    if (input.empty())
        stream.fail(line, "the prompt's length wanted, one of: " + names_of(input_names));
    if (output.empty())
        stream.fail(line, "the answer's length wanted, one of: " + names_of(output_names));
    RawRow result;
    result.row.input_tokens = length_of(stream, line, input, plain(input));
    result.row.output_tokens = length_of(stream, line, output, plain(output));
    // Mooncake's `timestamp` is in milliseconds; its other names tell it.
    const bool milliseconds = time == "timestamp_milliseconds" ||
                              (time == "timestamp" && (input == "input_length" || has("hash_ids")));
    if (!time.empty()) result.moment = moment_at(stream, line, time, plain(time), milliseconds);
    if (const std::string_view session = first_column(session_names, has); !session.empty())
        result.row.session = fingerprint_of(plain(session)).bits;
    if (const auto tokens = object.find("block_tokens"); tokens != object.end()) {
        result.row.block_tokens = length_of(stream, line, "block_tokens", text_of_cell(*tokens));
        if (result.row.block_tokens < 1)
            stream.fail(line, "'block_tokens': at least 1 wanted, got 0");
    }
    if (const auto ids = object.find("hash_ids"); ids != object.end()) {
        if (!ids->is_array())
            stream.fail(line, "'hash_ids': a list of integers wanted, got " +
                                  std::string(ids->type_name()));
        for (const Json& id : *ids) {
            if (!id.is_number_integer())
                stream.fail(line, "'hash_ids': a list of integers wanted, got " + text_of_cell(id));
            result.row.blocks.push_back(id.get<std::uint64_t>());
        }
    }
    return result;
}

/// The rows of a file, one after the other.
class TraceRows {
public:
    explicit TraceRows(const std::string& file) : stream_(file) {}

    /// False at the end. Throws ParseError for a line that is no row; the next call goes on behind.
    bool next(RawRow& row) {
        for (line_ = stream_.line_number(); stream_.line(text_, most_row_bytes);
             line_ = stream_.line_number()) {
            const std::size_t begin = text_.find_first_not_of(" \t\r");
            if (begin == std::string::npos) continue;
            ++lines_;
            if (csv_) row = csv_->row(stream_, line_, text_);
            else if (text_[begin] == '{') row = json_row(stream_, line_, text_);
            else if (lines_ > 1) stream_.fail(line_, "an object as on the lines before wanted");
            else {
                csv_.emplace(stream_, line_, text_);
                --lines_;
                continue;
            }
            // Azure's have answers of 0 tokens; an engine cannot be asked for that.
            row.row.output_tokens = std::max<std::int64_t>(1, row.row.output_tokens);
            return true;
        }
        return false;
    }
    [[nodiscard]] std::size_t line() const { return line_; }    ///< of the last one, from 1
    [[nodiscard]] std::size_t lines() const { return lines_; }  ///< that should be rows
    [[noreturn]] void fail(const std::string& why) const { stream_.fail(line_, why); }

private:
    TextStream stream_;
    std::optional<CsvTrace> csv_{};
    std::string text_{};
    std::size_t line_ = 1, lines_ = 0;
};

}  // namespace

std::vector<TraceRow> read_trace(const std::string& file, std::size_t most) {
    TraceRows rows(file);
    std::vector<TraceRow> result;
    std::optional<Moment> first;
    for (RawRow row; result.size() < most && rows.next(row);) {
        if (row.moment) {
            if (!first) first = row.moment;
            row.row.seconds = row.moment->since(*first);
            if (!result.empty() && row.row.seconds < result.back().seconds)
                rows.fail("time stamps that do not go back wanted; sort the file by them");
        }
        if (!result.empty() && row.moment.has_value() != result.back().seconds.has_value())
            rows.fail("a time stamp on every row wanted, or on none");
        result.push_back(std::move(row.row));
    }
    if (result.empty())
        throw ParseError(file + ": at least one request wanted, the trace has none");
    return result;
}

LoggedRequests read_requests(const std::string& file) {
    TraceRows rows(file);
    LoggedRequests result;
    for (bool more = true; more;) {
        RawRow row;
        try {
            more = rows.next(row);
            if (!more) break;
            if (row.moment) {
                row.row.seconds = static_cast<double>(row.moment->whole) + row.moment->fraction;
                result.rows.push_back(std::move(row.row));
                continue;
            }
        } catch (const ParseError&) {  // NOLINT(bugprone-empty-catch): counted below
        }
        if (result.unread++ == 0) result.first_unread = rows.line();
    }
    return result;
}

}  // namespace servetune
