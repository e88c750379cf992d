// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/deploy/quality_gate.hpp"

#include "base/files.hpp"
#include "base/nesting.hpp"
#include "base/text.hpp"
#include "base/url.hpp"
#include "host/run_command.hpp"
#include "host/start_program.hpp"
#include "load/http.hpp"
#include "load/request_body.hpp"
#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/load/probe.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <fstream>
#include <system_error>
#include <utility>

namespace servetune {
namespace {

using Json = nlohmann::json;

/// Facts, sums, code, languages, forms: short questions whose answers a worse model gets wrong.
const std::vector<std::string>& usual_prompts() {
    static const std::vector<std::string> prompts{
        "What is the capital of Australia, and which larger city is often taken for it?",
        "Compute 17 * 23 and show the steps.",
        "A train leaves at 14:45 and arrives at 17:20. How long does it take?",
        "Write a Python function that returns the n-th Fibonacci number without recursion.",
        "Translate into French: The meeting was moved to Thursday because the room was taken.",
        "Name the planets of the solar system in order of their distance from the sun.",
        "What is the difference between a stack and a queue?",
        "Summarize the plot of Romeo and Juliet in three sentences.",
        "If all roses are flowers and some flowers fade quickly, do some roses fade quickly? "
        "Explain.",
        "Write an SQL query that lists the five customers with the most orders.",
        "Convert 98.6 degrees Fahrenheit to Celsius.",
        "Explain in two sentences why the sky is blue.",
        "What does the regular expression ^[a-z]+[0-9]{2,}$ match?",
        "Correct this sentence: Him and me was going to the store yesterday.",
        "List three causes of the First World War.",
        "What is the derivative of x^3 * ln(x)?",
        "Write a haiku about rain in a city.",
        "Which is larger, 7/9 or 11/14? Show why.",
        "Explain what a hash collision is and how a hash table deals with it.",
        "Translate into German: Please send me the signed contract by tomorrow evening.",
        "A shirt costs 40 euros after a discount of 20 %. What did it cost before?",
        "What happens to the boiling point of water at high altitude, and why?",
        "Give the JSON object of a person named Ada Lovelace who was born in 1815.",
        "Which of these is the odd one out, and why: copper, iron, oxygen, silver?",
    };
    return prompts;
}

std::string with_zeros(const std::string& extra_body, const std::vector<std::string>& fields) {
    Json object = extra_body.empty() ? Json::object() : shallow_json<Json>(extra_body);
    if (!object.is_object()) object = Json::object();
    for (const std::string& field : fields) object[field] = 0;
    return object.dump();
}

std::vector<std::string> table_cells(const std::string& row) {
    std::vector<std::string> cells = parts_of(row, '|');
    for (std::string& cell : cells) cell = trimmed(cell);
    return cells;
}

/// lm-evaluation-harness: `|Tasks|Version|Filter|n-shot|Metric| |Value| |Stderr|`, a task's further
/// rows without its name.
std::optional<double> accuracy_in_table(const std::string& printed, const std::string& metric) {
    std::optional<std::size_t> task_at, metric_at, value_at;
    std::string task;
    for (const std::string& line : parts_of(printed, '\n')) {
        const std::vector<std::string> cells = table_cells(line);
        const auto column = [&](const char* name) -> std::optional<std::size_t> {
            const auto found = std::find(cells.begin(), cells.end(), name);
            if (found == cells.end()) return std::nullopt;
            return std::size_t(found - cells.begin());
        };
        if (column("Tasks") && column("Metric") && column("Value")) {
            task_at = column("Tasks");
            metric_at = column("Metric");
            value_at = column("Value");
            continue;
        }
        if (!task_at || cells.size() <= std::max({*task_at, *metric_at, *value_at})) continue;
        if (!cells[*task_at].empty()) task = cells[*task_at];
        const auto value = real_of(cells[*value_at]);
        if (!value || contains(line, "\u2193"))
            continue;  // an arrow down: less is better, so it is no accuracy
        if (metric.empty() || metric == task + "/" + cells[*metric_at] ||
            metric == cells[*metric_at])
            return value;
    }
    return std::nullopt;
}

/// What was asked, so that answers to other prompts are never compared.
std::string asked_text(const QualityOptions& options) {
    std::string all =
        std::to_string(options.answer_tokens) + " " + options.metric + "\n" + options.baseline;
    for (const auto& [name, usual] : options.defaults)
        all += "\n" + name + "=" + (usual ? text_of(*usual) : "");
    for (const auto* list : {&options.prompts, &options.command})
        for (const std::string& text : *list) all += "\n" + text;
    return fingerprint_of(all).text();
}

}  // namespace

double agreement_of(std::string_view a, std::string_view b) {
    const std::size_t longer = std::max(a.size(), b.size());
    if (longer == 0) return 1;
    const auto differs =
        std::mismatch(a.begin(), a.begin() + std::ptrdiff_t(std::min(a.size(), b.size())),
                      b.begin())
            .first;
    return double(differs - a.begin()) / double(longer);
}

std::optional<double> accuracy_in(const std::string& printed, const std::string& metric) {
    if (const auto of_table = accuracy_in_table(printed, metric)) return of_table;
    std::string last;
    for (const std::string& line : parts_of(printed, '\n'))
        if (!trimmed(line).empty()) last = line;
    if (const auto number = real_of(last)) return metric.empty() ? number : std::nullopt;
    const auto object = shallow_json<Json>(last);
    if (!object.is_object()) return std::nullopt;
    const auto found = object.find(metric.empty() ? "accuracy" : metric);
    return found != object.end() && found->is_number() ? std::optional<double>(found->get<double>())
                                                       : std::nullopt;
}

std::string QualityOptions::why_invalid() const {
    return OptionCheck()
        .that(command.empty() || prompts.empty(), "quality", "prompts or a command", "both")
        .within("answer_tokens", double(answer_tokens), 1, 1e6)
        .seconds("within_seconds", within_seconds)
        .text();
}

QualityGate::QualityGate(QualityOptions options) : options_(std::move(options)) {
    check_options("quality", options_.why_invalid());
    if (options_.prompts.empty() && options_.command.empty()) options_.prompts = usual_prompts();
    options_.prompts.resize(std::min(options_.prompts.size(), options_.most_prompts));
    read();
}

std::string QualityGate::touching(const Configuration& configuration) const {
    std::string result;
    for (const auto& [name, usual] : options_.defaults)
        if (const Value* value = configuration.find(name);
            value != nullptr && (!usual || *value != *usual))
            result += (result.empty() ? "" : " ") + name + "=" + text_of(*value);
    return result;
}

QualityGate::Found QualityGate::asked(const Server& server, const std::stop_token& stop) const {
    Endpoint endpoint = server.endpoint();
    Found result;
    if (!options_.command.empty()) {
        std::vector<std::string> words;
        for (const std::string& word : options_.command)
            words.push_back(filled(word, {{"url", endpoint.url}, {"model", endpoint.model}}));
        const std::string program = find_program(words.front()).string();
        if (program.empty())
            throw UsageError("the quality command " + words.front() +
                             " cannot be started: no such program in $PATH");
        words.front() = program;
        constexpr std::size_t most_output = 16UL << 20UL;
        const RanCommand ran = run_command(
            words, std::chrono::milliseconds(std::int64_t(options_.within_seconds * 1000)),
            most_output, [&] { return stop.stop_requested() || server.died(); });
        if (ran.end == RanCommand::End::given_up)
            throw IoError("the quality command " + words.front() + " was ended");
        if (ran.end != RanCommand::End::exited || ran.exit_code != 0)
            throw UsageError("the quality command " + words.front() + " failed: " +
                             (ran.end == RanCommand::End::exited
                                  ? "exit code " + std::to_string(ran.exit_code)
                              : ran.end == RanCommand::End::out_of_time
                                  ? "it took longer than " + seconds_text(options_.within_seconds)
                                  : std::string("it printed too much")) +
                             "; its last words: " +
                             ran.output.substr(ran.output.size() -
                                               std::min<std::size_t>(ran.output.size(), 300)));
        result.accuracy = accuracy_in(ran.output, options_.metric);
        if (result.accuracy && !(*result.accuracy > 0) && !found_.contains(""))
            throw UsageError("the quality command " + words.front() + " printed the accuracy " +
                             short_number_text(*result.accuracy) +
                             " for the default, and a drop is a share of that");
        if (!result.accuracy)
            throw UsageError("the quality command " + words.front() + " printed no accuracy" +
                             (options_.metric.empty() ? "" : " '" + options_.metric + "'") +
                             ": a number or {\"accuracy\": NUMBER} on its last line, or "
                             "lm-evaluation-harness' table, is wanted, and more must be "
                             "better");
        return result;
    }
    endpoint = as_agreed(endpoint, try_request(endpoint, false, stop));
    endpoint.stream = false;
    const std::string extra_body = endpoint.extra_body;
    constexpr double patience_seconds = 300;
    const std::vector<std::vector<std::string>> greedy{
        {"temperature", "seed"}, {"temperature"}, {}};  // some servers refuse one
    std::size_t fields = 0;
    for (const std::string& prompt : options_.prompts) {
        Reply reply;
        for (;; ++fields) {
            endpoint.extra_body = with_zeros(extra_body, greedy[fields]);
            reply = post(
                endpoint, path_of(endpoint),
                request_body(endpoint, {.text = prompt, .output_tokens = options_.answer_tokens},
                             {}, false),
                patience_seconds, [&] { return stop.stop_requested() || server.died(); });
            if ((reply.status != 400 && reply.status != 422) || fields + 1 == greedy.size()) break;
        }
        if (!reply.error.empty() || reply.status != 200)
            throw IoError(without_user_info(endpoint.url) + path_of(endpoint) +
                          trouble_text(reply));
        result.answers.push_back(text_of_answer(reply.body));
    }
    return result;
}

double QualityGate::drop(const Found& usual, const Found& mine) const {
    if (usual.accuracy && mine.accuracy)
        return *usual.accuracy > 0 ? (*usual.accuracy - *mine.accuracy) / *usual.accuracy : 0;
    double sum = 0;
    const std::size_t count = std::min(usual.answers.size(), mine.answers.size());
    for (std::size_t i = 0; i < count; ++i) sum += agreement_of(usual.answers[i], mine.answers[i]);
    return count > 0 ? 1 - sum / double(count) : 0;
}

std::variant<Metrics, Failure> QualityGate::of(const Server& server,
                                               const Configuration& configuration,
                                               const std::stop_token& stop) {
    const std::string mine = touching(configuration);
    if (!found_.contains(mine)) {
        if (!mine.empty() && !found_.contains("")) {  // nothing to compare with
            const bool decides = any_of(
                options_.limits, [](const Limit& limit) { return limit.metric == quality_drop; });
            if (!decides) return Metrics{};
            return Failure{FailureKind::other,
                           "the limit on quality_drop cannot be judged, as the default has not "
                           "answered yet (" +
                               mine + ")"};
        }
        try {
            found_[mine] = asked(server, stop);
        } catch (const IoError& error) {
            if (stop.stop_requested())
                return Failure{FailureKind::cancelled, "stopped by the user"};
            if (auto failure = server.changed()) return *failure;
            return Failure{
                FailureKind::load_test_failed,
                std::string("it does not answer the prompts that are compared: ") + error.what()};
        } catch (const UsageError& error) {
            if (auto failure = server.changed()) return *failure;
            if (mine.empty()) throw;  // of the default it is the command's fault
            return Failure{FailureKind::load_test_failed, error.what()};
        }
        write();
    }
    Metrics result;
    result[std::string(quality_drop)] = {mine.empty() ? 0 : drop(found_.at(""), found_.at(mine))};
    for (const Limit& limit : options_.limits)
        if (limit.metric == quality_drop)
            if (const std::string broken = limit.broken_text(result); !broken.empty())
                return Failure{FailureKind::other,
                               broken + " (" + mine + "); it was not load-tested"};
    return result;
}

void QualityGate::read() {
    std::error_code unknown;
    if (!std::filesystem::is_regular_file(options_.file, unknown))
        return;  // none yet; a FIFO would wait for a writer
    std::ifstream stream(options_.file, std::ios::binary);
    if (!stream) return;
    const std::string text = rest_of(stream);
    try {
        const Json object = Json::parse(text, RefuseDeep());
        if (object.at("asked") != asked_text(options_)) return;
        std::map<std::string, Found> kept;
        for (const auto& [set, found] : object.at("found").items()) {
            Found& one = kept[set];
            if (found.contains("accuracy")) one.accuracy = found.at("accuracy").get<double>();
            else one.answers = found.at("answers").get<std::vector<std::string>>();
        }
        found_ = std::move(kept);
    } catch (
        const Json::
            exception&) {  // NOLINT(bugprone-empty-catch): a file that is damaged is asked for anew
    }
}

void QualityGate::write() const {
    if (options_.file.empty()) return;
    nlohmann::ordered_json object{{"asked", asked_text(options_)},
                                  {"found", nlohmann::ordered_json::object()}};
    for (const auto& [set, found] : found_)
        object["found"][set] = found.accuracy
                                   ? nlohmann::ordered_json{{"accuracy", *found.accuracy}}
                                   : nlohmann::ordered_json{{"answers", found.answers}};
    const std::filesystem::path fresh = options_.file.string() + ".new";
    write_plain_file(
        fresh, object.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n",
        O_NOFOLLOW);
    std::filesystem::rename(fresh, options_.file);
}

}  // namespace servetune
