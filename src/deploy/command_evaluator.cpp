// SPDX-License-Identifier: Apache-2.0
#include "servetune/command_evaluator.hpp"

#include "base/nearest.hpp"
#include "base/waiting.hpp"
#include "command_answer.hpp"
#include "host/start_program.hpp"
#include "hub_tokens.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/error.hpp"
#include "space/value_json.hpp"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace servetune {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using OrderedJson = nlohmann::ordered_json;

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
        if (open == std::string_view::npos) return literal(word);
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
        const Ended ended = process->end(
            std::chrono::milliseconds(static_cast<std::int64_t>(o_.stop_within_seconds * 1000)));
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
            if (std::find(placeholders().begin(), placeholders().end(), name) !=
                placeholders().end())
                return;
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
