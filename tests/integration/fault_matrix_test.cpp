// SPDX-License-Identifier: Apache-2.0
// Whole studies, run by the program from outside, in which one of three configurations goes wrong:
// what a person reads of it, that nothing of it is left, that the study goes on to its end, and
// that its recommendation is that of the study without the fault.
#include "support/deployed_study.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

#include <nlohmann/json.hpp>

using namespace servetune;
using namespace servetune::test;

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

const std::string middle = "--max-num-seqs=3";  // the second trial: one before it, one after it

/// A fault of simengine. `kind` empty: it is measured all the same; "refused": measured, and not
/// believed.
struct Fault {
    std::string name;
    std::string kind;
    std::vector<std::string> message{};  ///< parts of it
};

/// Runs the study with the fault; the end of it is the same as without.
void goes_on(DeployedStudy& study, const Fault& fault) {
    INFO(fault.name);
    study.set_faults({{middle, fault.name}});
    const Ran run = study.run({"--json"});
    INFO(run.err);
    REQUIRE(run.code == 0);
    const std::string left = study.left();
    INFO(left);
    CHECK(left.empty());
    const Json report = Json::parse(run.out);
    CHECK(Json::parse(read_file(study.directory() / "report.json")) == report);
    CHECK(report["stop_reason"] == "strategy_finished");
    CHECK(report["pending"].empty());
    CHECK(report["recommended"]["command"] == best_command);
    const bool failed = !fault.kind.empty() && fault.kind != "refused";
    CHECK(report["trials"]["told"] == 3);
    CHECK(report["trials"]["failed"] == (failed ? 1 : 0));
    CHECK(report["trials"]["unsound"] == (fault.kind == "refused" ? 1 : 0));
    REQUIRE(study.engines().size() == 3);  // no trial was tried twice

    const Ran status = ran(study.words("status"), study.folder());
    CHECK(status.code == 0);
    CHECK(has(status.out, std::string("deployed: ") +
                              (failed ? "2 trials measured, 1" : "3 trials measured, none") +
                              " failed\n"));
    CHECK(has(status.out, "\n  " + best_command + "\n"));

    std::string says;
    if (failed) {
        REQUIRE(report["failures"].size() == 1);
        const Json& failure = report["failures"][0];
        CHECK(failure["kind"] == fault.kind);
        CHECK(failure["trial"] == 1);
        CHECK(failure["configuration"]["max_num_seqs"] == 3);
        CHECK(failure["log"] == (study.directory() / "trials/1/engine.log").string());
        says = failure["message"];
        CHECK(has(run.err, fault.kind + ": " + says.substr(0, 60)));  // and while it ran
    } else if (fault.kind == "refused") {
        REQUIRE(report["refused"].size() == 1);
        CHECK(report["refused"][0]["configuration"]["max_num_seqs"] == 3);
        says = report["refused"][0]["reason"];
    } else CHECK(report["refused"].empty());
    INFO(says);
    for (const std::string& part : fault.message) CHECK(has(says, part));
    CHECK(fs::file_size(study.directory() / "trials/1/engine.log") <= 16U << 20U);
}

void all_go_on(const std::vector<Fault>& faults) {
    for (const Fault& fault : faults) {
        DeployedStudy study;
        goes_on(study, fault);
    }
}

}  // namespace

TEST_CASE("faults: a study without one, the measure of the others") {
    DeployedStudy study;
    study.set_faults({});
    const Ran run = study.run({"--json"});
    INFO(run.err);
    REQUIRE(run.code == 0);
    const Json report = Json::parse(run.out);
    CHECK(report["recommended"]["command"] == best_command);
    CHECK(report["recommended"]["gain"]["value"].get<double>() >
          0);  // how much depends on what else the machine does
    CHECK(report["trials"] == Json({{"told", 3}, {"failed", 0}, {"unsound", 0}}));
    CHECK(study.left().empty());
    CHECK(study.engines().size() == 3);
}

TEST_CASE("faults at the start: never ready, exits, memory, wrong answers") {
    all_go_on({
        {"never_ready",
         "not_ready_in_time",
         {"vllm did not serve within 3 s; GET /health: Failed to connect to ",
          "; its last line: "}},
        {"exit_at_once",
         "other",
         {"vllm ended with exit code 1 after ", "before it served; its last line: RuntimeError"}},
        {"exit_at_load=137",
         "other",
         {"vllm ended with exit code 137 (KILL) after ", "before it served; its last line: "}},
        {"oom_then_hang",
         "out_of_memory",
         {"vllm said why it fails and was still there when its time was over: ",
          "torch.OutOfMemoryError: CUDA out of memory"}},
        {"wrong_model=some/other",
         "wrong_model",
         {"the server was to serve Qwen/Qwen3-8B, it serves some/other"}},
        {"wrong_json",
         "load_test_failed",
         {"a first POST /v1/chat/completions is answered with what is no JSON: {"}},
    });
}

TEST_CASE("faults under load: it dies, it stalls") {
    // 96 tokens are the warm-up's, 32 * 96 the load's: 1017 is at 30 %.
    all_go_on({
        {"die_at_tokens=2500",
         "crashed_under_load",
         {" under load", "EngineCore encountered a fatal error"}},
        {"stall_mid_stream=60", "hung", {"no request of 32 succeeded: "}},
        {"stall_mid_stream=2500", "hung", {" requests stalled, and nothing moved meanwhile"}},
    });
}

TEST_CASE("faults that are borne: late, slow to go, unwilling, talkative") {
    all_go_on({{"answer_503=0.6", ""},
               {"listen_late=0.6", ""},
               {"stop_slowly=0.4", ""},
               {"ignore_term", ""},
               {"grandchild_keeps_port", ""},
               {"flood_log=50000000", ""}});
}
