// SPDX-License-Identifier: Apache-2.0
// `autotune compare --gate`, from outside, and the workflows of packaging/ci that call it.
#include "support/autotune.hpp"
#include "support/script.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "base/files.hpp"

#include <nlohmann/json.hpp>

#include <csignal>
#include <sstream>

using namespace servetune;
using namespace servetune::test;

namespace {

using GateJson = nlohmann::json;

/// A folder whose `bin` has an engine `vllm`, which is simengine, and this `autotune`.
struct GateFolder {
    GateFolder() {
        fs::create_directories(folder.path() / "bin");
        fs::create_symlink(SIMENGINE_PROGRAM, folder.path() / "bin/vllm");
        fs::create_symlink(SERVETUNE_PROGRAM, folder.path() / "bin/autotune");
    }

    /// A study of a simulated engine in real time; `options` are simengine's. A time scale of 0.95
    /// is an engine that is 5 % slower.
    void deployed(const std::string& name, const std::string& options,
                  const std::string& more = "") const {
        folder.write(name,
                     "study: served\nmodel: Qwen/Qwen3-8B\nengine: vllm\nworkloads: [{workload: "
                     "chat, use: random, input_tokens: 64, "
                     "output_tokens: 96, requests: 8, ignore_eos: true, arrival: {concurrency: "
                     "8}}]\nobjective: {maximize: "
                     "total_tokens_per_second, limits: [\"success_ratio >= 0.99\"]}\nspace: "
                     "{max_num_seqs: 64}\nothers: default\n"
                     "stress: off\nevaluator: {deploy: {watch: off, warm_up: 1, ready_within: 10s, "
                     "stop_within: "
                     "1s, environment: {SIMENGINE_OPTIONS: "
                     "\"--start-scale 1000 " +
                         options + "\"}}}\n" + more);
    }

    /// A study of two workloads on the cost model.
    void simulated(const std::string& name, const std::string& sequences, const std::string& noise,
                   const std::string& limits = "") const {
        folder.write(
            name,
            "study: simulated\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: vllm\nworkloads:\n"
            "  - {workload: short, use: random, input_tokens: 100, output_tokens: 100, requests: "
            "60, arrival: {concurrency: 4}}\n"
            "  - {workload: long, use: random, input_tokens: 200, output_tokens: 200, requests: "
            "100, arrival: {concurrency: 64}}\n"
            "objective: {maximize: total_tokens_per_second" +
                limits + "}\nspace: {max_num_seqs: " + sequences +
                "}\nothers: default\nevaluator: {simulate: {noise: " + noise + "}}\n");
    }

    [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& command) const {
        const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
        std::vector<std::string> result{"/usr/bin/env",
                                        "PATH=" + (folder.path() / "bin").string() + ":" + path,
                                        "HOME=" + folder.path().string()};
        result.insert(result.end(), command.begin(), command.end());
        return result;
    }
    [[nodiscard]] Ran gate(const std::string& a, const std::string& b, const std::string& directory,
                           const std::vector<std::string>& more = {}) const {
        std::vector<std::string> command{"autotune", "compare",     "--gate",  a,
                                         b,          "--directory", directory, "--quiet"};
        command.insert(command.end(), more.begin(), more.end());
        return ran(words(command), folder.path());
    }
    [[nodiscard]] std::string read(const std::string& file) const {
        return read_file(folder.path() / file);
    }

    /// The JUnit file is what others read: well-formed for Python, and by tests/data/junit.rng.
    void check_junit(const std::string& directory) const {
        const std::string file = (folder.path() / directory / "gate.xml").string();
        const Ran parsed =
            ran({"/usr/bin/env", "python3", "-c",
                 "import sys, xml.etree.ElementTree as t; t.parse(sys.argv[1])", file},
                folder.path());
        INFO(parsed.err << read_file(file));
        CHECK(parsed.code == 0);
        if (fs::exists("/usr/bin/xmllint")) {
            const Ran valid = ran({"/usr/bin/xmllint", "--noout", "--relaxng",
                                   SERVETUNE_SOURCE "/tests/data/junit.rng", file},
                                  folder.path());
            INFO(valid.err);
            CHECK(valid.code == 0);
        } else WARN("skipped: there is no /usr/bin/xmllint: the schema of gate.xml");
    }

    TemporaryFolder folder;
};

/// The shell lines of a workflow: the blocks behind `run: |` of GitHub's, or the list behind
/// `script:` of GitLab's.
std::string script_lines(const std::string& workflow) {
    std::istringstream lines(read_file(fs::path(SERVETUNE_SOURCE) / "packaging/ci" / workflow));
    std::string result;
    std::string start;  // what each line of the block begins with
    for (std::string line; std::getline(lines, line);) {
        const std::string margin(
            line.find_first_not_of(' ') == std::string::npos ? 0 : line.find_first_not_of(' '),
            ' ');
        if (!start.empty() && line.starts_with(start)) result += line.substr(start.size()) + "\n";
        else
            start = line.ends_with(" run: |")    ? margin + "  "
                    : line.ends_with(" script:") ? margin + "  - "
                                                 : "";
    }
    return result;
}

}  // namespace

TEST_CASE("gate: equal servers pass, and one that is 5 % slower fails with its figures") {
    const GateFolder here;
    here.deployed("a.yaml", "--time-scale 1");
    here.deployed("same.yaml", "--time-scale 1");
    here.deployed("slow.yaml", "--time-scale 0.95");
    const Ran same =
        here.gate("a.yaml", "same.yaml", "same", {"--margin", "0.04", "--pairs", "20"});
    INFO(same.out << same.err);
    CHECK(same.code == 0);
    CHECK(has(same.out, "B is not worse by 4 %: maximize total_tokens_per_second on chat: "));
    CHECK(
        has(here.read("same/gate.xml"), " tests=\"3\" failures=\"0\" errors=\"0\" skipped=\"0\""));
    CHECK(has(here.read("same/gate.md"), "## Gate of served: passed\n"));
    here.check_junit("same");

    const Ran slow =
        here.gate("a.yaml", "slow.yaml", "slow", {"--margin", "0.02", "--pairs", "20"});
    INFO(slow.out << slow.err);
    CHECK(slow.code == 1);
    CHECK(has(slow.out, "B is worse: maximize total_tokens_per_second on chat: -"));
    CHECK(has(here.read("slow/gate.xml"), "<failure message=\"-"));
    here.check_junit("slow");
}

TEST_CASE(
    "gate: a candidate that crashes fails with its log, a baseline that crashes is exit code 3") {
    const GateFolder here;
    here.deployed("a.yaml", "--time-scale 20");
    here.deployed("crash.yaml", "--time-scale 20 --fault die_at_requests=4");
    const Ran candidate = here.gate("a.yaml", "crash.yaml", "candidate");
    INFO(candidate.out << candidate.err);
    CHECK(candidate.code == 1);
    CHECK(has(candidate.out, "B fails: crashed_under_load: "));
    const std::string xml = here.read("candidate/gate.xml");
    INFO(xml);
    CHECK(has(xml, " tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"2\"") ==
          has(xml, "name=\"limit "));
    CHECK(has(xml, "<failure message=\"B fails: crashed_under_load: "));
    CHECK(has(here.read("candidate/gate.md"), "```text\n"));
    here.check_junit("candidate");

    const Ran baseline = here.gate("crash.yaml", "a.yaml", "baseline");
    INFO(baseline.out << baseline.err);
    CHECK(baseline.code == 3);
    CHECK(has(baseline.out, "A fails, so there is nothing to compare with: crashed_under_load: "));
    CHECK(has(here.read("baseline/gate.xml"), "<error message=\"A fails, "));
    here.check_junit("baseline");
}

TEST_CASE("gate: killed with -9 it leaves files that say so, and the same command goes on") {
    const GateFolder here;
    here.deployed("a.yaml", "--time-scale 2");
    here.deployed("b.yaml", "--time-scale 2");
    const std::vector<std::string> command{"autotune", "compare", "--gate",  "a.yaml", "b.yaml",
                                           "--margin", "0.1",     "--pairs", "20"};
    std::vector<double> before;
    {
        const ChildProcess process(here.words(command), here.folder.path());
        REQUIRE(comes_to_trial(here.folder.path() / "comparison/b", 2));
        process.signal(SIGKILL);
    }
    CHECK(has(here.read("comparison/gate.md"), "Not finished: "));
    CHECK(has(here.read("comparison/gate.xml"), "<error "));
    here.check_junit("comparison");
    for (const Trial& trial : SqliteJournal::read(here.folder.path() / "comparison/a").trials())
        if (trial.measurement() != nullptr)
            before.push_back(
                trial.measurement()->metrics.find("total_tokens_per_second")->second.value);
    REQUIRE_FALSE(before.empty());
    std::vector<std::string> again = command;
    again.emplace_back("--json");
    const Ran ended = ran(here.words(again), here.folder.path());
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    const std::vector<double> values = GateJson::parse(ended.out)["a"]["values"];
    REQUIRE(values.size() >= before.size());
    CHECK(std::vector<double>(values.begin(), values.begin() + std::ptrdiff_t(before.size())) ==
          before);
    CHECK(has(here.read("comparison/gate.md"), "## Gate of served: passed"));
}

TEST_CASE(
    "gate: the script of GitHub's workflow passes equal studies, and its summary is written") {
    const GateFolder here;
    fs::create_directories(here.folder.path() / "baseline");
    fs::create_directories(here.folder.path() / "candidate");
    here.simulated("baseline/serve.yaml", "256", "0.5%");
    here.simulated("candidate/serve.yaml", "256", "0.5%");
    const std::string lines = script_lines("github-gate.yml");
    INFO(lines);
    REQUIRE(has(lines, "autotune compare --gate "));
    const auto run = [&] {
        return ran(
            here.words({"BASELINE=serve.yaml", "CANDIDATE=serve.yaml", "MARGIN=0.03", "PAIRS=20",
                        "GITHUB_STEP_SUMMARY=summary.md", "sh", "-e", "-c", lines}),
            here.folder.path());
    };
    const Ran passed = run();
    INFO(passed.out << passed.err);
    CHECK(passed.code == 0);
    CHECK(has(here.read("summary.md"), "## Gate of simulated: passed"));
    here.check_junit("gate");
    here.simulated("candidate/serve.yaml", "8", "0.5%");
    CHECK(run().code == 1);
}

TEST_CASE("gate: the script of GitLab's job fetches the target branch and compares with it") {
    if (!fs::exists("/usr/bin/git")) {
        WARN("skipped: there is no git");
        return;
    }
    const GateFolder here;
    here.simulated("serve.yaml", "256", "0.5%");
    const auto shell = [&](const std::string& lines, const std::string& in = ".") {
        return ran(here.words({"CI_MERGE_REQUEST_TARGET_BRANCH_NAME=trunk", "BASELINE=serve.yaml",
                               "CANDIDATE=serve.yaml", "MARGIN=0.03", "PAIRS=20", "sh", "-e", "-c",
                               "cd " + in + "\n" + lines}),
                   here.folder.path());
    };
    const Ran made = shell(
        "git init -q -b trunk there; cp serve.yaml there; cd there; git add .; git -c user.name=a "
        "-c user.email=a@b commit -qm a; "
        "cd ..; git clone -q there here");
    INFO(made.err);
    REQUIRE(made.code == 0);
    const std::string lines = script_lines("gitlab-gate.yml");
    INFO(lines);
    REQUIRE(has(lines, "autotune compare --gate "));
    const Ran passed = shell(lines, "here");
    INFO(passed.out << passed.err);
    CHECK(passed.code == 0);
    here.check_junit("here/gate");
    here.simulated("here/serve.yaml", "8",
                   "0.5%");  // what the merge request changes; the runner's folder is used again
    const Ran failed = shell(lines, "here");
    INFO(failed.out << failed.err);
    CHECK(failed.code == 1);
}
