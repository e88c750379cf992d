// SPDX-License-Identifier: Apache-2.0
// A study as a storage of Optuna, read back by Optuna itself (python3-optuna of Debian; without it
// nothing is tested).
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"

#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

const char* const python = "/usr/bin/python3";

bool has_optuna(const TemporaryFolder& folder) {
    if (fs::exists(python) && ran({python, "-c", "import optuna"}, folder.path()).code == 0)
        return true;
    WARN("skipped: there is no python3-optuna");
    return false;
}

/// What Optuna makes of a file.
nlohmann::json read_by_optuna(const TemporaryFolder& folder, const std::string& name) {
    const auto script = folder.write("read.py", R"py(
import json, sys, optuna
study = optuna.load_study(study_name=sys.argv[2], storage="sqlite:///" + sys.argv[1])
trials = [{"number": t.number, "state": t.state.name, "values": t.values, "params": t.params, "user": t.user_attrs,
           "distributions": {k: json.loads(optuna.distributions.distribution_to_json(v)) for k, v in t.distributions.items()},
           "seconds": t.duration.total_seconds() if t.duration else None, "began": t.datetime_start.timestamp() if t.datetime_start else None}
          for t in study.trials]
best = study.best_trial.number if len(study.directions) == 1 else [t.number for t in study.best_trials]
json.dump({"directions": [d.name for d in study.directions], "trials": trials, "best": best, "user": study.user_attrs}, sys.stdout)
)py");
    const Ran read =
        ran({python, script.string(), (folder.path() / "optuna.db").string(), name}, folder.path());
    INFO(read.err);
    REQUIRE(read.code == 0);
    return nlohmann::json::parse(read.out);
}

std::vector<nlohmann::json> exported_lines(const TemporaryFolder& folder) {
    const Ran lines = autotune({"export", "study.yaml", "--format", "jsonl"}, folder.path());
    REQUIRE(lines.code == 0);
    std::vector<nlohmann::json> result;
    std::istringstream stream(lines.out);
    for (std::string line; std::getline(stream, line);)
        result.push_back(nlohmann::json::parse(line));
    return result;
}

std::vector<Trial> read_trials(const fs::path& folder) {
    try {
        return SqliteJournal::read(folder).trials();
    } catch (const IoError&) {
        return {};  // not there yet
    }
}

/// A program whose figures depend on all parameters; one value of `shape` fails.
void write_measured_study(const TemporaryFolder& folder, const std::string& objective,
                          const std::string& trials) {
    folder.write("measure.py", R"py(
import json, sys, time
request = json.load(sys.stdin)
c = request["configuration"]
if c["shape"] == "wide":
    sys.exit(3)
if c["shape"] == "slow":
    time.sleep(30)
batch = 0 if c.get("batch") in (None, "engine") else c["batch"]
rate = 100 + 7 * c["threads"] + 0.01 * c["window"] + 40 * c["share"] + batch + (5 if c["fast"] else 0)
print(json.dumps({"metrics": {"rate": rate, "watts": 400 - rate / 2 + 100 * c["share"]}}))
)py");
    folder.write("study.yaml",
                 "study: five kinds\nmodel: m\nengine: vllm\nothers: default\nworkloads: "
                 "[random]\nobjective: " +
                     objective + R"yaml(
strategy: random
seed: 3
space:
  threads: {flag: --threads, int: {low: 1, high: 9, step: 2}, default: 1}
  window: {flag: --window, int: {low: 64, high: 4096, scale: log2}, default: 64}
  share: {flag: --share, real: {low: 0.1, high: 0.9}, default: 0.5}
  fast: {flag: --fast, bool: {}, default: false}
  batch: {flag: --batch, choice: [engine, 8, 16], default: engine}
  shape: {flag: --shape, choice: [round, wide, flat]}
evaluator: {command: [/usr/bin/python3, measure.py]}
budget: )yaml" + trials +
                     "\n");
}

}  // namespace

TEST_CASE("optuna: states, parameters, distributions, values and the best trial are ours") {
    const TemporaryFolder folder;
    if (!has_optuna(folder)) return;
    write_measured_study(folder, "{maximize: rate, limits: [watts <= 360]}", "25 trials");
    const Ran run = autotune({"run", "study.yaml", "--quiet"}, folder.path());
    INFO(run.err);
    REQUIRE(run.code == 0);
    const Ran exported = autotune(
        {"export", "study.yaml", "--format", "optuna", "--output", "optuna.db"}, folder.path());
    INFO(exported.err);
    REQUIRE(exported.code == 0);
    CHECK(exported.out.empty());
    const nlohmann::json read = read_by_optuna(folder, "five kinds");
    CHECK(read["directions"] == nlohmann::json{"MAXIMIZE"});
    CHECK(read["user"]["goal"] == "maximize rate");
    const auto lines = exported_lines(folder);
    REQUIRE(read["trials"].size() == lines.size());
    REQUIRE(lines.size() >= 20);  // a confirmation that needs no more ends the run
    std::map<std::string, int> states;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        INFO(i);
        const nlohmann::json& trial = read["trials"][i];
        const nlohmann::json& line = lines[i];
        const bool failed = line["outcome"].contains("failure");
        const bool refused =
            !failed && line["outcome"]["metrics"]["watts"]["value"].get<double>() > 360;
        ++states[trial["state"].get<std::string>()];
        CHECK(trial["state"] == (failed ? "FAIL" : refused ? "PRUNED" : "COMPLETE"));
        CHECK(trial["user"]["trial"] == line["trial"]);
        CHECK(trial["params"].size() == line["configuration"].size());
        for (const auto& [name, value] : line["configuration"].items())
            CHECK(trial["params"][name] == (value.is_null() ? nlohmann::json("engine") : value));
        CHECK(std::abs(trial["began"].get<double>() - line["started_at"].get<double>()) < 1e-3);
        if (failed) CHECK(trial["user"]["failure"].is_string());
        else CHECK(trial["user"]["rate"].get<double>() > 100);
        if (trial["state"] == "COMPLETE") CHECK(trial["values"][0] == trial["user"]["rate"]);
        else CHECK(trial["values"].is_null());
    }
    CHECK(states["FAIL"] > 0);
    CHECK(states["PRUNED"] > 0);
    CHECK(states["COMPLETE"] > 3);
    const nlohmann::json of_first = read["trials"][0]["distributions"];
    CHECK(
        of_first["threads"] ==
        nlohmann::json::parse(
            R"({"name": "IntDistribution", "attributes": {"log": false, "step": 2, "low": 1, "high": 9}})"));
    CHECK(
        of_first["window"] ==
        nlohmann::json::parse(
            R"({"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 64, "high": 4096}})"));
    CHECK(
        of_first["share"] ==
        nlohmann::json::parse(
            R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 0.1, "high": 0.9, "log": false}})"));
    CHECK(of_first["fast"]["attributes"]["choices"] == nlohmann::json{false, true});
    CHECK(of_first["batch"]["attributes"]["choices"].size() == 3);
    CHECK(of_first["batch"]["attributes"]["choices"][0] == "engine");
    for (const nlohmann::json& trial : read["trials"]) CHECK(trial["distributions"] == of_first);
    // The best that may be served.
    const auto json =
        nlohmann::json::parse(autotune({"status", "study.yaml", "--json"}, folder.path()).out);
    double best = 0;
    std::size_t number = 0;
    for (std::size_t i = 0; i < lines.size(); ++i)
        if (read["trials"][i]["state"] == "COMPLETE" &&
            read["trials"][i]["values"][0].get<double>() > best) {
            best = read["trials"][i]["values"][0].get<double>();
            number = i;
        }
    CHECK(read["best"] == number);
    CHECK(json["best_observed"]["configuration"] == lines[number]["configuration"]);
}

TEST_CASE("optuna: several goals, and trials that are not told") {
    const TemporaryFolder folder;
    if (!has_optuna(folder)) return;
    write_measured_study(folder, "{maximize: rate, minimize: watts}", "40 trials");
    const fs::path study = folder.path() / "study.yaml";
    folder.write("study.yaml", replaced(read_file(study), "[round, wide, flat]", "[round, slow]"));
    ChildProcess run({SERVETUNE_PROGRAM, "run", "study.yaml", "--quiet"}, folder.path());
    REQUIRE(comes_true([&] {
        for (const Trial& trial : read_trials(folder.path() / "five kinds"))
            if (!trial.told() && trial.started_at &&
                *trial.configuration.find("shape") == Value(std::string("slow")))
                return true;
        return false;
    }));
    run.signal(SIGKILL);
    run.wait();
    const Ran exported = autotune(
        {"export", "study.yaml", "--format", "optuna", "--output", "optuna.db"}, folder.path());
    INFO(exported.err);
    REQUIRE(exported.code == 0);
    const nlohmann::json read = read_by_optuna(folder, "five kinds");
    CHECK(read["directions"] == nlohmann::json{"MAXIMIZE", "MINIMIZE"});
    const nlohmann::json& last = read["trials"].back();
    CHECK(last["state"] == "RUNNING");
    CHECK(last["values"].is_null());
    CHECK(last["seconds"].is_null());
    CHECK(read["trials"][0]["values"].size() == 2);
    CHECK(read["best"].size() >= 1);
}
