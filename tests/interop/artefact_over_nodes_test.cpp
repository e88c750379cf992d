// SPDX-License-Identifier: Apache-2.0
// A study in Kubernetes whose engine may be spread over nodes: what it refuses, and what its winner
// is written as.
#include "interop/artefact.hpp"
#include "servetune/error.hpp"
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

StudySetup over_nodes(const TemporaryFolder& folder, const std::string& more = "") {
    folder.write("pod.yaml",
                 "kind: Pod\nspec: {containers: [{name: engine, image: org/engine:1}]}\n");
    return set_up(load_study(
        folder.write(
            "s.yaml",
            "study: s\nmodel: org/m\nengine: vllm\nhardware: {device: h100-sxm, count: "
            "16}\nothers: default\n"
            "space: {tensor_parallel_size: {choice: [8, 16]}}\nworkloads: [{use: random}]\n"
            "objective: {maximize: total_tokens_per_second}\n"
            "evaluator: {deploy: {kubernetes: {template: pod.yaml}" +
                more + "}}\n"),
        shipped_catalogue));
}

}  // namespace

TEST_CASE(
    "over nodes: several trials at once are refused, for each could hold what the others wait "
    "for") {
    const TemporaryFolder folder;
    CHECK(has(message_of<UsageError>([&] { (void)over_nodes(folder, ", workers: 2"); }),
              "give `deploy` `workers: 1`"));
}

TEST_CASE(
    "over nodes: a winner of two nodes is written for two, or refused by what starts it on one") {
    const TemporaryFolder folder;
    const StudySetup setup = over_nodes(folder);
    const SearchSpace& space = setup.problem->space;
    const auto written = [&](ArtefactKind kind, std::int64_t tensor) {
        return artefact_of(
                   kind, setup,
                   space.changed(space.default_configuration(), {{"tensor_parallel_size", tensor}}),
                   {})
            .text;
    };
    CHECK(has(written(ArtefactKind::lws, 16), "\n    size: 2\n"));
    CHECK(has(written(ArtefactKind::lws, 16), "{nvidia.com/gpu: 8}"));
    CHECK(has(written(ArtefactKind::lws, 8), "\n    size: 1\n"));
    CHECK(has(written(ArtefactKind::kubernetes, 8), "{nvidia.com/gpu: 8}"));
    CHECK(
        has(message_of<UsageError>([&] { (void)written(ArtefactKind::kubernetes, 16); }),
            "--as kubernetes starts an engine on one machine, not on 2: --as lws or --as dynamo"));
}
