// SPDX-License-Identifier: Apache-2.0
// The mean power of a load test from samples, and what a token takes.
#include "host/power_tool.hpp"
#include "servetune/detail/host/machine_watch.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"
#include "trial/metric_text.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

std::vector<PowerSample> each_two_seconds(const std::vector<double>& watts, double first = 1) {
    std::vector<PowerSample> result;
    for (const double one : watts) result.push_back({first + 2 * double(result.size()), one});
    return result;
}

PowerUse power_use_of(const std::vector<PowerSample>& samples, double begin, double end) {
    const auto answer = power_between(samples, begin, end);
    INFO((std::holds_alternative<std::string>(answer) ? std::get<std::string>(answer) : ""));
    REQUIRE(std::holds_alternative<PowerUse>(answer));
    return std::get<PowerUse>(answer);
}

std::string unknown_power(const std::vector<PowerSample>& samples, double begin, double end) {
    const auto answer = power_between(samples, begin, end);
    return std::holds_alternative<std::string>(answer) ? std::get<std::string>(answer) : "";
}

}  // namespace

TEST_CASE(
    "power: the mean is weighted by time, the peak is the largest sample, and only the load test "
    "counts") {
    const PowerUse even = power_use_of(each_two_seconds({300, 300, 300, 300, 300}), 0, 10);
    CHECK(even.mean_watts == Approx(300));
    CHECK(even.peak_watts == Approx(300));
    CHECK(even.standard_error_watts == 0);
    CHECK(even.samples == 5);

    // At 1, 3, 5, 7, 9 and, an answer that came late, 12: it stands for 10.5 .. 13.
    std::vector<PowerSample> late = each_two_seconds({100, 100, 100, 100, 100});
    late.push_back({12, 700});
    const PowerUse uneven = power_use_of(late, 0, 13);
    CHECK(uneven.mean_watts == Approx((10.5 * 100 + 2.5 * 700) / 13));
    CHECK(uneven.peak_watts == 700);

    // Idle before and after is none of the load test's.
    const PowerUse inside =
        power_use_of(each_two_seconds({60, 60, 400, 400, 400, 400, 400, 60, 60}), 4, 14);
    CHECK(inside.mean_watts == Approx(400));
    CHECK(inside.samples == 5);
}

TEST_CASE(
    "power: its standard error is that of a mean of samples, larger where neighbours are alike") {
    const PowerUse turns =
        power_use_of(each_two_seconds({310, 290, 310, 290, 310, 290, 310, 290}), 0, 16);
    CHECK(turns.mean_watts == Approx(300));
    CHECK(turns.standard_error_watts == Approx(std::sqrt(8 * 100 / 7.0 / 8)));
    const PowerUse halves =
        power_use_of(each_two_seconds({310, 310, 310, 310, 290, 290, 290, 290}), 0, 16);
    CHECK(halves.mean_watts == Approx(300));
    // r = (6 - 1) / 8: as good as 8 (1 - r) / (1 + r) samples.
    CHECK(halves.standard_error_watts == Approx(std::sqrt(8 * 100 / 7.0 / (8 * 0.375 / 1.625))));
}

TEST_CASE("power: too few samples, or too little of the time, give no figure") {
    CHECK(unknown_power(each_two_seconds({300, 300, 300, 300}), 0, 8) ==
          "4 samples of the power in 8.0 s, 5 wanted");
    CHECK(unknown_power({}, 0, 8) == "0 samples of the power in 8.0 s, 5 wanted");
    // The tool died after half of the load test.
    CHECK(unknown_power(each_two_seconds({300, 300, 300, 300, 300}), 0, 20) ==
          "5 samples of the power in 20.0 s cover 52 % of it, 80 % wanted");
    std::vector<PowerSample> gap = each_two_seconds({300, 300, 300, 300, 300});
    for (const PowerSample& one : each_two_seconds({900, 900, 900, 900, 900}, 21))
        gap.push_back(one);
    CHECK(unknown_power(gap, 0, 30).find("10 samples of the power in 30.0 s cover 70 % of it") ==
          0);
    CHECK(power_use_of(gap, 0, 10).mean_watts == Approx(300));
    CHECK(power_use_of(gap, 20, 30).mean_watts == Approx(900));
}

TEST_CASE("power: joules per token are mean power by the rate of tokens, with the errors of both") {
    Metrics metrics{{"output_tokens_per_second", {2000, 40}}, {"total_tokens_per_second", {5000}}};
    add_power(metrics,
              {.mean_watts = 1000, .peak_watts = 1200, .standard_error_watts = 15, .samples = 20});
    CHECK(metrics.at("power_mean_watts").value == 1000);
    CHECK(metrics.at("power_mean_watts").standard_error == 15);
    CHECK(metrics.at("power_peak_watts").value == 1200);
    CHECK_FALSE(metrics.at("power_peak_watts").standard_error);
    CHECK(metrics.at("joules_per_output_token").value == Approx(0.5));
    CHECK(metrics.at("joules_per_output_token").standard_error.value_or(0) == Approx(0.5 * 0.025));
    CHECK(metrics.at("joules_per_total_token").value == Approx(0.2));
    CHECK(metrics.at("joules_per_total_token").standard_error.value_or(0) == Approx(0.2 * 0.015));
    for (const std::string& name : power_metrics()) {
        CHECK(metrics.contains(name));
        CHECK(is_power_metric(name + "@chat"));
        CHECK(less_is_better(name));
    }
    CHECK_FALSE(is_power_metric("output_tokens_per_second"));

    Metrics no_rate;
    add_power(no_rate, {.mean_watts = 0});
    CHECK(no_rate.size() == 2);
}

TEST_CASE("power: what AMD's tools print is read in the forms that their versions have") {
    const std::string two =
        R"([{"gpu": 0, "power": {"socket_power": {"value": 512, "unit": "W"}, "power_management": "ENABLED"}},
{"gpu": 1, "power": {"socket_power": {"value": 130.5, "unit": "W"}}}])";
    const DeviceWatts both{{"0", 512}, {"1", 130.5}};
    CHECK(read_amd_smi(two) == both);
    CHECK(read_amd_smi("WARNING: user is missing the render group\n" + two) == both);
    CHECK(read_amd_smi("{\"gpu_data\": " + two + "}") == both);
    CHECK(read_amd_smi(
              R"([{"gpu": 0, "power": {"socket_power": "N/A"}}, {"gpu": 1, "power": "N/A"}])") ==
          DeviceWatts{{"0", std::nullopt}, {"1", std::nullopt}});
    for (const char* nothing : {"", "[]", "{}", "[7]", "{", "{\"gpu_data\": 7}",
                                "[{\"gpu\": \"x\"}]", "ERROR: no driver", "{\"card\": {}}"}) {
        INFO(nothing);
        CHECK_FALSE(read_amd_smi(nothing));
    }
}

TEST_CASE("power: of a Jetson's rails the input of the module counts, else those that make it up") {
    const auto line = [](const std::string& rails) {
        return "11-25-2026 10:00:32 RAM 4208/125773MB (lfb 31x4MB) CPU [1%@972,off] GR3D_FREQ "
               "@[0,0,0] VIC off cpu@34.4C " +
               rails + "\n";
    };
    const auto watts_of = [&](const std::string& text) {
        const auto told = read_tegrastats(text);
        return told ? told->at("0").value_or(-1) : 0;
    };
    CHECK(watts_of(
              line("VDD_IN 12800mW/11500mW VDD_CPU_GPU_CV 6500mW/6000mW VDD_SOC 1200mW/1200mW")) ==
          Approx(12.8));
    CHECK(watts_of(line("VDD_GPU 41000mW/40000mW VDD_CPU_SOC_MSS 5535mW/5535mW VIN_SYS_5V0 "
                        "5040mW/5040mW VIN 66802mW/60000mW")) == Approx(66.802));
    CHECK(watts_of(line("VDD_GPU_SOC 13260mW/13000mW VDD_CPU_CV 2070mW/2000mW VIN_SYS_5V0 "
                        "7590mW/7500mW VDDQ_VDD2_1V8AO "
                        "900mW/900mW")) == Approx(22.92));
    // The last whole line counts.
    CHECK(watts_of(line("VDD_IN 1000mW/1000mW") + line("VDD_IN 2000mW/1500mW") +
                   "11-25-2026 VDD_IN 3000mW/1") == Approx(2));
    for (const std::string& nothing : {line(""), line("VDD_SOC 1200mW/1200mW"), line("VDD_IN NA"),
                                       std::string("VDD_IN 5mW/5mW"), std::string()})
        CHECK_FALSE(read_tegrastats(nothing));
}

TEST_CASE(
    "power: a goal of power is minimized, and only an engine that is started and watched has one") {
    static const TemporaryFolder folder;
    const auto message = [&](const std::string& objective, const std::string& evaluator) {
        return message_of<ParseError>([&] {
            (void)load_study(
                folder.write(
                    "power.yaml",
                    "study: power\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: vllm\n"
                    "workloads: [{use: random, requests: 40}]\nobjective: {" +
                        objective +
                        "}\nothers: default\nspace: {max_num_seqs: {choice: [64, 128]}}\n"
                        "evaluator: " +
                        evaluator + "\n"),
                Catalogue(search_spaces));
        });
    };
    const std::string goal = "minimize: joules_per_output_token";
    const std::string limit =
        "maximize: output_tokens_per_second, limits: [\"power_mean_watts <= 600\"]";
    for (const std::string& objective : {goal, limit}) {
        INFO(objective);
        CHECK(message(objective, "{deploy: {}}") == "");
        CHECK(has(message(objective, "{deploy: {watch: off}}"),
                  "power is measured while the machine is watched: leave out `watch: off`"));
        for (const char* evaluator : {"{simulate: {}}", "{attach: {url: \"http://127.0.0.1:1\"}}"})
            CHECK(has(message(objective, evaluator),
                      "power is measured where the engine is started: `evaluator: {deploy: "
                      "...}`"));
    }
    CHECK(has(message("maximize: joules_per_output_token", "{deploy: {}}"),
              "less of 'joules_per_output_token' is better: write it under `minimize`"));
    CHECK(has(message("minimize: joules_per_token", "{deploy: {}}"),
              "a load test has no metric 'joules_per_token'; it has: joules_per_"));
}
