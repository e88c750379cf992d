// SPDX-License-Identifier: Apache-2.0
#include "engine_log.hpp"

#include "base/text.hpp"
#include "host/kept_output.hpp"
#include "servetune/value.hpp"

#include <algorithm>

namespace servetune {
namespace {

constexpr std::size_t most_found = 64;  // an engine that says so of each request
constexpr std::size_t most_at_once =
    128 << 10;  // 20 ms to look at, with two hundred patterns and lines of a hundred bytes
constexpr std::size_t most_line_bytes = 500;  // in messages: the end of a line is seldom the cause

std::string shortened(std::string_view line) { return start_of(line, most_line_bytes); }

}  // namespace

std::vector<std::string> names_set(const Command& command) {
    std::vector<std::string> result;
    const auto add = [&](std::string name) {
        result.push_back(name);
        name.erase(0, name.find_first_not_of('-'));
        std::replace(name.begin(), name.end(), '-', '_');
        result.push_back(name.substr(name.rfind('.') + 1));
    };
    for (const std::string& word : command.argv) {
        const std::size_t equals = std::min(word.find('='), word.size());
        if (word.find_first_not_of('-') != npos && word.starts_with('-') &&
            word.substr(equals) != "=false")
            add(word.substr(0, equals));
        std::size_t end = 0;
        for (auto begin = word.find('"'); begin != npos;  // JSON
             begin = word.find('"', end + 1)) {
            end = std::min(word.find('"', begin + 1), word.size());
            result.push_back(word.substr(begin + 1, end - begin - 1));
        }
    }
    for (const auto& [name, value] : command.environment) result.push_back(name);
    for (const auto& [path, value] : command.options()) add(path);
    return result;
}

std::optional<std::int64_t> cache_bytes_in(std::string_view log, const CacheSize& size) {
    const auto holds = [&](const std::string& text) { return contains(log, text); };
    std::optional<std::int64_t> least;
    if (any_of(size.unless, holds)) return least;
    for (auto at = log.find(size.log); at != npos; at = log.find(size.log, at)) {
        at += size.log.size();
        const auto number = real_of(log.substr(at, log.find_first_not_of("0123456789.", at) - at));
        if (!number || *number <= 0) return std::nullopt;
        const auto bytes = std::int64_t(*number * size.unit_bytes);
        least = std::min(least.value_or(bytes), bytes);
    }
    return least;
}

void EngineLog::read() {
    const std::scoped_lock lock(mutex_);
    const bool runs = process_.running();  // before its last words are read
    std::string text = unfinished_ + process_.printed_from(position_);
    const std::size_t end = text.find_last_of("\r\n");
    unfinished_ = text.substr(end == npos ? 0 : end + 1);
    // The last line of a program that has died has no end, nor has one that floods.
    if (constexpr std::size_t longest = 4096; !runs || unfinished_.size() > longest)
        unfinished_.clear();
    else text.resize(text.size() - unfinished_.size());
    // One that floods is not read whole: its cause stands where the flood begins or where it ends.
    if (text.size() > 2 * most_at_once)
        text.replace(most_at_once, text.size() - 2 * most_at_once, "\n");
    if (!text.empty()) heard_ = std::chrono::steady_clock::now();
    for (const std::string& line : lines_of(text)) look_at(line);
}

void EngineLog::look_at(const std::string& line) {
    if (contains(line, "usage:") || contains(line, "Usage:")) usage_ = true;
    tracebacks_.read(line);
    if (first_error_.empty() && is_error_line(line)) first_error_ = shortened(line);
    const auto decisive = decisive_line(engine_, std::span(&line, 1), set_);
    if (!decisive) return;
    if (decisive->kind == FailureKind::ignored_flags) {
        if (!ignored_) ignored_ = shortened(line);
        return;
    }
    if (found_.size() >= most_found) return;
    found_.push_back({decisive->kind, shortened(line)});
}

void EngineLog::serving() {
    const std::scoped_lock lock(mutex_);
    served_from_ = found_.size();
    tracebacks_ = TracebackReader(engine_);
}

std::optional<DecisiveLine> EngineLog::cause() const {
    const std::scoped_lock lock(mutex_);
    const DecisiveLine* unknown = nullptr;
    for (const DecisiveLine& line : found_) {
        if (line.kind == FailureKind::crashed_under_load) continue;
        if (line.kind != FailureKind::other) return line;
        if (unknown == nullptr) unknown = &line;
    }
    if (unknown != nullptr) return *unknown;
    if (const auto& exception = tracebacks_.exception(); exception && served_from_ > found_.size())
        return DecisiveLine{kind_of_exception(*exception), *exception};
    return found_.empty() ? std::nullopt : std::optional(found_.front());
}

std::chrono::duration<double> EngineLog::since_cause() const {
    const std::scoped_lock lock(mutex_);
    const bool none =
        all_of(found_, [](const DecisiveLine& line) { return line.kind == FailureKind::other; });
    return none ? std::chrono::duration<double>(0) : std::chrono::steady_clock::now() - heard_;
}

std::optional<DecisiveLine> EngineLog::under_load() const {
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = served_from_; i < found_.size(); ++i)
        if (const FailureKind kind = found_[i].kind; kind == FailureKind::crashed_under_load ||
                                                     kind == FailureKind::out_of_memory ||
                                                     kind == FailureKind::infrastructure)
            return found_[i];
    return std::nullopt;
}

std::optional<std::string> EngineLog::exception_under_load() const {
    const std::scoped_lock lock(mutex_);
    return served_from_ <= found_.size() ? tracebacks_.exception() : std::nullopt;
}

std::optional<std::string> EngineLog::ignored_flag() const {
    const std::scoped_lock lock(mutex_);
    return ignored_;
}

std::vector<std::string> EngineLog::unsupported() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> result;
    for (const DecisiveLine& one : found_)
        if (one.kind == FailureKind::unsupported || one.kind == FailureKind::rejected_flags)
            result.push_back(one.line);
    return result;
}

std::string EngineLog::first_error() const {
    const std::scoped_lock lock(mutex_);
    return first_error_;
}

bool EngineLog::shows_usage() const {
    const std::scoped_lock lock(mutex_);
    return usage_;
}

std::vector<std::string> EngineLog::decisive() const {
    constexpr std::size_t most = 10;
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> result;
    const auto add = [&](const std::string& line) {
        if (!contains(result, line)) result.push_back(line);
    };
    if (ignored_) add(*ignored_);
    for (const DecisiveLine& one : found_)
        if (result.size() < most / 2) add(one.line);
    if (const auto& exception = tracebacks_.exception()) {
        if (!tracebacks_.place().empty()) add(shortened(tracebacks_.place()));
        add(*exception);
    } else if (found_.empty() && !first_error_.empty()) add(first_error_);
    const std::vector<std::string> all = process_.lines();
    const std::size_t last = std::min(all.size(), most - result.size());
    for (std::size_t i = all.size() - last; i < all.size(); ++i) add(shortened(all[i]));
    return result;
}

}  // namespace servetune
