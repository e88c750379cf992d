// SPDX-License-Identifier: Apache-2.0
// What is written for a cluster, as it stands in tests/data/artefacts. `scripts/test-artefacts`
// gives the same files to a real API server.
#include "handover/artefact.hpp"

#include "support/deployment_models.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

/// Compares with the file of that name. `SERVETUNE_WRITE_GOLDEN=1` writes it: look at what changed.
void check_golden(const std::string& name, const DeploymentModel& model) {
    const std::filesystem::path file =
        std::filesystem::path(SERVETUNE_SOURCE "/tests/data/artefacts") / name;
    const std::string text = artefact_of("kubernetes", model).text;
    if (std::getenv("SERVETUNE_WRITE_GOLDEN") != nullptr)
        write_file(file, text);  // NOLINT(concurrency-mt-unsafe)
    INFO(name);
    CHECK(text == read_file(file));
}

}  // namespace

TEST_CASE("artefacts: what is written for a cluster stands in its golden file") {
    check_golden("kubernetes-vllm-plain.yaml", plain_deployment());
    check_golden("kubernetes-vllm-hard.yaml", hard_deployment());
}
