// SPDX-License-Identifier: Apache-2.0
// `roles` of a study with the engines that ship: its space, its commands.
#include "support/test.hpp"

#include "servetune/error.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

StudyFile study_of_roles(const TemporaryFolder& folder, const std::string& engine,
                         const std::string& roles, const std::string& more = "",
                         const std::string& hardware = "{device: h100-sxm, count: 4}") {
    return load_study(
        folder.write(
            "s.yaml",
            "study: s\nmodel: Qwen/Qwen3-8B\nhardware: " + hardware + "\nengine: " + engine +
                "\nworkloads: [{use: random, input_tokens: 2000, output_tokens: 200, requests: 60, "
                "arrival: {rate: 8}}]\nobjective: {maximize: total_tokens_per_second}\nothers: "
                "default\n" +
                roles + more + "evaluator: deploy\n"),
        shipped_catalogue);
}

constexpr const char* vllm_roles =
    "roles: {prefill: {count: [1, 2], max_num_batched_tokens: [8192, 16384]}, decode: {count: [1, "
    "2]}}\n";

Configuration set_apart(const SearchSpace& space, Assignment more = {}) {
    more["roles"] = "apart";
    return space.changed(space.default_configuration(), more);
}

}  // namespace

TEST_CASE("study: roles of vLLM and SGLang give the commands of their documentation") {
    const TemporaryFolder folder;
    {
        const StudyFile study = study_of_roles(folder, "vllm", vllm_roles);
        const SearchSpace space(study.composition->parameters(), study.composition->constraints());
        CHECK(space.default_configuration().text() == "roles=together");
        const Configuration apart =
            set_apart(space, {{"prefill.count", std::int64_t{2}},
                              {"prefill.max_num_batched_tokens", std::int64_t{16384}}});
        CHECK(study.composition->render(apart, {"m", "10.0.0.1", 8001, 9001}, "prefill").text() ==
              "VLLM_NIXL_SIDE_CHANNEL_HOST=10.0.0.1 VLLM_NIXL_SIDE_CHANNEL_PORT=9001 vllm serve m "
              "--host 10.0.0.1 --port 8001 "
              "--max-num-batched-tokens=16384 --kv-transfer-config "
              "'{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_producer\"}'");
        CHECK(study.composition->render(apart, {"m"}, "decode").text() ==
              "vllm serve m --kv-transfer-config "
              "'{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_consumer\"}'");
        CHECK(study.composition
                  ->render_router(apart, {"m", "0.0.0.0", 80, 9009},
                                  {{"prefill", {{"http://a:1", 1}, {"http://b:2", 2}}},
                                   {"decode", {{"http://c:3", 3}}}})
                  .text() ==
              "vllm-router --vllm-pd-disaggregation --prefill http://a:1 --prefill http://b:2 "
              "--decode http://c:3 --host 0.0.0.0 "
              "--port 80 --prometheus-port 9009");
    }
    const StudyFile study =
        study_of_roles(folder, "sglang", "roles: {prefill: {count: 1}, decode: {count: 1}}\n");
    const SearchSpace space(study.composition->parameters(), study.composition->constraints());
    const Configuration apart = set_apart(space);
    CHECK(study.composition->render(apart, {"m", "h", 1, 8998}, "prefill").text() ==
          "python3 -m sglang.launch_server --model-path m --host h --port 1 --disaggregation-mode "
          "prefill --disaggregation-bootstrap-port "
          "8998");
    CHECK(study.composition->render(apart, {"m"}, "decode").text() ==
          "python3 -m sglang.launch_server --model-path m --disaggregation-mode decode");
    CHECK(study.composition
              ->render_router(apart, {"m", "h", 80, 9},
                              {{"prefill", {{"http://a:1", 8998}}}, {"decode", {{"http://c:3"}}}})
              .text() ==
          "python3 -m sglang_router.launch_router --pd-disaggregation --prefill http://a:1 8998 "
          "--decode http://c:3 --host h "
          "--port 80 --prometheus-port 9");
}

TEST_CASE("study: roles that cannot be are refused with their line") {
    const TemporaryFolder folder;
    const auto refusal = [&](const std::string& engine, const std::string& roles,
                             const std::string& more = "",
                             const std::string& hardware = "{device: h100-sxm, count: 4}") {
        return message_of<Error>(
            [&] { (void)study_of_roles(folder, engine, roles, more, hardware); });
    };
    CHECK(has(refusal("vllm", "roles: {encode: {count: 1}}\n"), "s.yaml:"));
    CHECK(has(refusal("vllm", "roles: {encode: {count: 1}}\n"),
              "has no role 'encode'; it has prefill, decode"));
    CHECK(has(refusal("vllm", "roles: {decode: {count: 0}}\n"), "whole numbers of servers from 1"));
    CHECK(has(refusal("vllm", "roles: {decode: {max_num_sequences: 1}}\n"), "max_num_seqs"));
    CHECK(has(refusal("vllm", "roles: {decode: {max_num_seqs: 0}}\n"), "is outside the range"));
    CHECK(has(refusal("vllm", vllm_roles, "", "h100-sxm"), "write `hardware: {count: N}`"));
    CHECK(has(refusal("[vllm, sglang]", vllm_roles), "one engine wanted"));
    CHECK(
        has(refusal("llama.cpp", vllm_roles), "does not say how it runs prefill and decode apart"));
    CHECK(has(refusal("vllm", vllm_roles, "arguments: [--kv-transfer-config, \"{}\"]\n"),
              "this study sets roles"));
}

TEST_CASE("study: roles are refused in jobs, which have no address before they start") {
    const TemporaryFolder folder;
    folder.write(
        "pod.yaml",
        "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: engine, image: org/engine:1}]}\n");
    const auto refusal = [&](const std::string& deploy) {
        const fs::path study = folder.write(
            "d.yaml",
            "study: s\nmodel: Qwen/Qwen3-8B\nhardware: {device: h100-sxm, count: 4}\nengine: vllm"
            "\nworkloads: [{use: random, input_tokens: 20, output_tokens: 2, requests: 6, "
            "arrival: {rate: 8}}]\n"
            "objective: {maximize: total_tokens_per_second}\nothers: default\n"
            "roles: {prefill: {count: 1}, decode: {count: 1}}\nevaluator: {deploy: {" +
                deploy + "}}\n");
        return message_of<Error>([&] { (void)load_study(study, shipped_catalogue); });
    };
    for (const char* jobs : {"kubernetes: {template: pod.yaml}",
                             "ray: {address: \"http://head:8265\"}", "slurm: {listen: 0.0.0.0}"}) {
        INFO(jobs);
        CHECK(has(refusal(jobs), "roles are several servers, which `deploy` starts"));
    }
    CHECK_FALSE(has(refusal("ssh: {host: h}, gpus: \"0,1\""), "roles are several servers"));
}
