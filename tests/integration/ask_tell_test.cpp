// SPDX-License-Identifier: Apache-2.0
// `autotune ask-tell` as a program in another language has it: lines over pipes
// (docs/reference/your-own-program.md).
#include "support/autotune.hpp"
#include "support/conversation.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"
#include "servetune/rng.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"
#include "study/json.hpp"
#include "study_file/yaml.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

using namespace servetune;
using namespace servetune::test;

namespace {

using Json = nlohmann::json;

const std::string space = R"(
space:
  method: {choice: [none, ngram, draft]}
  guesses: {int: {low: 1, high: 7}, default: 3, when: {method: [ngram, draft]}}
  seqs: {int: {low: 32, high: 1024, scale: log2}, default: 256}
  share: {real: {low: 0.5, high: 0.95}, default: 0.9}
  machine: 8
constraints:
  - {forbid: {method: draft, seqs: 1024}, because: "they do not fit"}
objective: {maximize: total_tokens_per_second, limits: ["wait_seconds <= 2"]}
strategy: bayesian
)";

std::string with_budget(std::size_t trials) {
    return space + "budget: {trials: " + std::to_string(trials) + "}\nseed: 5\n";
}

/// What another program would measure; some of it fails.
Outcome measured(const Configuration& configuration) {
    const auto number = [&](const char* name) {
        const Value* value = configuration.find(name);
        return value == nullptr ? 0 : number_of(*value).value_or(0);
    };
    const double seqs = std::log2(number("seqs"));
    if (seqs + 10 * number("share") > 18) return Failure{FailureKind::out_of_memory, "no room"};
    const double guesses = number("guesses");
    const double rate = 1000 * std::exp(0.1 * seqs - 0.3 * std::pow(number("share") - 0.7, 2) +
                                        (guesses > 0 ? 0.1 - 0.02 * std::pow(guesses - 4, 2) : 0));
    return Measurement{{{"total_tokens_per_second", {rate}}, {"wait_seconds", {seqs / 5}}}};
}

Json told_of(const Outcome& outcome) {
    if (const auto* failure = std::get_if<Failure>(&outcome))
        return {{"failed", name_in(failure_kinds, failure->kind)}, {"message", failure->message}};
    Json metrics;
    for (const auto& [name, metric] : std::get<Measurement>(outcome).metrics)
        metrics[name] = metric.value;
    return {{"metrics", metrics}};
}

std::vector<std::string> words(const fs::path& file, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {SERVETUNE_PROGRAM, "ask-tell", file.string()});
    return more;
}

class Program {
public:
    explicit Program(const TemporaryFolder& folder, const std::string& text,
                     const std::vector<std::string>& more = {})
        : process_(words(folder.write("space.yaml", text), more), folder.path()) {}

    Json operator()(const Json& message) { return raw(message.dump()); }
    Json raw(const std::string& line) {
        const std::string said = process_.answer(line);
        INFO(line << " -> " << said);
        REQUIRE(!said.empty());
        return Json::parse(said);
    }
    Json ask() { return (*this)({{"ask", true}}); }
    Json tell(const Json& trial) {
        const Configuration configuration =
            configuration_from_json(trial.at("configuration").dump());
        Json told = told_of(measured(configuration));
        told["trial"] = trial.at("trial");
        return (*this)({{"tell", told}});
    }
    ConversationProcess& process() { return process_; }

private:
    ConversationProcess process_;
};

}  // namespace

TEST_CASE(
    "ask-tell: the answers are those of a Study in this process, also with two trials open, and "
    "the budget ends it") {
    const TemporaryFolder folder;
    Program program(
        folder, with_budget(14) +
                    "decision: published\n");  // else two open trials may have to wait for a round
    const StudySetup setup = set_up(load_study(
        folder.path() / "space.yaml", Catalogue(fs::path(SERVETUNE_SOURCE) / "search_spaces"), "",
        MeasuredBy::outside));
    CHECK(setup.file.name == "space");
    MemoryJournal journal;
    Study study(*setup.problem, *setup.strategy, journal, {setup.file.seed});
    std::vector<Json> open;
    std::size_t asked = 0;
    for (; asked < 14; ++asked) {
        const Json trial = program.ask();
        const auto own = study.ask();
        REQUIRE(own);
        INFO(trial.dump());
        REQUIRE(trial.at("trial") == own->id);
        CHECK(configuration_from_json(trial.at("configuration").dump()) == own->configuration);
        CHECK(trial.at("why") == own->why);
        CHECK(trial.at("configuration").at("machine") == 8);
        open.push_back(trial);
        if (open.size() < 2) continue;
        // The one that was asked last is done first.
        CHECK(program.tell(open.back()) == Json{{"told", own->id}});
        study.tell(own->id, measured(own->configuration));
        if (asked % 3 != 0) continue;
        const Configuration first =
            configuration_from_json(open.front().at("configuration").dump());
        CHECK(program.tell(open.front()).contains("told"));
        study.tell(open.front().at("trial"), measured(first));
        open.clear();
    }
    for (const Trial& trial : study.trials())
        if (!trial.told()) {
            CHECK(program.ask() == Json{{"waiting", true}});
            CHECK(program
                      .tell({{"trial", trial.id},
                             {"configuration", Json::parse(json_of(trial.configuration))}})
                      .contains("told"));
            study.tell(trial.id, measured(trial.configuration));
        }
    CHECK(program.ask() ==
          Json{{"finished", "the budget is spent"}, {"stop_reason", "trials_spent"}});

    const Recommendation own = study.recommendation();
    const Json said = program({{"recommend", true}});
    CHECK(said["trials"]["told"] == study.trials().size());
    CHECK(configuration_from_json(said["recommended"]["configuration"].dump()) == own.recommended);
    CHECK(said["recommended"]["keep_default"] == own.keep_default);
    CHECK(said["recommended"]["gain"]["value"] == own.gain.value);
    CHECK(said["recommended"]["gain"]["low"].is_null() == !own.gain.has_interval());
    if (own.gain.has_interval()) CHECK(said["recommended"]["gain"]["low"] == own.gain.low);
    if (own.gain.has_interval()) CHECK(said["recommended"]["gain"]["high"] == own.gain.high);
    CHECK(said["recommended"]["gain"]["p_best"].is_null() == !own.p_best.has_value());
    CHECK(program.process().end() == 0);
}

TEST_CASE(
    "ask-tell: what was measured before is told by its configuration, and the default is asked all "
    "the same") {
    const TemporaryFolder folder;
    Program program(folder, with_budget(10) + "decision: published\n");
    CHECK(program({{"recommend", true}})["recommended"].is_null());
    // The default stays trial 0; reals and integers are taken however a language writes them.
    const std::string before =
        R"({"tell": {"configuration": {"method": "ngram", "guesses": 4.0, "seqs": 512, "share": 0.6}, )";
    const Json missing = program.raw(before + R"("value": 1500}})");
    CHECK(missing["error"].get<std::string>().find(
              "the metric of the limit 'wait_seconds <= 2', 'wait_seconds' is missing") == 0);
    CHECK(program.raw(before +
                      R"("metrics": {"total_tokens_per_second": 1500, "wait_seconds": 1}}})") ==
          Json{{"told", 1}});
    const Json first = program.ask();
    CHECK(first["trial"] == 0);
    CHECK(first["configuration"] ==
          Json{{"machine", 8}, {"method", "none"}, {"seqs", 256}, {"share", 0.9}});
    // Told by its configuration, an open trial is that trial; told again, a new one.
    const Json told{{"configuration", first["configuration"]},
                    {"metrics",
                     {{"total_tokens_per_second", 1000},
                      {"wait_seconds", {{"value", 1}, {"standard_error", 0.1}}}}}};
    CHECK(program({{"tell", told}}) == Json{{"told", 0}});
    CHECK(program({{"tell", told}}) == Json{{"told", 2}});
    const Json said = program({{"recommend", true}});
    CHECK(said["recommended"]["configuration"]["seqs"] == 512);
    CHECK(said["recommended"]["gain"]["value"] == Approx(0.5));
    CHECK(program.process().end() == 0);
}

TEST_CASE("ask-tell: a suggestion is tried once three trials of ten may be suggested") {
    const TemporaryFolder folder;
    Program program(folder, with_budget(10));
    CHECK(program({{"suggest", {{"method", "ngram"}, {"guesses", 4}, {"share", 0.6}}}}) ==
          Json{{"suggested", 1}});
    for (int trial = 0; trial < 3; ++trial) program.tell(program.ask());
    const Json suggested = program.ask();
    CHECK(suggested["configuration"] ==
          Json{{"guesses", 4}, {"machine", 8}, {"method", "ngram"}, {"seqs", 256}, {"share", 0.6}});
    CHECK(suggested["why"].get<std::string>().starts_with("suggested"));

    Program other(folder, with_budget(10), {"--strategy", "random"});
    CHECK(other({{"suggest", Json::object()}})["error"] ==
          "the strategy 'random' takes no suggestions, 'bayesian' does");
}

TEST_CASE("ask-tell: a proposed trial is open, and the next ask knows that it is under way") {
    const TemporaryFolder folder;
    Program program(folder, with_budget(20));
    for (int trial = 0; trial < 6; ++trial) program.tell(program.ask());
    Program undisturbed(folder, with_budget(20));
    for (int trial = 0; trial < 6; ++trial) undisturbed.tell(undisturbed.ask());
    const Json next = undisturbed.ask();
    const Json proposed = program({{"propose", next["configuration"]}});
    CHECK(proposed["trial"] == 6);
    CHECK(proposed["configuration"] == next["configuration"]);
    CHECK(program.ask()["configuration"] != next["configuration"]);
    CHECK(program.tell(proposed) == Json{{"told", 6}});

    Program fresh(folder, with_budget(20));  // the default is trial 0 all the same
    CHECK(fresh({{"propose", {{"method", "ngram"}}}})["trial"] == 1);
    CHECK(fresh.ask()["trial"] == 0);
}

TEST_CASE("ask-tell: bad lines are answered and change nothing") {
    const TemporaryFolder folder;
    Program program(folder, with_budget(10));
    Program undisturbed(folder, with_budget(10));
    const Json first = program.ask();
    CHECK(undisturbed.ask() == first);
    std::vector<std::pair<std::string, std::string>> bad{
        {"{\"tell\": \"\xff\xfe\"}", "one JSON object"},
        {std::string(3'000'000, ' ') + R"({"ask": true})", "at most 1048576 bytes"},
        {std::string(900'000, '['), "nests deeper than 100"},
        {std::string(500'000, '[') + std::string(500'000, ']'), "nests deeper than 100"},
        {R"({"tell": {"configuration": {"seqs": )" + std::string(300'000, '[') +
             std::string(300'000, ']') + R"(}, "value": 3}})",
         "nests deeper than 100"}};
    const Yaml cases = Yaml::load(SERVETUNE_SOURCE "/tests/data/cases/ask_tell.yaml");
    for (const Yaml& one : cases.items())
        bad.emplace_back(one.entry(std::string_view("line"))->text(),
                         one.entry(std::string_view("says"))->text());
    for (const auto& [line, message] : bad) {
        INFO(line.substr(0, 100));
        const Json answer = program.raw(line);
        INFO(answer.dump());
        REQUIRE(answer.contains("error"));
        CHECK(answer.size() == 1);
        CHECK(has(answer["error"].get<std::string>(), message));
    }
    CHECK(program.tell(first) == Json{{"told", 0}});
    CHECK(program.tell(first) == Json{{"error", "trial 0 is already told"}});
    CHECK(undisturbed.tell(first) == Json{{"told", 0}});
    for (int i = 0; i < 3; ++i) {
        const Json next = program.ask();
        CHECK(next == undisturbed.ask());
        (void)program.tell(next);
        (void)undisturbed.tell(next);
    }
    program.process().say(R"({"ask": true)");
    CHECK(Json::parse(program.process().heard()).contains("error"));
    CHECK(program.process().end() == 0);
}

TEST_CASE(
    "ask-tell: goals have names of their own, each is wanted, and the front is told without a "
    "journal") {
    const TemporaryFolder folder;
    Program program(folder,
                    "space: {level: {choice: [a, b, c]}}\nobjective: {maximize: figure, minimize: "
                    "price}\nstrategy: bayesian\nbudget: "
                    "{trials: 3}\n");
    CHECK(program.ask()["trial"] == 0);
    const auto error = [&](const std::string& rest) {
        return program.raw(R"({"tell": {"trial": 0, )" + rest + "}}")
            .at("error")
            .get<std::string>();
    };
    CHECK(has(error(R"("value": 3)"), "'price' is missing; told are: figure"));
    CHECK(has(error(R"("metrics": {"figures": 3, "price": 0})"),
              "'figure' is missing; told are: figures, price"));
    CHECK(program.raw(R"({"tell": {"trial": 0, "metrics": {"figure": 3, "price": 2}}})")
              .contains("told"));
    CHECK(
        program
            .raw(
                R"({"tell": {"configuration": {"level": "b"}, "metrics": {"figure": 6, "price": 4}}})")
            .contains("told"));
    CHECK(
        program
            .raw(
                R"({"tell": {"configuration": {"level": "c"}, "metrics": {"figure": 2, "price": 4}}})")
            .contains("told"));
    const Json said = program({{"recommend", true}});
    CHECK(said["goals"].size() == 2);
    REQUIRE(said["front"].size() == 2);
    CHECK(said["front"][0]["configuration"]["level"] == "b");
    CHECK(said["front"][1]["configuration"]["level"] == "a");
    CHECK(program.process().end() == 0);
}

TEST_CASE("ask-tell: random bytes are answered line by line") {
    const TemporaryFolder folder;
    Program program(folder, with_budget(10));
    Rng rng(20261122);
    const std::string valid =
        R"({"tell": {"configuration": {"method": "ngram", "guesses": 4}, "metrics": {"total_tokens_per_second": 12.5, "wait_seconds": 1}}})";
    std::size_t told = 0;
    for (int i = 0; i < 600; ++i) {
        std::string line = i % 2 == 0 ? valid : std::string();
        const std::size_t changes = i % 2 == 0 ? 1 + rng.index(3) : rng.index(200);
        for (std::size_t k = 0; k < changes; ++k) {
            const char byte = static_cast<char>(rng.index(256));
            if (i % 2 == 0) line[rng.index(line.size())] = byte;
            else line += byte;
        }
        for (char& c : line)
            if (c == '\n') c = ' ';
        const Json answer = program.raw(line);
        REQUIRE(answer.size() == 1);
        REQUIRE((answer.contains("error") || answer.contains("told")));
        told += answer.contains("told") ? 1 : 0;
    }
    CHECK(told < 300);
    const Json said = program({{"recommend", true}});
    CHECK(said["trials"]["told"] == told);
    CHECK(program.process().end() == 0);
}

TEST_CASE(
    "ask-tell: killed with -9, it offers its open trials again and goes on as if it had not been") {
    const TemporaryFolder folder;
    const fs::path kept = folder.path() / "kept";
    Program whole(folder, with_budget(16));
    std::vector<Json> asked;
    const auto step = [&](Program& program, std::size_t i) {
        asked.push_back(program.ask());
        if (i % 2 == 1)
            for (const std::size_t which : {i, i - 1})
                CHECK(program.tell(asked[which]).contains("told"));
    };
    for (std::size_t i = 0; i < 12; ++i) step(whole, i);
    const std::vector<Json> wanted = std::move(asked);
    asked.clear();
    {
        Program program(folder, with_budget(16), {"--directory", kept.string()});
        for (std::size_t i = 0; i < 7; ++i) step(program, i);
        asked.push_back(program.ask());
        program.process().kill_now();
        CHECK(program.process().end() == 128 + SIGKILL);
    }
    {
        Program program(folder, with_budget(16), {"--directory", kept.string()});
        CHECK(program.ask() == asked[6]);
        CHECK(program.ask() == asked[7]);
        // A second program cannot write to the same journal.
        CHECK(autotune({"ask-tell", (folder.path() / "space.yaml").string(), "--directory",
                        kept.string()},
                       folder.path())
                  .code == 3);
        for (const std::size_t which : {std::size_t{7}, std::size_t{6}})
            CHECK(program.tell(asked[which]).contains("told"));
        for (std::size_t i = 8; i < 12; ++i) step(program, i);
        CHECK(program.process().end() == 0);
    }
    CHECK(asked == wanted);
    CHECK(SqliteJournal::read(kept).trials().size() == 12);
    const std::string file = (folder.path() / "space.yaml").string();
    for (const char* command : {"report", "status", "explain"}) {
        const Ran said = autotune({command, file, "--directory", kept.string()}, folder.path());
        INFO(command << said.err);
        CHECK(said.code == 0);
        CHECK(has(said.out, command == std::string("explain") ? "seqs" : "share"));
        CHECK(Json::accept(
            autotune({command, file, "--directory", kept.string(), "--json"}, folder.path()).out));
    }
    const Ran why =
        autotune({"explain", file, "--directory", kept.string(), "--trial", "7"}, folder.path());
    INFO(why.out << why.err);
    CHECK(why.out.find("trial 7: " + SqliteJournal::read(kept).trials()[7].configuration.text()) ==
          0);
    // Another study is not mixed into it.
    std::string changed = with_budget(16);
    changed.replace(changed.find("high: 7"), 7, "high: 6");
    folder.write("space.yaml", changed);
    const Ran refused = autotune({"ask-tell", file, "--directory", kept.string()}, folder.path());
    CHECK(refused.code == 2);
    CHECK(has(refused.err, "guesses"));
    const Ran run = autotune({"run", file, "--directory", kept.string()}, folder.path());
    CHECK(run.code == 2);
    CHECK(has(run.err, "the key 'study' is missing"));
}

TEST_CASE("ask-tell: spaces of engines have their commands") {
    const TemporaryFolder folder;
    Program program(folder,
                    "engine: vllm\nothers: default\nspace: {max_num_seqs: {int: {low: 64, high: "
                    "1024, scale: log2}}}\n"
                    "objective: {maximize: total_tokens_per_second}\nevaluator: {command: "
                    "[./measure]}\nstrategy: random\ndecision: published\n");
    const Json first = program.ask();
    CHECK(program({{"tell", {{"trial", 0}, {"value", 100}}}}) == Json{{"told", 0}});
    const Json next = program.ask();
    CHECK(next["configuration"] != first["configuration"]);
    CHECK(program({{"tell", {{"trial", 1}, {"value", 200}}}}) == Json{{"told", 1}});
    const std::string command = program({{"recommend", true}})["recommended"]["command"];
    CHECK(command ==
          "vllm serve MODEL --max-num-seqs=" + next["configuration"]["max_num_seqs"].dump());
}

TEST_CASE("ask-tell: the page's example runs") {
    const std::string page =
        read_file(fs::path(SERVETUNE_SOURCE) / "docs/reference/your-own-program.md");
    const auto block = [&](const std::string& language) {
        const auto from =
            page.find("```" + language + "\n", page.find("## ask-tell")) + 4 + language.size();
        return page.substr(from, page.find("```", from) - from);
    };
    const TemporaryFolder folder;
    folder.write("space.yaml", block("yaml"));
    folder.write("tune.py", block("python"));
    const fs::path program(SERVETUNE_PROGRAM);
    const Ran said = ran(
        {"/usr/bin/env", "PATH=" + program.parent_path().string() + ":/usr/local/bin:/usr/bin:/bin",
         "python3", "tune.py"},
        folder.path());
    INFO(said.err);
    REQUIRE(said.code == 0);
    const Json recommended = Json::parse(said.out);
    CHECK(recommended["keep_default"] == false);
    CHECK(recommended["configuration"]["cache"] == "large");
    CHECK(recommended["gain"]["low"] > 0);
}
