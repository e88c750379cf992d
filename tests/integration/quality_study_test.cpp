// SPDX-License-Identifier: Apache-2.0
// A deployed study that compares what its configurations answer.
#include "base/files.hpp"
#include "support/deployed_study.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

using namespace servetune;
using namespace servetune::test;

TEST_CASE("quality: a deployed study asks the default and each type once, and says the drop") {
    DeployedStudy::Text text;
    text.space =
        "{max_num_seqs: {choice: [4, 32], default: 4}, kv_cache_dtype: {choice: [auto, fp8], "
        "default: auto}}";
    text.more = "budget: {trials: 4}\nquality: {}\n";
    const DeployedStudy study(text);
    const Ran run = study.run();
    INFO(run.err);
    REQUIRE(run.code == 0);
    for (const Trial& trial : study.trials())
        if (const Measurement* measured = trial.measurement())
            CHECK(measured->metrics.contains("quality_drop"));
    const auto kept = nlohmann::json::parse(read_file(study.directory() / "quality.json"));
    CHECK(kept.at("found").size() == 2);
    CHECK(kept.at("found").at("").at("answers").size() == 24);
    CHECK(study.left().empty());
}
