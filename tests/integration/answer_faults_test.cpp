// SPDX-License-Identifier: Apache-2.0
// Engines that answer fast and badly: they break answers off, or send text where no client reads
// it.
#include "base/files.hpp"
#include "support/deployed_study.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

using namespace servetune;
using namespace servetune::test;

TEST_CASE(
    "answer faults: an engine that breaks answers off, or whose times nobody sees, does not win") {
    DeployedStudy::Text text;
    text.space = "{max_num_seqs: {choice: [4, 32, 48], default: 4}}";
    text.objective =
        "{maximize: total_tokens_per_second, limits: [\"success_ratio >= 0.99\", \"ttft_p95 <= "
        "60s\"]}";
    text.more = "audit: report\nbudget: {trials: 6}\n";  // the limits alone
    const DeployedStudy study(text);
    study.set_faults(
        {{"--max-num-seqs=32", "abort --fault every=3"}, {"--max-num-seqs=48", "unread_text"}});
    const Ran run = study.run({"--json"});
    INFO(run.out << run.err);
    const auto report = nlohmann::json::parse(run.out);
    CHECK(report.at("recommended").at("keep_default") == true);
    CHECK(read_file(study.directory() / "run.log").find("not_finished (abort)") !=
          std::string::npos);
    std::map<std::int64_t, Measurement> measured;
    for (const Trial& trial : study.trials())
        if (const Measurement* measurement = trial.measurement())
            measured[std::get<std::int64_t>(*trial.configuration.find("max_num_seqs"))] =
                *measurement;
    REQUIRE(measured.size() == 3);
    CHECK(measured.at(32).metrics.at("success_ratio").value < 0.8);
    CHECK(measured.at(48).metrics.at("success_ratio").value == 1);
    CHECK_FALSE(measured.at(48).metrics.contains("time_to_first_token_p95_seconds"));
    const auto said = [&](std::int64_t seqs, std::string_view id) {
        std::string cause;
        for (const Finding& finding : measured.at(seqs).validity.findings)
            if (finding.id == id) cause += finding.cause;
        return cause;
    };
    CHECK(said(32, "complete").find("finish reason 'abort'") != std::string::npos);
    CHECK(said(48, "unseen").find("text in the field 'thoughts'") != std::string::npos);
    CHECK(measured.at(48).validity.verdict == Verdict::unsound);
}
