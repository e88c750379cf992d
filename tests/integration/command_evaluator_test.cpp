// SPDX-License-Identifier: Apache-2.0
// A program of the user's as the evaluator: what it gets, what of its answers is believed, and how
// it ends.
#include "servetune/command_evaluator.hpp"

#include "base/files.hpp"
#include "contract/evaluator_contract.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/error.hpp"
#include "support/lines_in.hpp"
#include "support/process.hpp"
#include "support/script.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <thread>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

const Configuration configuration({{"max_num_seqs", std::int64_t{128}},
                                   {"mode", std::string("a \"b\"")},
                                   {"share", 0.5},
                                   {"unset", Unset{}}});

/// One script as the evaluator of a study in a folder of its own.
struct CommandSetting {
    explicit CommandSetting(const std::string& lines, const Words& words = {}) {
        options.argv = {script(folder, lines, "measure").string()};
        options.argv.insert(options.argv.end(), words.begin(), words.end());
        options.folder = folder.path() / "study";
        options.mark = options.folder.string();
        options.stop_within_seconds = 2;
    }
    Outcome measure(const EvaluationContext& context = {}) {
        const Outcome outcome = CommandEvaluator(options).evaluate(configuration, context);
        CHECK(leftovers(options.mark).empty());
        return outcome;
    }
    [[nodiscard]] fs::path trial(const std::string& file) const {
        return options.folder / "trials/0" / file;
    }

    TemporaryFolder folder;
    CommandEvaluator::Options options;
};

/// What comes of a program that prints exactly this on standard output.
Outcome outcome_of(const std::string& printed) {
    CommandSetting setting("cat \"$1\"\n", {});
    setting.options.argv.push_back(setting.folder.write("answer", printed).string());
    return setting.measure();
}

Measurement measurement_of(const std::string& printed) {
    const Outcome outcome = outcome_of(printed);
    INFO((std::holds_alternative<Failure>(outcome) ? std::get<Failure>(outcome).message : ""));
    REQUIRE(std::holds_alternative<Measurement>(outcome));
    return std::get<Measurement>(outcome);
}

Failure failure_of(const Outcome& outcome, FailureKind kind) {
    REQUIRE(std::holds_alternative<Failure>(outcome));
    Failure failure = std::get<Failure>(outcome);
    INFO(failure.message);
    CHECK(name_in(failure_kinds, failure.kind) == name_in(failure_kinds, kind));
    CHECK_FALSE(failure.message.empty());
    return failure;
}

/// Why this answer is refused.
std::string refused(const std::string& printed) {
    return failure_of(outcome_of(printed), FailureKind::invalid_result).message;
}

const std::string good = R"(echo '{"metrics": {"tokens_per_second": 5}}')";

}  // namespace

TEST_CASE(
    "command: the program gets the configuration in its words, on its standard input and in a "
    "file") {
    CommandSetting setting(
        "for word; do echo \"$word\" >> \"$OUT/words\"; done\ncat > \"$OUT/input\"\npwd > "
        "\"$OUT/where\"\n" +
            good,
        {"{config}", "--file={config_file}", "[{workload}]", "{seed}/{trial}", "{folder}",
         "{{seed}}", R"({"a": {"b": {}}})", "$HOME; #"});
    setting.options.environment = {{"OUT", setting.folder.path().string()}};
    setting.options.working_folder = setting.folder.path() / "study";
    setting.options.model = "some/model";
    setting.options.workloads = {"chat", "code"};
    setting.options.render = [](const Configuration& c) {
        return Command{{"engine", "--seqs=" + text_of(*c.find("max_num_seqs"))},
                       {{"NAME", "value"}},
                       {{"options.json", "{}"}}};
    };
    fs::create_directories(setting.options.working_folder);
    EvaluationContext context{7, 99, "", {}};
    REQUIRE(std::holds_alternative<Measurement>(setting.measure(context)));
    const fs::path trial = setting.options.folder / "trials/7";
    const std::string config = R"({"max_num_seqs":128,"mode":"a \"b\"","share":0.5,"unset":null})";
    CHECK(lines_in(setting.folder.path() / "words") ==
          Words{config, "--file=" + (trial / "request.json").string(), "[]", "99/7", trial.string(),
                "{seed}", R"({"a": {"b": {}}})", "$HOME; #"});
    CHECK(lines_in(setting.folder.path() / "where") ==
          Words{setting.options.working_folder.string()});
    const std::string input = read_file(setting.folder.path() / "input");
    CHECK(input == read_file(trial / "request.json"));
    CHECK(nlohmann::json::parse(input) ==
          nlohmann::json::parse(
              R"({"trial": 7, "seed": 99, "workload": null, "workloads": ["chat", "code"],
          "model": "some/model", "configuration": )" +
              config +
              R"(, "command": ["engine", "--seqs=128"], "environment": {"NAME": "value"}})"));
    CHECK(read_file(trial / "options.json") == "{}");  // where the command is to be started

    fs::remove(setting.folder.path() / "words");
    context.workload = "long";
    REQUIRE(std::holds_alternative<Measurement>(setting.measure(context)));
    CHECK(lines_in(setting.folder.path() / "words").at(2) == "[long]");
    const auto again = nlohmann::json::parse(read_file(trial / "request.json"));
    CHECK(again.at("workload") == "long");
    CHECK(again.at("workloads") == nlohmann::json{"long"});
}

TEST_CASE("command: an unknown placeholder is refused before anything runs, with the known ones") {
    const auto why = [](const std::string& word) {
        return message_of<UsageError>([&] { CommandEvaluator::check_word(word); });
    };
    CHECK(why("--c={confg}") ==
          "'--c={confg}': {confg} is no placeholder; known: {config}, {config_file}, {seed}, "
          "{trial}, {folder}, {workload}; the text itself "
          "is written {{confg}}");
    for (const char* word :
         {"{config}", "{{anything}}", "{\"json\": {}}", "{", "}{", "{}", "{Upper}", "awk {print}"})
        if (std::string(word) != "awk {print}") CHECK(why(word).empty());
    CHECK(has(why("awk {print}"), "{{print}}"));
    CHECK(message_of<UsageError>([] {
              const CommandEvaluator none(CommandEvaluator::Options{});
          }) == "the command that measures: argv: a program wanted, got none");
}

TEST_CASE("command: metrics, their standard errors and a verdict are taken as printed") {
    const Measurement plain = measurement_of(
        R"({"metrics": {"tokens_per_second": 123.5, "latency_mean_seconds": {"value": 1, "standard_error": 0.1},
        "tokens_per_second@chat": 120, "latency_p99_seconds": null, "x": {"value": null}}})");
    CHECK(plain.metrics == Metrics{{"tokens_per_second", {123.5}},
                                   {"latency_mean_seconds", {1, 0.1}},
                                   {"tokens_per_second@chat", {120}}});
    CHECK(plain.validity == Validity{});
    // All of it may be one object on several lines, or its last line among others.
    const Measurement judged = measurement_of(R"({"metrics": {"tokens_per_second": 2},
 "validity": {"verdict": "suspect", "findings": [
   {"id": "peak", "left": 9.5, "right": "1", "cause": "one burst"}, {"id": "other"}]}})");
    CHECK(judged.validity ==
          Validity{Verdict::suspect, {{"peak", "9.5", "1", "one burst"}, {"other"}}});
    const std::string line = R"({"metrics": {"tokens_per_second": 3}})";
    CHECK(measurement_of("loading\n{\"level\": \"info\"}\n" + line).metrics ==
          Metrics{{"tokens_per_second", {3}}});
    CHECK(measurement_of("{\r\n" + line + "\r\ndone {\r\n\r\n").metrics ==
          Metrics{{"tokens_per_second", {3}}});
}

TEST_CASE("command: what is no answer is refused with the reason") {
    CHECK(
        refused("") ==
        R"(it printed nothing on standard output; wanted: {"metrics": {...}} or {"failure": {...}})");
    CHECK(refused(" \n\t\n") == refused(""));
    CHECK(has(refused("all is well\n"), "no line that it printed is a JSON object"));
    CHECK(has(refused("[1, 2]\n"), "no line that it printed is a JSON object"));
    CHECK(has(refused("{\"metrics\": {\"tokens_per_second\": 5}\n"),
              "what it printed is not JSON: parse error"));
    CHECK(has(refused("log\n{\"metrics\":\n{\n}"),
              "wanted is one object, alone or on the last line; got '{'"));
    CHECK(has(refused("{\"metrics\": {\"\xff\": 5}}"), "is not JSON"));
    CHECK(has(refused(std::string("{\0\1", 3)), "got '{  '"));
    CHECK(has(refused("{\"metrics\": " + std::string(200000, '[')), "nests deeper than 100"));
    CHECK(has(refused("{\"metrics\": " + std::string(400000, '[') + std::string(400000, ']') + "}"),
              "nests deeper than 100"));
    CHECK(refused("{}") == "its answer must have either 'metrics' or 'failure'; it is '{}'");
    CHECK(has(refused(R"({"metrics": {}, "failure": {"kind": "other"}})"),
              "either 'metrics' or 'failure'"));
    CHECK(refused(R"({"metric": {"tokens_per_second": 5}})") ==
          "unknown key 'metric' in its answer; known: metrics, validity, failure");
    CHECK(refused(R"({"metrics": 5})") == "'metrics' must be a JSON object, got '5'");

    const auto of_metric = [](const std::string& json) {
        return refused("{\"metrics\": {\"tokens_per_second\": " + json + "}}");
    };
    CHECK(of_metric("\"5\"") == "metric 'tokens_per_second' must be a finite number, got '\"5\"'");
    for (const char* python : {"NaN", "-Infinity", "{\"value\": Infinity}"})
        CHECK(has(of_metric(python), "what it printed is not JSON: "));
    CHECK(has(of_metric("1e999"), "number overflow"));
    CHECK(of_metric("{\"value\": 1, \"stderr\": 1}") ==
          "unknown key 'stderr' in metric 'tokens_per_second'; known: value, standard_error");
    CHECK(of_metric("{\"standard_error\": 1}") == "metric 'tokens_per_second' has no 'value'");
    CHECK(of_metric("{\"value\": 1, \"standard_error\": -1}") ==
          "the standard_error of metric 'tokens_per_second' is below 0");
    CHECK(has(of_metric("5, \"x\": NaN"), "\"x\": N"));
    CHECK(of_metric("5, \"\": 1") == "a metric needs a name (name or name@workload), got ''");
    // Whether the metrics of the objective are there is for the study to see; any finite number is
    // one.
    CHECK(measurement_of(R"({"metrics": {"tokens_per_second": null}})").metrics.empty());
    for (const char* number : {"0", "-3.5"})
        CHECK(measurement_of("{\"metrics\": {\"profit\": " + std::string(number) + "}}")
                  .metrics.contains("profit"));
    CHECK(
        measurement_of(R"({"metrics": {"tokens_per_second": 1, "says": null, "NaN \"NaN": -0.0}})")
            .metrics.contains("NaN \"NaN"));

    const auto of_validity = [](const std::string& json) {
        return refused(R"({"metrics": {"tokens_per_second": 5}, "validity": )" + json + "}");
    };
    CHECK(of_validity("\"sound\"") == "'validity' must be a JSON object, got '\"sound\"'");
    CHECK(
        of_validity(R"({"verdict": "unsond"})") ==
        "'verdict' in 'validity' must be one of unsound, sound, unchecked, suspect, got 'unsond'");
    CHECK(has(of_validity(R"({"verdict": "suspect", "findings": {}})"),
              "'findings' in 'validity' must be a list"));
    CHECK(has(of_validity(R"({"verdict": "suspect", "findings": [{"left": "1"}]})"),
              "a finding needs an 'id'"));
    CHECK(has(of_validity(R"({"verdict": "suspect", "findings": [{"id": "a", "why": 1}]})"),
              "unknown key 'why' in a finding"));
}

TEST_CASE("command: a failure is what the program says it is, whatever its exit code") {
    for (const char* code : {"0", "3"}) {
        CommandSetting setting(
            R"(printf '%s' '{"failure": {"kind": "out_of_memory", "message": "no room\nfor 3 blocks"}}'; exit )" +
            std::string(code));
        const Failure failure = failure_of(setting.measure(), FailureKind::out_of_memory);
        CHECK(failure.message == "no room for 3 blocks");
        CHECK(failure.log_path == setting.trial("command.log").string());
    }
    CHECK(has(refused(R"({"failure": {"kind": "oom", "message": "x"}})"),
              "'kind' in 'failure' must be one of "));
    CHECK(has(refused(R"({"failure": {"kind": "cancelled"}})"),
              "got 'cancelled'"));  // not for the program to say
    CHECK(has(refused(R"({"failure": "other"})"), "'failure' must be a JSON object"));
    CHECK(failure_of(outcome_of(R"({"failure": {"kind": "hung"}})"), FailureKind::hung).message ==
          "the program says hung and no more");
    const std::string wide = "\u00e9";
    std::string much;
    for (int i = 0; i < 9000; ++i) much += wide;
    CHECK(failure_of(
              outcome_of("{\"failure\": {\"kind\": \"other\", \"message\": \"x" + much + "\"}}"),
              FailureKind::other)
              .message.size() == 4095);  // 4 KiB at most, no half of a character
}

TEST_CASE(
    "command: an exit code other than 0 is told with the last lines of standard error, metrics "
    "printed before it do not count") {
    CommandSetting setting("echo one >&2\n" + good + "\necho two >&2\nexit 7\n");
    CHECK(failure_of(setting.measure(), FailureKind::other).message ==
          "exit code 7; its last lines: one / two");
    CHECK(read_file(setting.trial("command.log")) == "one\ntwo\n");
    CommandSetting many("seq 1 30 >&2\nexit 1\n");
    CHECK(has(failure_of(many.measure(), FailureKind::other).message,
              "its last lines: 28 / 29 / 30"));
    CHECK(failure_of(CommandSetting("kill -SEGV $$\n").measure(), FailureKind::other).message ==
          "it was ended by signal 11; it printed nothing on standard error");
}

TEST_CASE(
    "command: a program that is not over in time is hung, one that the user stops is cancelled, "
    "both are ended") {
    CommandSetting slow("echo working >&2\nsleep 300\n");
    slow.options.within_seconds = 0.5;
    const auto begin = Clock::now();
    CHECK(has(failure_of(slow.measure(), FailureKind::hung).message,
              "it was not over within 0.5 s; its last lines: working"));
    CHECK(Clock::now() - begin < 60s);

    CommandSetting stopped("touch \"$1/began\"\nsleep 300\n", {"{folder}"});
    std::stop_source stop;
    std::jthread soon([&] {
        (void)comes_true([&] { return fs::exists(stopped.trial("began")); });
        stop.request_stop();
    });
    EvaluationContext context;
    context.stop = stop.get_token();
    (void)failure_of(stopped.measure(context), FailureKind::cancelled);
    fs::remove(stopped.trial("began"));
    (void)failure_of(stopped.measure(context),
                     FailureKind::cancelled);  // already: it is not even started
    CHECK_FALSE(fs::exists(stopped.trial("began")));
}

TEST_CASE("command: what is the machine's fault is thrown, never told of the configuration") {
    const auto thrown = [](CommandSetting& setting) {
        return message_of<IoError>([&] { (void)setting.measure(); });
    };
    CommandSetting nowhere(good);
    nowhere.options.argv.front() = "no-such-program-here";
    CHECK(thrown(nowhere) ==
          "trial 0 cannot be measured here: cannot start no-such-program-here: no such program in "
          "$PATH; mend that (the study's evaluator "
          "names the program no-such-program-here) and go on");
    CommandSetting closed(good);
    fs::permissions(closed.options.argv.front(), fs::perms::owner_read);
    CHECK(has(thrown(closed), "chmod +x"));
    CommandSetting nothing(good);
    nothing.options.folder = "/proc/1/study";
    CHECK(has(thrown(nothing), "cannot make the folder /proc/1/study/trials/0"));
    CommandSetting infrastructure(
        R"(echo '{"failure": {"kind": "infrastructure", "message": "the cluster is down"}}')");
    CHECK(has(thrown(infrastructure), "the cluster is down (so says the program itself)"));
}

TEST_CASE(
    "command: what the program leaves behind is ended, those that do not hear TERM and left the "
    "group too") {
    CommandSetting setting(
        "(trap '' TERM; echo $$ > \"$1/deaf\"; while :; do sleep 1; done) >&2 &\n"
        "setsid sh -c 'trap \"\" TERM; echo $$ > \"$0/left\"; while :; do sleep 1; done' \"$1\" "
        ">/dev/null 2>&1 &\n"
        "while ! [ -s \"$1/deaf\" ] || ! [ -s \"$1/left\" ]; do sleep 0.01; done\n" +
            good,
        {"{folder}"});
    setting.options.stop_within_seconds = 0.3;
    CHECK(std::holds_alternative<Measurement>(setting.measure()));
    const int left = std::stoi(read_file(setting.trial("left")));
    CHECK(comes_true([&] {
        return kill(left, 0) != 0;
    }));  // a zombie until its parent, init by then, has waited for it
    CHECK(leftovers(setting.options.mark).empty());
}

TEST_CASE("command: floods are bounded") {
    CommandSetting out("yes\n");
    out.options.answer_bytes = 100000;
    CHECK(has(failure_of(out.measure(), FailureKind::invalid_result).message,
              "it printed more than 100000 bytes on standard output"));
    CommandSetting once("head -c 200000 /dev/zero\n" + good);  // over before anybody looks
    once.options.answer_bytes = 100000;
    CHECK(has(failure_of(once.measure(), FailureKind::invalid_result).message,
              "more than 100000 bytes"));
    CommandSetting wide("head -c 8000000 /dev/zero | tr '\\0' ' '\n" + good);
    CHECK(std::holds_alternative<Measurement>(wide.measure()));
    CommandSetting err("yes error | head -c 5000000 >&2\n" + good);
    err.options.log_bytes = 10000;
    CHECK(std::holds_alternative<Measurement>(err.measure()));
    CHECK(fs::file_size(err.trial("command.log")) <= 10000);
    CHECK(has(read_file(err.trial("command.log")), "bytes left out"));
}

TEST_CASE("command: keeps the contract of evaluators") {
    const SearchSpace searched({Parameter::integer("seqs", 64, 512, Scale::log2),
                                Parameter::choice("method", {"none", "ngram"})});
    CommandSetting setting(R"(seqs=$(printf '%s' "$1" | sed 's/.*"seqs":\([0-9]*\).*/\1/')
case "$1" in
    *ngram*) [ "$seqs" -gt 128 ] && echo '{"failure": {"kind": "out_of_memory", "message": "too many"}}' && exit 0 ;;
esac
echo "{\"metrics\": {\"tokens_per_second\": $seqs.5}}"
)",
                           {"{config}"});
    CommandEvaluator evaluator(setting.options);
    check_evaluator(evaluator, searched);
    CHECK(evaluator.replicates_inform());
    const auto of = [&](std::int64_t seqs, const std::string& method) {
        return evaluator.evaluate(Configuration({{"seqs", seqs}, {"method", method}}), {});
    };
    CHECK(std::get<Measurement>(of(256, "none")).metrics.at("tokens_per_second").value == 256.5);
    CHECK(std::get<Failure>(of(256, "ngram")).kind == FailureKind::out_of_memory);
}
