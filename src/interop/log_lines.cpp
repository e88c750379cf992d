// SPDX-License-Identifier: Apache-2.0
// Requests in the text logs of engines and web servers.
#include "logged_request.hpp"
#include "prompt_blocks.hpp"
#include "python_text.hpp"

#include "base/nesting.hpp"
#include "base/text.hpp"
#include "servetune/detail/base/fingerprint.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace servetune {
namespace {

using LineJson = nlohmann::json;
using LinePart = LoggedRequest::Part;
using LineKept = LoggedRequest::Kept;

constexpr std::size_t most_head_bytes = 400;  ///< of what logs write in front of a message
constexpr double most_printed =
    1e12;  ///< of bytes, seconds and tokens that can be meant; the seconds of 30 000 years
constexpr std::string_view decimal_digits = "0123456789";

std::optional<double> printed_number(std::string_view text) {
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || stop != text.data() + text.size() ||
        !(std::abs(number) < most_printed))
        return std::nullopt;
    return number;
}

std::optional<std::int64_t> printed_tokens(std::string_view text) {
    const auto number = printed_number(text);
    if (!number || !(*number >= 0 && *number <= static_cast<double>(1U << 24U)))
        return std::nullopt;
    return std::llround(*number);
}

/// The first time in the head of a line, wherever a container's or a logger's prefix left it.
std::optional<LogTime> time_in(std::string_view head) {
    for (std::size_t at = 0; at < head.size(); ++at) {
        if (decimal_digits.find(head[at]) == std::string_view::npos) continue;
        std::string_view rest = head.substr(at);
        if (auto time = take_log_time(rest)) return time;
        at = std::min(head.find_first_not_of(decimal_digits, at), head.size()) - 1;
    }
    return std::nullopt;
}

/// The numbers of a list; returns how many.
std::int64_t each_id(std::string_view list, PromptBlocks* blocks) {
    std::int64_t count = 0;
    while (true) {
        const std::size_t begin = list.find_first_of(decimal_digits);
        if (begin == std::string_view::npos) return count;
        list.remove_prefix(begin);
        std::int64_t id = 0;
        const auto [stop, error] = std::from_chars(list.data(), list.data() + list.size(), id);
        ++count;
        if (blocks != nullptr && error == std::errc()) blocks->add_id(id);
        list.remove_prefix(static_cast<std::size_t>(stop - list.data()));
        if (error != std::errc())
            list.remove_prefix(std::min(list.find_first_not_of(decimal_digits), list.size()));
    }
}

void give_blocks(const PromptBlocks& blocks, bool of_text, LoggedRequest& request) {
    request.blocks = blocks.names();
    request.block_tokens = PromptBlocks::tokens;
    request.blocks_of_text = of_text;
    request.input_estimate = blocks.token_count();
}

/// A prompt as an engine prints it: ids where there are any, else its text.
class PrintedPrompt {
public:
    explicit PrintedPrompt(bool wanted) : wanted_(wanted) {}

    void text(const PythonText::Item& item, LoggedRequest& request) {
        if (has_ids_) return;
        request.cut = item.cut;
        if (!wanted_) return;
        PromptBlocks blocks;
        blocks.add_text(PythonText::plain(item.value));
        give_blocks(blocks, true, request);
    }
    void ids(const PythonText::Item& item, LoggedRequest& request) {
        has_ids_ = true;
        request.cut = item.cut;
        PromptBlocks blocks;
        const std::int64_t count = each_id(item.value, wanted_ ? &blocks : nullptr);
        if (!item.cut) request.input_tokens = count;
        if (wanted_) give_blocks(blocks, false, request);
    }

private:
    bool wanted_;
    bool has_ids_ = false;
};

/// `Received request ID: ...`, `Request ID details: ...`, `Generated response ID...: output: ...`.
void read_message(std::string_view rest, bool with_prompts, LoggedRequest& request) {
    PythonText python(rest);
    PrintedPrompt prompt(with_prompts);
    bool answer_ids = false;
    for (PythonText::Item item; python.next(item);) {
        if (item.key == "output_token_ids") answer_ids = true;
        const bool ids = !item.is_text && !item.opens &&
                         (item.key == "prompt_token_ids" || (answer_ids && !request.output_tokens));
        if (ids && item.value == "None") continue;
        if (ids && answer_ids) {
            if (const std::int64_t count = each_id(item.value, nullptr); count > 0 && !item.cut)
                request.output_tokens = count;
        } else if (ids) prompt.ids(item, request);
        else if (item.key == "prompt" && item.is_text) prompt.text(item, request);
        else if (item.key == "output" && item.is_text) {
            constexpr std::string_view counted =
                "<streaming_complete: ";  // in place of a text that was not kept
            if (item.value.starts_with(counted)) {
                const std::string_view count = item.value.substr(counted.size());
                request.output_tokens = printed_tokens(count.substr(0, count.find(' ')));
            } else request.output_estimate = estimated_tokens(PythonText::plain(item.value));
        } else if (item.key == "finish_reason" && (item.value == "abort" || item.value == "error"))
            request.part = LinePart::lost;
    }
}

/// `Finish: obj=...(rid='...', ...), out={..., 'meta_info': {...}}`.
void read_finish(std::string_view rest, bool with_prompts, LoggedRequest& request) {
    PythonText python(rest);
    PrintedPrompt prompt(with_prompts);
    bool answered = false;
    std::string_view reason;
    for (PythonText::Item item; python.next(item);) {
        if (item.key == "out") answered = true;
        if (answered) {
            if (item.key == "prompt_tokens") request.input_tokens = printed_tokens(item.value);
            else if (item.key == "completion_tokens")
                request.output_tokens = printed_tokens(item.value);
            else if (item.key == "e2e_latency" && request.start)
                request.start = *request.start - printed_number(item.value).value_or(0);
            else if (item.key == "finish_reason" || (item.key == "type" && reason.empty()))
                reason = item.value;
        } else if (item.key == "rid" && item.is_text) {
            request.id = fingerprint_of(item.value).bits;
            if (item.value.starts_with("HEALTH_CHECK")) request.kept = LineKept::other;
        } else if (item.key == "session_id" && item.is_text)
            request.session = fingerprint_of(item.value).bits;
        else if (item.key == "text" && item.is_text) prompt.text(item, request);
        else if (item.key == "input_ids" && !item.opens && !item.is_text && item.value != "None")
            prompt.ids(item, request);
    }
    if (reason == "abort") request.kept = LineKept::failed;
    request.part = LinePart::whole;
}

}  // namespace

std::vector<std::string> csv_cells(std::string_view line) {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
            cells.back() += line[++i];
        else if (line[i] == '"') quoted = !quoted;
        else if (line[i] == ',' && !quoted) cells.emplace_back();
        else cells.back() += line[i];
    }
    for (std::string& cell : cells) cell = std::string(trimmed(cell));
    return cells;
}

bool asks_model(std::string_view path) {
    path = path.substr(0, path.find('?'));
    while (path.ends_with('/')) path.remove_suffix(1);
    for (const std::string_view end :
         {"/completions", "/responses", "/messages", "/generate", "/api/chat", "/completion"})
        if (path.ends_with(end)) return true;
    return false;
}

void read_access(const AccessWords& words, double end, LoggedRequest& request) {
    // `request` of a web server is METHOD PATH PROTOCOL.
    std::string_view path = words.path;
    std::string_view method = words.method;
    if (const auto blank = path.find(' '); blank != std::string_view::npos) {
        method = path.substr(0, blank);
        path = path.substr(blank + 1);
        path = path.substr(0, path.find(' '));
    }
    request.start = end - words.seconds.value_or(0);
    request.whole_seconds = request.whole_seconds && !words.seconds;
    request.bytes_only = true;
    if (!asks_model(path) || (!method.empty() && method != "POST")) request.kept = LineKept::other;
    else if (const auto status = printed_number(words.status);
             !status || *status < 200 || *status >= 300)
        request.kept = LineKept::failed;
    // What clients of this API send beside a prompt and its letters a token, and what an event of a
    // stream with one token takes: docs/guides/your-own-traffic.md.
    constexpr double head_bytes = 700;
    constexpr double bytes_a_token = 4;
    constexpr double event_bytes = 250;
    if (const auto bytes = printed_number(words.request_bytes))
        request.input_estimate = std::max(1.0, (*bytes - head_bytes) / bytes_a_token);
    const auto bytes = printed_number(words.answer_bytes);
    if (bytes && words.content_type.starts_with("text/event-stream"))
        request.output_estimate = std::max(1.0, *bytes / event_bytes);
    else if (bytes && words.content_type.starts_with("application/json"))
        request.output_estimate = std::max(1.0, (*bytes - head_bytes) / bytes_a_token);
}

std::optional<LoggedRequest> LogLines::engine_object(std::string_view line, const LogTime& time) {
    const auto object = shallow_json<LineJson>(line);
    const auto text = [](const LineJson& value, const char* name) {
        const auto found = value.is_object() ? value.find(name) : value.end();
        return found != value.end() && found->is_string() ? found->get<std::string>() : "";
    };
    if (text(object, "event") != "request.finished" || !object.contains("out") ||
        !object.contains("obj"))
        return std::nullopt;
    LoggedRequest request;
    const LineJson& asked = object["obj"];
    const LineJson& out = object["out"];
    const LineJson told =
        out.is_object() && out.contains("meta_info") ? out["meta_info"] : LineJson();
    const auto number = [&](const char* name) -> std::optional<double> {
        const auto found = told.is_object() ? told.find(name) : told.end();
        return found != told.end() && found->is_number() ? std::optional(found->get<double>())
                                                         : std::nullopt;
    };
    const std::string id = text(object, "rid");
    request.id = id.empty() ? 0 : fingerprint_of(id).bits;
    if (const std::string session = text(asked, "session_id"); !session.empty())
        request.session = fingerprint_of(session).bits;
    request.start = clock_.seconds(log_time(text(object, "timestamp")).value_or(time)) -
                    number("e2e_latency").value_or(0);
    const auto tokens = [&](const char* name) {
        const auto found = number(name);
        return found && *found >= 0 && *found <= static_cast<double>(1U << 24U)
                   ? std::optional(std::llround(*found))
                   : std::nullopt;
    };
    request.input_tokens = tokens("prompt_tokens");
    request.output_tokens = tokens("completion_tokens");
    if (id.starts_with("HEALTH_CHECK")) request.kept = LineKept::other;
    if (told.is_object() && told.contains("finish_reason") &&
        text(told["finish_reason"], "type") == "abort")
        request.kept = LineKept::failed;
    if (!with_prompts_ || !asked.is_object()) return request;
    PromptBlocks blocks;
    if (const auto ids = asked.find("input_ids");
        ids != asked.end() && ids->is_array() && !ids->empty()) {
        for (const LineJson& one : *ids) {
            if (!one.is_number_integer()) {
                request.cut = true;
                break;
            }
            blocks.add_id(one.get<std::int64_t>());
        }
        give_blocks(blocks, false, request);
    } else if (const std::string prompt = text(asked, "text"); !prompt.empty()) {
        // Cut to a half, three dots and the other half where it is longer.
        constexpr std::size_t most_logged = 2048;
        request.cut = prompt.size() > most_logged &&
                      prompt.find("...", most_logged / 2) != std::string::npos &&
                      prompt.size() < 4 * most_logged + 3;
        blocks.add_text(request.cut ? std::string_view(prompt).substr(0, most_logged / 2)
                                    : std::string_view(prompt));
        give_blocks(blocks, true, request);
    }
    return request;
}

std::optional<LoggedRequest> LogLines::engine_line(std::string_view line) {
    struct Mark {
        std::string_view text;
        LinePart part;
    };
    constexpr std::array<Mark, 4> marks{{{"Received request ", LinePart::received},
                                         {"Generated response ", LinePart::answered},
                                         {"Finish: obj=", LinePart::whole},
                                         {"Request ", LinePart::details}}};
    std::size_t at = std::string_view::npos;
    const Mark* found = nullptr;
    for (const Mark& mark : marks)
        if (const std::size_t place = line.substr(0, most_head_bytes).find(mark.text); place < at) {
            at = place;
            found = &mark;
        }
    if (found == nullptr) return std::nullopt;
    const auto time = time_in(line.substr(0, at));
    if (!time) return std::nullopt;
    std::string_view rest = line.substr(at + found->text.size());
    LoggedRequest request;
    request.part = found->part;
    request.start = clock_.seconds(*time);
    request.whole_seconds = time->whole;
    request.has_year = time->has_year;
    if (request.part == LinePart::whole) {
        read_finish(rest, with_prompts_, request);
        return request;
    }
    const std::string_view id = rest.substr(0, rest.find_first_of(" :"));
    request.id = fingerprint_of(id).bits;
    rest.remove_prefix(id.size());
    if (request.part == LinePart::details) {
        if (rest.starts_with(" aborted") || rest.starts_with(" failed"))
            request.part = LinePart::lost;
        else if (!rest.starts_with(" details:")) return std::nullopt;
        else rest.remove_prefix(std::string_view(" details:").size());
    }
    if (rest.starts_with(" (streaming delta)")) {
        if (rest.find("output_token_ids") == std::string_view::npos) return std::nullopt;
        request.part = LinePart::piece;
    }
    if (request.part != LinePart::lost) read_message(rest, with_prompts_, request);
    return request;
}

std::optional<LoggedRequest> LogLines::access_line(std::string_view line) {
    const std::size_t open = line.find('[');
    const std::size_t close = line.find("] \"", std::min(open, line.size()));
    if (open == std::string_view::npos || open > most_head_bytes || close == std::string_view::npos)
        return std::nullopt;
    const auto time = log_time(line.substr(open + 1, close - open - 1));
    const std::size_t asked = close + 3;
    const std::size_t end = line.find('"', asked);
    if (!time || end == std::string_view::npos) return std::nullopt;
    AccessWords words;
    words.path = line.substr(asked, end - asked);
    std::string_view rest = line.substr(end + 1);
    LoggedRequest request;
    request.whole_seconds = time->whole;
    double logged = clock_.seconds(*time);
    std::size_t place = 0;
    bool quoted = false;
    while (
        !rest.empty()) {  // words without quotes: STATUS BYTES, then what the format names, or says by its form
        const std::size_t blank = std::min(rest.find(' '), rest.size());
        const std::string_view word = rest.substr(0, blank);
        rest.remove_prefix(std::min(blank + 1, rest.size()));
        if (word.empty()) continue;
        const bool was_quoted = quoted;
        if (std::count(word.begin(), word.end(), '"') % 2 == 1) quoted = !quoted;
        if (was_quoted || quoted || word.front() == '"') continue;
        const std::size_t equals = word.find('=');
        const std::string_view name = word.substr(0, equals == std::string_view::npos ? 0 : equals);
        std::string_view value = equals == std::string_view::npos ? word : word.substr(equals + 1);
        const std::size_t point = value.find('.');
        const bool thousandths = point != std::string_view::npos && value.size() == point + 4;
        if (name.empty() && place < 2) (place == 0 ? words.status : words.answer_bytes) = value;
        else if (name == "rt" || name == "request_time" ||
                 (name.empty() && thousandths && point < 8 && !words.seconds))
            words.seconds = printed_number(value);
        else if (name == "request_length" || name == "rl") words.request_bytes = value;
        else if (name == "content_type" || name == "ct") words.content_type = value;
        else if (name == "msec" || (name.empty() && thousandths && point == 10)) {
            if (const auto milliseconds = log_time(value)) {
                logged = milliseconds->seconds;
                request.whole_seconds = false;
            }
        }
        ++place;
    }
    read_access(words, logged, request);
    return request;
}

std::optional<LoggedRequest> LogLines::read_line(std::string_view line) {
    if (line.starts_with('{')) {
        const auto wrapped = shallow_json<LineJson>(line);
        if (!wrapped.is_object()) return std::nullopt;
        // What collectors of logs put around a line, and loggers around a message.
        for (const char* name : {"log", "message", "msg"}) {
            const auto inner = wrapped.find(name);
            if (inner == wrapped.end() || !inner->is_string()) continue;
            std::string text = inner->get<std::string>();
            for (const char* time : {"asctime", "timestamp", "time", "@timestamp"})
                if (const auto found = wrapped.find(time);
                    std::string(name) != "log" && found != wrapped.end() && found->is_string())
                    text.insert(0, found->get<std::string>() + " ");
            if (auto request = read_line(trimmed(text))) return request;
        }
        if (wrapped.contains("event")) return engine_object(line, {});
        return read_json_request(line, with_prompts_, clock_);
    }
    if (line.starts_with('[')) {  // [2026-11-28 09:53:46] {...}
        const std::size_t close = std::min(line.find("] {"), line.size());
        if (const auto time = log_time(line.substr(1, close - 1)); time && close < line.size())
            return engine_object(line.substr(close + 2), *time);
    }
    if (auto request = engine_line(line)) return request;
    return access_line(line);
}

std::optional<LoggedRequest> LogLines::read(std::string_view line, bool with_prompts) {
    with_prompts_ = with_prompts;
    line = trimmed(line);
    if (line.empty()) return std::nullopt;
    std::optional<LoggedRequest> request;
    if (!columns_.empty())
        request = read_csv_request(columns_, csv_cells(line), with_prompts_, clock_);
    else if (first_ && line.front() != '{' && line.find(',') != std::string_view::npos &&
             !(request = read_line(line))) {
        columns_ = csv_cells(line);
        if (!names_requests(columns_)) columns_.clear();
    } else if (!request) request = read_line(line);
    first_ = false;
    if (request && request->start && !(std::abs(*request->start) < most_printed)) request.reset();
    if (request) ++understood_;
    return request;
}

}  // namespace servetune
