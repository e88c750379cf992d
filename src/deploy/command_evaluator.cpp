// SPDX-License-Identifier: Apache-2.0
#include "servetune/command_evaluator.hpp"

#include "base/nearest.hpp"
#include "base/nesting.hpp"
#include "base/text.hpp"
#include "base/waiting.hpp"
#include "host/start_program.hpp"
#include "launch_clients.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"
#include "space/value_json.hpp"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <array>
#include <cctype>
#include <chrono>
#include <optional>
#include <utility>

namespace servetune {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

/// A piece of what was printed, short enough for a message and without control characters.
std::string excerpt(std::string_view text) {
    constexpr std::size_t most = 120;
    std::string result(text.substr(0, most));
    for (char& c : result)
        if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
    return "'" + result + (text.size() > most ? "...'" : "'");
}

/// nlohmann's reason without its own numbering: `[json.exception.parse_error.101] parse error at
/// ...`.
std::string reason_of(const Json::exception& error) {
    const std::string_view what = error.what();
    const auto end = what.find("] ");
    return std::string(end == npos ? what : what.substr(end + 2));
}

Json parsed_answer(std::string_view text) {
    try {
        return Json::parse(text, RefuseDeepAndTwice());
    } catch (const Json::exception& error) {
        throw ParseError("what it printed is not JSON: " + reason_of(error) +
                         "; wanted is one object, alone or on the last line; got " + excerpt(text));
    }
}

/// All that was printed where that is one object, else the last line that begins with '{'.
Json object_in(std::string_view printed) {
    const std::string_view all = trimmed(printed);
    if (all.empty())
        throw ParseError(
            "it printed nothing on standard output; wanted: {\"metrics\": {...}} or {\"failure\": "
            "{...}}");
    if (all.front() == '{') {
        Json whole = Json::parse(all, RefuseDeepAndTwice(), false);
        if (whole.is_object()) return whole;
    }
    for (std::string_view rest = all; !rest.empty();) {
        const auto line_break = rest.rfind('\n');
        const std::string_view line =
            trimmed(line_break == npos ? rest : rest.substr(line_break + 1));
        if (line.starts_with('{')) return parsed_answer(line);
        rest = line_break == npos ? std::string_view() : rest.substr(0, line_break);
    }
    throw ParseError(
        "no line that it printed is a JSON object; the last thing it printed must be one, on one "
        "line: {\"metrics\": {...}}");
}

void check_keys(const Json& object, const std::string& where,
                const std::vector<std::string>& known) {
    if (!object.is_object())
        throw ParseError(where + " must be a JSON object, got " + excerpt(object.dump()));
    for (const auto& [key, value] : object.items())
        if (!contains(known, key))
            throw ParseError("unknown key '" + key + "' in " + where +
                             "; known: " + listed(nearest_first(key, known)));
}

template <class Enum, std::size_t n>
std::string names_near(const std::string& wanted,
                       const std::array<std::pair<Enum, std::string_view>, n>& table,
                       const std::vector<Enum>& without = {}) {
    std::vector<std::string> names;
    for (const auto& [value, name] : table)
        if (!contains(without, value)) names.emplace_back(name);
    return listed(nearest_first(wanted, names), names.size());
}

/// At most 4 KiB of it, as of a line of a log: journals and reports hold it.
std::string text_at_key(const Json& object, const std::string& key, const std::string& where) {
    constexpr std::size_t most = 4096;
    const auto found = object.find(key);
    if (found == object.end()) return "";
    if (found->is_string()) {
        std::string text = found->get<std::string>();
        std::size_t end = std::min(most, text.size());
        while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
            --end;  // not inside a character
        text.resize(end);
        for (char& c : text)  // one line: reports put it into tables
            if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
        return text;
    }
    if (found->is_number()) return found->dump();
    throw ParseError("'" + key + "' in " + where + " must be a text, got " +
                     excerpt(found->dump()));
}

double number_in(const Json& value, const std::string& what) {
    if (value.is_number()) return value.get<double>();  // finite: JSON has nothing else
    throw ParseError(what + " must be a finite number, got " + excerpt(value.dump()));
}

/// Nothing where it is null: not measured.
std::optional<Metric> read_metric(const std::string& name, const Json& value) {
    if (name.empty() || name.front() == '@' || name.back() == '@')
        throw ParseError("a metric needs a name (name or name@workload), got '" + name + "'");
    const std::string what = "metric '" + name + "'";
    if (value.is_null()) return std::nullopt;
    if (!value.is_object()) return Metric{number_in(value, what)};
    check_keys(value, what, {"value", "standard_error"});
    if (!value.contains("value")) throw ParseError(what + " has no 'value'");
    if (value.at("value").is_null()) return std::nullopt;
    Metric metric{number_in(value.at("value"), what)};
    if (value.contains("standard_error") && !value.at("standard_error").is_null()) {
        metric.standard_error =
            number_in(value.at("standard_error"), "the standard_error of " + what);
        if (*metric.standard_error < 0)
            throw ParseError("the standard_error of " + what + " is below 0");
    }
    return metric;
}

Validity read_validity(const Json& object) {
    check_keys(object, "'validity'", {"verdict", "findings"});
    Validity result;
    const std::string verdict = text_at_key(object, "verdict", "'validity'");
    const auto known = named_in(verdicts, verdict);
    if (!known)
        throw ParseError("'verdict' in 'validity' must be one of " + names_near(verdict, verdicts) +
                         ", got '" + verdict + "'");
    result.verdict = *known;
    const auto findings = object.find("findings");
    if (findings == object.end()) return result;
    if (!findings->is_array())
        throw ParseError("'findings' in 'validity' must be a list, got " +
                         excerpt(findings->dump()));
    for (const Json& finding : *findings) {
        check_keys(finding, "a finding", {"id", "left", "right", "cause"});
        const auto text = [&](const char* key) { return text_at_key(finding, key, "a finding"); };
        result.findings.push_back({text("id"), text("left"), text("right"), text("cause")});
        if (result.findings.back().id.empty()) throw ParseError("a finding needs an 'id'");
    }
    return result;
}

Failure read_failure(const Json& object) {
    static const std::vector<FailureKind> ours{
        FailureKind::cancelled, FailureKind::not_in_table};  // not for a program to say
    check_keys(object, "'failure'", {"kind", "message"});
    const std::string kind = text_at_key(object, "kind", "'failure'");
    const std::string message = text_at_key(object, "message", "'failure'");
    const auto known = named_in(failure_kinds, kind);
    if (!known || contains(ours, *known))
        throw ParseError("'kind' in 'failure' must be one of " +
                         names_near(kind, failure_kinds, ours) + ", got '" + kind +
                         "' with the message " + excerpt(message));
    return {*known, message.empty() ? "the program says " + kind + " and no more"
                                    : printable_line(message)};
}

Measurement read_measurement(const Json& answer) {
    const Json& metrics = answer.at("metrics");
    if (!metrics.is_object())
        throw ParseError("'metrics' must be a JSON object, got " + excerpt(metrics.dump()));
    Measurement result;
    for (const auto& [name, value] : metrics.items())
        if (const auto metric = read_metric(name, value)) result.metrics[name] = *metric;
    if (const auto validity = answer.find("validity"); validity != answer.end())
        result.validity = read_validity(*validity);
    return result;
}

/// What a measuring program printed, read as an outcome.
struct CommandAnswer {
    Outcome outcome;  ///< what is wrong with it is Failure{invalid_result} with the reason
    bool says_failure = false;  ///< the failure is the program's own word
};

CommandAnswer read_command_answer(std::string_view printed) {
    try {
        const Json answer = object_in(printed);
        check_keys(answer, "its answer", {"metrics", "validity", "failure"});
        if (answer.contains("failure") == answer.contains("metrics"))
            throw ParseError("its answer must have either 'metrics' or 'failure'; it is " +
                             excerpt(answer.dump()));
        if (answer.contains("failure")) return {read_failure(answer.at("failure")), true};
        return {read_measurement(answer)};
    } catch (const ParseError& error) {
        return {Failure{FailureKind::invalid_result, error.what()}};
    }
}

const std::vector<std::string>& placeholders() {
    static const std::vector<std::string> names{"config", "config_file", "workload",
                                                "seed",   "trial",       "folder"};
    return names;
}

/// Calls `literal(text)` and `named(name)` for the pieces of a word, in order. {name} with a name
/// of small letters and '_' is a placeholder, {{name}} the text {name}; other braces, such as those
/// of JSON, are text.
template <class Literal, class Named>
void for_each_piece(std::string_view word, const Literal& literal, const Named& named) {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz_";
    while (!word.empty()) {
        const auto open = word.find('{');
        if (open == npos) return literal(word);
        const bool twice = word.substr(open, 2) == "{{";
        const auto name_at = open + (twice ? 2 : 1);
        const auto end = std::min(word.find_first_not_of(letters, name_at), word.size());
        const std::string_view name = word.substr(name_at, end - name_at);
        const std::string_view closed = twice ? "}}" : "}";
        if (name.empty() || word.substr(end, closed.size()) != closed) {
            literal(word.substr(0, name_at));
            word.remove_prefix(name_at);
            continue;
        }
        literal(word.substr(0, open));
        if (twice) literal(word.substr(open + 1, name.size() + 2));
        else named(name);
        word.remove_prefix(end + closed.size());
    }
}

/// Text of a file or a flag need not be UTF-8; that must not stop a study.
std::string dumped(const OrderedJson& json) {
    return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// The last lines that it printed on standard error, in one line for a message: reports put it into
/// tables, and the log has all of them.
std::string last_words(const Process& process) {
    constexpr std::size_t most = 3;  // the end of a Python traceback: where, what, why
    constexpr std::size_t longest = 200;
    const std::vector<std::string> lines = process.lines();
    if (lines.empty()) return "; it printed nothing on standard error";
    std::string result = "; its last lines: ";
    for (std::size_t i = lines.size() - std::min(most, lines.size()); i < lines.size(); ++i)
        result += lines[i].substr(0, longest) + (i + 1 < lines.size() ? " / " : "");
    return result;
}

std::string exit_text(int code) {
    return code > 128 ? "it was ended by signal " + std::to_string(code - 128)
                      : "exit code " + std::to_string(code);
}

}  // namespace

/// One run of the program for one configuration.
class CommandEvaluator::OneTrial {
public:
    OneTrial(const Options& options, const Configuration& configuration,
             const EvaluationContext& context)
        : o_(options),
          context_(context),
          id_(std::to_string(context.trial)),
          folder_(fs::absolute(options.folder) / "trials" / id_),
          configuration_(to_json(configuration)),
          serving_(options.render ? options.render(configuration) : Command{}) {}

    Outcome run() {
        if (context_.stop.stop_requested())
            return failed(FailureKind::cancelled, "stopped by the user");
        const std::unique_ptr<Process> process = started();
        const End end = waited(*process);
        const Ended ended =
            process->end(std::chrono::milliseconds(std::int64_t(o_.stop_within_seconds * 1000)));
        if (!ended.report.empty()) fail(ended.report);
        if (end == End::stopped) return failed(FailureKind::cancelled, "stopped by the user");
        if (end == End::out_of_time)
            return failed(FailureKind::hung, "it was not over within " +
                                                 text_of(o_.within_seconds) + " s" +
                                                 last_words(*process));
        if (process->answer_printed() > o_.answer_bytes)
            return failed(
                FailureKind::invalid_result,
                "it printed more than " + std::to_string(o_.answer_bytes) +
                    " bytes on standard output, where its answer is wanted; all else goes to "
                    "standard error");
        return told(*process, ended.exit_code.value_or(0));
    }

private:
    enum class End { exited, stopped, out_of_time, too_much };

    [[nodiscard]] fs::path request_file() const { return folder_ / "request.json"; }

    [[nodiscard]] std::string request() const {
        OrderedJson result{
            {"trial", context_.trial}, {"seed", context_.seed}, {"workload", nullptr}};
        if (!context_.workload.empty()) result["workload"] = context_.workload;
        result["workloads"] = context_.workload.empty() ? OrderedJson(o_.workloads)
                                                        : OrderedJson::array({context_.workload});
        result["model"] = o_.model;
        result["configuration"] = configuration_;
        result["command"] = serving_.argv;
        result["environment"] = serving_.environment;
        return dumped(result) + "\n";
    }

    [[nodiscard]] std::vector<std::string> argv() const {
        const std::map<std::string, std::string, std::less<>> values{
            {"config", dumped(configuration_)},      {"config_file", request_file().string()},
            {"workload", context_.workload},         {"trial", id_},
            {"seed", std::to_string(context_.seed)}, {"folder", folder_.string()}};
        std::vector<std::string> result;
        for (const std::string& word : o_.argv) {
            std::string& filled = result.emplace_back();
            for_each_piece(
                word, [&](std::string_view text) { filled += text; },
                [&](std::string_view name) { filled += values.find(name)->second; });
        }
        return result;
    }

    [[nodiscard]] std::unique_ptr<Process> started() const {
        ProcessOptions wanted;
        wanted.argv = argv();
        wanted.environment = o_.environment;
        hand_on_hub_tokens(wanted.environment);
        wanted.files[request_file().string()] = request();
        for (const auto& [name, content] : serving_.files)
            wanted.files[(folder_ / name).string()] = content;
        wanted.folder = o_.working_folder;
        wanted.input = request_file();
        wanted.log = folder_ / "command.log";
        wanted.log_bytes = o_.log_bytes;
        wanted.answer_bytes = o_.answer_bytes;
        wanted.mark = o_.mark;
        wanted.watchdog = o_.watchdog;
        try {
            return std::make_unique<Process>(std::move(wanted));
        } catch (const IoError& error) {
            const fs::path program = o_.argv.front();
            std::error_code none;
            const bool closed = program.has_parent_path() && fs::is_regular_file(program, none) &&
                                access(program.c_str(), X_OK) != 0;
            fail(error.what() +
                 std::string(closed ? " (it is there, but may not be run: chmod +x it)" : ""));
        }
    }

    [[nodiscard]] End waited(const Process& process) const {
        PatientDeadline deadline(Clock::now() +
                                 std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(o_.within_seconds)));
        while (!process.wait(std::chrono::milliseconds(
            20))) {  // its end is heard at once, the rest within this time
            if (context_.stop.stop_requested()) return End::stopped;
            if (deadline.passed()) return End::out_of_time;
            if (process.answer_printed() > o_.answer_bytes) return End::too_much;
        }
        return End::exited;
    }

    /// What a program that has ended by itself says.
    [[nodiscard]] Outcome told(const Process& process, int exit_code) const {
        CommandAnswer answer = read_command_answer(process.answer());
        if (exit_code != 0 && !answer.says_failure)
            return failed(FailureKind::other, exit_text(exit_code) + last_words(process));
        auto* failure = std::get_if<Failure>(&answer.outcome);
        if (failure != nullptr && failure->kind == FailureKind::infrastructure)
            fail(failure->message + " (so says the program itself)");
        if (failure != nullptr) failure->log_path = log();
        return std::move(answer.outcome);
    }

    [[nodiscard]] std::string log() const {
        return (o_.folder / "trials" / id_ / "command.log").string();
    }
    [[nodiscard]] Failure failed(FailureKind kind, const std::string& message) const {
        return {kind, message, log()};
    }
    /// Told of the configuration, it would be held against it.
    [[noreturn]] void fail(const std::string& why) const {
        throw IoError("trial " + id_ + " cannot be measured here: " + why +
                      "; mend that (the study's evaluator names the program " + o_.argv.front() +
                      ") and go on");
    }

    const Options& o_;
    const EvaluationContext& context_;
    std::string id_;
    fs::path folder_;
    OrderedJson configuration_;
    Command serving_;
};

CommandEvaluator::CommandEvaluator(Options options) : options_(std::move(options)) {
    check_options("the command that measures", options_.why_invalid());
    for (const std::string& word : options_.argv) check_word(word);
}

void CommandEvaluator::check_word(std::string_view word) {
    for_each_piece(
        word, [](std::string_view) {},
        [&](std::string_view name) {
            if (contains(placeholders(), name)) return;
            std::vector<std::string> known;
            for (const std::string& near : nearest_first(name, placeholders()))
                known.push_back("{" + near + "}");
            const std::string text(name);
            throw UsageError("'" + std::string(word) + "': {" + text +
                             "} is no placeholder; known: " + listed(known) +
                             "; the text itself is written {{" + text + "}}");
        });
}

Outcome CommandEvaluator::evaluate(const Configuration& configuration,
                                   const EvaluationContext& context) {
    return OneTrial(options_, configuration, context).run();
}

std::string CommandEvaluator::Options::why_invalid() const {
    OptionCheck check;
    check.that(!argv.empty() && !argv.front().empty(), "argv", "a program", "none")
        .seconds("within_seconds", within_seconds)
        .within("stop_within_seconds", stop_within_seconds, 0, longest_seconds)
        .at_least("answer_bytes", answer_bytes, 1);
    check_environment(check, environment);
    return check.text();
}

}  // namespace servetune
