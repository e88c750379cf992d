// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.hpp"
#include "data_files.hpp"
#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"
#include "text_stream.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <string_view>

namespace servetune {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_row_bytes =
    std::size_t{16}
    << 20U;  ///< of a line; 10 million tokens have 20 000 hash ids of at most 20 digits

/// Which column is what, in the order of preference.
using Columns = std::vector<std::string>;
const Columns input_names{"input_tokens",  "input_length",   "ContextTokens",
                          "prompt_tokens", "Request tokens", "num_prefill_tokens"};
const Columns output_names{"output_tokens",     "output_length",   "GeneratedTokens",
                           "completion_tokens", "Response tokens", "num_decode_tokens"};
const Columns time_names{"timestamp_seconds", "timestamp_milliseconds",
                         "timestamp",         "TIMESTAMP",
                         "Timestamp",         "arrived_at"};
const Columns session_names{"session_id", "session", "conversation_id"};

/// A moment as whole seconds and their fraction: a double alone keeps no microseconds of a date.
struct Moment {
    std::int64_t whole = 0;
    double fraction = 0;
    [[nodiscard]] double since(const Moment& other) const {
        return double(whole - other.whole) + (fraction - other.fraction);
    }
};

/// `2023-11-16 18:17:03.9799600`, also with T, Z or +hh:mm; or a number.
std::optional<Moment> moment_of(std::string_view text) {
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && stop == text.data() + text.size()) {
        if (!(std::abs(number) < 1e15)) return std::nullopt;
        const double whole = std::floor(number);
        return Moment{std::int64_t(whole), number - whole};
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
    const std::chrono::year_month_day date{std::chrono::year(digits(0, 4)),
                                           std::chrono::month(static_cast<unsigned>(digits(5, 2))),
                                           std::chrono::day(static_cast<unsigned>(digits(8, 2)))};
    if (!date.ok() || digits(11, 2) > 23 || digits(14, 2) > 59 || digits(17, 2) > 60)
        return std::nullopt;
    Moment result{std::chrono::sys_days(date).time_since_epoch().count() * 86'400L +
                      digits(11, 2) * 3600L + digits(14, 2) * 60L + digits(17, 2),
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
        !(value >= 0 && value <= double(most_length_tokens)) || value != std::floor(value))
        stream.fail(line, "'" + std::string(column) + "': a number of tokens in [0, " +
                              std::to_string(most_length_tokens) + "] wanted, got '" +
                              std::string(text.substr(0, 40)) + "'");
    return std::int64_t(value);
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
        const double all = double(result->whole % 1000) + result->fraction;
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

/// The columns of a row that count; empty: it has none of them.
struct NamedColumns {
    std::string_view input, output, time, session;
};

/// `has`: whether a row has a column of that name.
template <class Has>
NamedColumns named_columns(const TextStream& stream, std::size_t line, const Has& has) {
    const auto first = [&](const Columns& columns) {
        const auto found = find_if(columns, has);
        return found == columns.end() ? std::string_view() : *found;
    };
    const auto wanted = [&](const Columns& columns, const char* what) {
        const std::string_view name = first(columns);
        if (name.empty())
            stream.fail(line, std::string(what) + " wanted, one of: " + listed(columns));
        return name;
    };
    return {wanted(input_names, "a column with the prompts' lengths"),
            wanted(output_names, "a column with the answers' lengths"), first(time_names),
            first(session_names)};
}

/// `text`: what stands in a column.
template <class Text>
RawRow raw_row(const TextStream& stream, std::size_t line, const NamedColumns& named,
               bool milliseconds, const Text& text) {
    RawRow result;
    result.row.input_tokens = length_of(stream, line, named.input, text(named.input));
    result.row.output_tokens = length_of(stream, line, named.output, text(named.output));
    if (!named.session.empty()) result.row.session = fingerprint_of(text(named.session)).bits;
    if (!named.time.empty())
        result.moment = moment_at(stream, line, named.time, text(named.time),
                                  milliseconds || named.time == "timestamp_milliseconds");
    return result;
}

/// Rows of a CSV file whose first line names the columns.
class CsvTrace {
public:
    CsvTrace(const TextStream& stream, std::size_t line, std::string_view header) {
        for (const std::string_view name : cells_of(header)) names_.emplace_back(name);
        named_ = named_columns(stream, line,
                               [&](std::string_view name) { return contains(names_, name); });
    }

    [[nodiscard]] RawRow row(const TextStream& stream, std::size_t line,
                             std::string_view text) const {
        const std::vector<std::string_view> cells = cells_of(text);
        if (cells.size() != names_.size())
            stream.fail(line, std::to_string(names_.size()) + " cells wanted, got " +
                                  std::to_string(cells.size()));
        return raw_row(stream, line, named_, false, [&](std::string_view name) {
            return cells[std::size_t(std::find(names_.begin(), names_.end(), name) -
                                     names_.begin())];
        });
    }

private:
    Columns names_{};
    NamedColumns named_{};
};

/// Of a list or an object its kind only: printing one takes a stack as deep as it nests.
std::string text_of_cell(const Json& value) {
    return value.is_string()       ? value.get<std::string>()
           : value.is_structured() ? value.type_name()
                                   : value.dump();
}

RawRow json_row(const TextStream& stream, std::size_t line, const Json& object) {
    if (!object.is_object())
        stream.fail(line, "an object wanted, got " + std::string(object.type_name()));
    const auto has = [&](std::string_view name) { return object.contains(std::string(name)); };
    const NamedColumns named = named_columns(stream, line, has);
    // Mooncake's `timestamp` is in milliseconds; its other names tell it.
    const bool milliseconds =
        named.time == "timestamp" && (named.input == "input_length" || has("hash_ids"));
    RawRow result = raw_row(stream, line, named, milliseconds, [&](std::string_view name) {
        return text_of_cell(object.at(std::string(name)));
    });
    if (const auto tokens = object.find("block_tokens"); tokens != object.end()) {
        result.row.block_tokens = length_of(stream, line, "block_tokens", text_of_cell(*tokens));
        if (result.row.block_tokens < 1)
            stream.fail(line, "'block_tokens': at least 1 wanted, got 0");
    }
    if (const auto ids = object.find("hash_ids"); ids != object.end()) {
        const auto check = [&](const Json& value, bool fits) {
            if (!fits)
                stream.fail(line,
                            "'hash_ids': a list of integers wanted, got " + text_of_cell(value));
        };
        check(*ids, ids->is_array());
        for (const Json& id : *ids) {
            check(id, id.is_number_integer());
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
        for (;;) {
            const bool in_list = at_ < records_.size();
            if (!in_list) line_ = stream_.line_number();
            if (!in_list && !stream_.line(text_, most_row_bytes)) return false;
            const std::size_t begin = text_.find_first_not_of(" \t\r");
            if (begin == std::string::npos) continue;
            if (!in_list) ++lines_;
            if (csv_) row = csv_->row(stream_, line_, text_);
            else if (in_list) row = json_row(stream_, line_, records_[at_++]);
            else if (contains("{[]", text_[begin])) {
                take_records(begin);
                continue;
            } else if (lines_ > 1) stream_.fail(line_, "an object as on the lines before wanted");
            else {
                csv_.emplace(stream_, line_, text_);
                --lines_;
                continue;
            }
            // Azure's have answers of 0 tokens; an engine cannot be asked for that.
            row.row.output_tokens = std::max<std::int64_t>(1, row.row.output_tokens);
            return true;
        }
    }
    [[nodiscard]] std::size_t line() const { return line_; }  ///< of the last one, from 1
    [[noreturn]] void fail(const std::string& why) const { stream_.fail(line_, why); }

private:
    /// An object, or the objects of a list, also of a page that has one. A line that only opens or
    /// ends a list has none.
    void take_records(std::size_t begin) {
        at_ = 0;
        records_ = Json::array();
        text_.resize(text_.find_last_not_of(", \t\r") + 1);
        if (text_[begin] == ']' || text_.ends_with('[')) return;
        const bool ends_list = text_.ends_with(']');
        if (text_[begin] == '[' && !ends_list) text_[begin] = ' ';
        if (text_[begin] == '{' && ends_list) text_.pop_back();
        Json value = json_of_line(stream_, line_, text_);
        const bool is_row =
            any_of(input_names, [&](const std::string& name) { return value.contains(name); });
        const auto page = find_if(
            value, [&](const Json& one) { return !is_row && value.is_object() && one.is_array(); });
        if (value.is_array()) records_ = std::move(value);
        else if (page != value.end()) records_ = Json(*page);
        else records_.push_back(std::move(value));
    }

    TextStream stream_;
    Json records_ = Json::array();
    std::size_t at_ = 0;  ///< of the records: the next
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
                row.row.seconds = double(row.moment->whole) + row.moment->fraction;
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
