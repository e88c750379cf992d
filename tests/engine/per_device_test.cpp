// SPDX-License-Identifier: Apache-2.0
// Layouts of several sizes: how many devices they take, and what makes them comparable.
#include "engine/per_device.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

StudyFile layouts_study(const std::string& engine, const std::string& space,
                        const std::string& more = "",
                        const std::string& goal = "total_tokens_per_second") {
    static const TemporaryFolder folder;
    return load_study(
        folder.write(
            "study.yaml",
            "study: layouts\nmodel: Qwen/Qwen3-8B\nhardware: {device: h100-sxm, count: 8, "
            "price_per_hour: 24}\n"
            "engine: " +
                engine +
                "\nworkloads: [{use: random, requests: 40}]\nobjective: {maximize: " + goal +
                "}\nothers: default\nspace: " + space + "\nevaluator: {simulate: {}}\n" + more),
        Catalogue(search_spaces));
}

std::int64_t devices_with(const StudyFile& study, const Assignment& set) {
    const SearchSpace space(study.composition->parameters(), study.composition->constraints());
    return study.composition->devices_of(space.completed(set));
}

}  // namespace

TEST_CASE(
    "per device: a layout takes the product of its factors, but for those that share devices") {
    const StudyFile vllm = layouts_study(
        "vllm",
        "{tensor_parallel_size: {choice: [1, 2, 4]}, pipeline_parallel_size: {choice: [1, 2]}}");
    CHECK(devices_with(vllm, {}) == 1);
    CHECK(devices_with(vllm, {{"tensor_parallel_size", Value(std::int64_t{4})},
                              {"pipeline_parallel_size", Value(std::int64_t{2})}}) == 8);
    const StudyFile fixed = layouts_study("vllm", "{max_num_seqs: {choice: [64, 128]}}",
                                          "arguments: [--tensor-parallel-size=2]\n");
    CHECK(devices_with(fixed, {}) == 2);
    const StudyFile short_form = layouts_study(
        "sglang", "{max_running_requests: {choice: [64, 128]}}", "arguments: [--tp, \"4\"]\n");
    CHECK(devices_with(short_form, {}) == 4);  // a spelling of its own
    const StudyFile sglang = layouts_study("sglang",
                                           "{tp_size: {choice: [1, 4]}, dp_size: {choice: [1, 4]}, "
                                           "enable_dp_attention: {bool: {}, default: false}}");
    CHECK(devices_with(sglang, {{"tp_size", Value(std::int64_t{4})},
                                {"dp_size", Value(std::int64_t{1})}}) == 4);
    CHECK(devices_with(sglang, {{"tp_size", Value(std::int64_t{4})},
                                {"dp_size", Value(std::int64_t{4})},
                                {"enable_dp_attention", Value(true)}}) == 4);
}

TEST_CASE("per device: rates are divided, prices multiplied, of every workload") {
    Metrics metrics{{"output_tokens_per_second", {1000, 10}},
                    {"output_tokens_per_second@chat", {500}},
                    {"latency_mean_seconds", {2}}};
    add_per_device(metrics, 4, 3);
    CHECK(metrics.at("output_tokens_per_second_per_gpu").value == 250);
    CHECK(metrics.at("output_tokens_per_second_per_gpu").standard_error == 2.5);
    CHECK(metrics.at("output_tokens_per_second_per_gpu@chat").value == 125);
    CHECK(metrics.at("usd_per_million_output_tokens").value == Approx(4 * 3 / 3600.0 / 1000 * 1e6));
    CHECK(metrics.at("usd_per_million_output_tokens@chat").value ==
          Approx(2 * metrics.at("usd_per_million_output_tokens").value));
    CHECK_FALSE(metrics.contains("latency_mean_seconds_per_gpu"));
    Metrics unpriced{{"total_tokens_per_second", {1000}}};
    add_per_device(unpriced, 1, {});
    CHECK(unpriced.at("total_tokens_per_second_per_gpu").value == 1000);
    CHECK_FALSE(unpriced.contains("usd_per_million_tokens"));
}

TEST_CASE(
    "per device: a study in which larger layouts look better says so, and one GPU's worth can be "
    "its goal") {
    const std::string two_sizes = "{tensor_parallel_size: {choice: [1, 8]}}";
    const StudyFile rate = layouts_study("vllm", two_sizes);
    REQUIRE(rate.warnings.size() == 1);
    CHECK(has(rate.warnings.front(), "maximize total_tokens_per_second_per_gpu"));
    CHECK(layouts_study("vllm", two_sizes, "", "total_tokens_per_second_per_gpu").warnings.empty());
    CHECK(layouts_study("vllm", "{max_num_seqs: {choice: [64, 128]}}").warnings.empty());

    const StudySetup setup =
        set_up(layouts_study("vllm", two_sizes, "", "total_tokens_per_second_per_gpu"));
    const auto measured = [&](std::int64_t size) {
        const Outcome outcome = setup.evaluator->evaluate(
            setup.problem->space.completed({{"tensor_parallel_size", Value(size)}}), {});
        REQUIRE(std::holds_alternative<Measurement>(outcome));
        return std::get<Measurement>(outcome).metrics;
    };
    const Metrics one = measured(1);
    const Metrics eight = measured(8);
    CHECK(eight.at("total_tokens_per_second").value > one.at("total_tokens_per_second").value);
    CHECK(eight.at("total_tokens_per_second_per_gpu").value <
          one.at("total_tokens_per_second_per_gpu").value);
    CHECK(eight.at("usd_per_million_tokens").value ==
          Approx(3.0 * 8 / 3600 / eight.at("total_tokens_per_second").value *
                 1e6));  // 24 dollars an hour for eight
}

TEST_CASE("per device: dollars want a price, which is that of all devices that the engine sees") {
    static const TemporaryFolder folder;
    const auto study = [&](const std::string& machine, const std::string& evaluator,
                           const std::string& goal) {
        return load_study(
            folder.write(
                "priced.yaml",
                "study: priced\nmodel: Qwen/Qwen3-8B\nhardware: " + machine +
                    "\nengine: vllm\nworkloads: [{use: random, requests: 40}]\nobjective: {" +
                    goal +
                    "}\nothers: default\nspace: {tensor_parallel_size: {choice: [1, 4]}}\n"
                    "evaluator: " +
                    evaluator + "\n"),
            Catalogue(search_spaces));
    };
    const std::string four = "{deploy: {gpus: \"0,1,2,3\"}}";
    CHECK(study("{device: h100-sxm, price_per_hour: 8}", four,
                "minimize: usd_per_million_output_tokens")
              .machine.usd_per_device_hour == 2);
    CHECK(study("{device: h100-sxm, count: 8, price_per_hour: 8}", four,
                "minimize: usd_per_million_output_tokens")
              .machine.usd_per_device_hour == 1);
    const auto refused = [&](const std::string& machine, const std::string& evaluator,
                             const std::string& goal) {
        return message_of<ParseError>(
            [&] { (void)set_up(study(machine, evaluator, goal), folder.path() / "s"); });
    };
    CHECK(has(
        refused("{device: h100-sxm, count: 4}", four, "minimize: usd_per_million_output_tokens"),
        "needs a price"));
    CHECK(refused("{device: h100-sxm, count: 4}", "{attach: {url: \"http://127.0.0.1:1\"}}",
                  "maximize: output_tokens_per_second_per_gpu") != "");
    const StudyFile looks =
        study("{device: h100-sxm, count: 4}", four,
              "maximize: sustained_requests_per_second_per_gpu, limits: [\"ttft_p95 <= 500ms\"]");
    CHECK(looks.workloads.front().arrival.kind == Arrival::Kind::largest_rate);
}

TEST_CASE(
    "objective: what stands behind an @ is a workload of the study, and that of a single one is "
    "its plain figure") {
    static const TemporaryFolder folder;
    const auto study = [&](const std::string& workloads, const std::string& objective) {
        return set_up(load_study(
                          folder.write(
                              "at.yaml",
                              "study: at\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: "
                              "vllm\nworkloads: [" +
                                  workloads + "]\nobjective: {" + objective +
                                  "}\nothers: default\nspace: {max_num_seqs: {choice: [64, 128]}}\n"
                                  "evaluator: {simulate: {}}\n"),
                          Catalogue(search_spaces)))
            .file.objective;
    };
    const std::string one = "{workload: chat, use: random, requests: 40}";
    const Objective plain =
        study(one, "maximize: output_tokens_per_second@chat, limits: [\"ttft_p95@chat <= 500ms\"]");
    CHECK(plain.leading().metric == "output_tokens_per_second");
    CHECK(plain.limits.front().metric == "time_to_first_token_p95_seconds");
    const std::string two = one + ", {workload: code, use: random, requests: 40, input_tokens: 99}";
    CHECK(study(two, "maximize: output_tokens_per_second, limits: [\"ttft_p95@code <= 500ms\"]")
              .limits.front()
              .metric == "time_to_first_token_p95_seconds@code");
    const auto refused = [&](const std::string& objective) {
        return message_of<ParseError>([&] { (void)study(two, objective); });
    };
    CHECK(has(refused("maximize: output_tokens_per_second, limits: [\"ttft_p95@chta <= 500ms\"]"),
              "names no workload of the study; it has: chat"));
    CHECK(
        has(refused("maximize: output_tokens_per_second@chta"), "names no workload of the study"));
}
