// SPDX-License-Identifier: Apache-2.0
// How far predictions may be off: which rows say so, and that nine of ten are within.
#include "perf/cost_check.hpp"
#include "../../benchmarks/accuracy/intervals.hpp"
#include "servetune/rng.hpp"
#include "support/test.hpp"

using namespace servetune;

namespace {

ModelSpec model_with(std::int64_t experts) {
    ModelSpec model;
    model.experts = experts;
    return model;
}

HardwareSpec chip_named(const std::string& name) {
    HardwareSpec chip;
    chip.name = name;
    chip.architecture = "hopper";
    return chip;
}

/// Rows of so many models, each off by its own factor of `between` and each row by `within`
/// (standard deviations of the logarithm).
std::vector<Residual> drawn_residuals(std::uint64_t seed, std::size_t models, std::size_t rows,
                                      double between, double within,
                                      const std::string& chip = "h100-sxm") {
    Rng rng(seed);
    std::vector<Residual> result;
    for (std::size_t model = 0; model < models; ++model) {
        const double own = between * rng.normal();
        for (std::size_t row = 0; row < rows; ++row) {
            const double log = own + within * rng.normal();
            result.push_back({"0.11.0",
                              chip,
                              "hopper",
                              "dense",
                              "m" + std::to_string(model),
                              "c" + std::to_string(row % 5),
                              {log, -log, {}}});
        }
    }
    return result;
}

}  // namespace

TEST_CASE("cost check: the first that fits chip, architecture and kind of model counts") {
    EngineTraits traits;
    CHECK(check_of(traits, chip_named("h100-sxm"), model_with(0)) == nullptr);
    traits.checked.resize(3);
    for (std::size_t i = 0; i < 3; ++i) traits.checked[i].rows = i + 1;
    traits.checked[0].hardware = "h100-sxm";
    traits.checked[0].models = "dense";
    traits.checked[1].hardware = "hopper";
    traits.checked[1].models = "experts";
    const auto rows = [&](const char* chip, std::int64_t experts) {
        return check_of(traits, chip_named(chip), model_with(experts))->rows;
    };
    CHECK(rows("h100-sxm", 0) == 1);
    CHECK(rows("h100-sxm", 8) == 2);
    CHECK(rows("h200-sxm", 8) == 2);
    CHECK(rows("h200-sxm", 0) == 3);
}

TEST_CASE("cost check: a metric has the interval of its figure, others have none") {
    const CostCheck check{.rows = 12,
                          .of = "A, B",
                          .output_tokens_per_second = {0.7, 1.3},
                          .time_per_output_token = {0.5, 2},
                          .time_to_first_token = {0.25, 4}};
    const auto text = [&](const char* metric) {
        return interval_text(interval_of(&check, metric, 4123));
    };
    CHECK(text("total_tokens_per_second") == "2890 to 5360");
    CHECK(text("inter_token_latency_p99_seconds") == "2060 to 8250");
    CHECK(text("time_to_first_token_mean_seconds") == "1030 to 16500");
    CHECK(text("usd_per_million_tokens") == "");
    CHECK(interval_text(interval_of(&check, "time_to_first_token_mean_seconds", 0.08)) ==
          "0.02 to 0.32");
    CHECK_FALSE(interval_of(nullptr, "total_tokens_per_second", 1));
    ModelSpec model;
    CHECK(rows_text(check, chip_named("l4"), model) ==
          "12 measured rows of A, B, none or few of them on l4");
    model.latent_width = 576;
    CHECK(has(rows_text(check, chip_named("l4"), model), ", none with latent attention"));
    model.state_bytes_per_sequence = 1e6;
    CHECK(has(rows_text(check, chip_named("l4"), model), ", none with layers that keep a state"));
}

TEST_CASE("cost check: the error between configurations is that within one setup, where known") {
    CostCheck check;
    check.output_tokens_per_second = {0.5, 2};
    CHECK_FALSE(error_within(nullptr));
    CHECK(error_within(&check).value() == Approx(0.4214).epsilon(0.001));
    check.within = 0.1;
    CHECK(error_within(&check) == 0.1);
}

TEST_CASE("intervals: nine of ten rows of models that had no part in them are within") {
    double sum = 0;
    constexpr int runs = 20;
    for (std::uint64_t seed = 0; seed < runs; ++seed)
        sum += coverage(drawn_residuals(seed, 12, 30, 0.2, 0.1))[0] / runs;
    CHECK(sum > 0.85);
    CHECK(sum < 0.96);
    // Rows that say the same of all models: a narrow interval, not one that holds everything.
    const auto range =
        checks_of(drawn_residuals(1, 12, 30, 0, 0.1)).back().output_tokens_per_second;
    CHECK(range[0] > 0.75);
    CHECK(range[1] < 1.3);
}

TEST_CASE("intervals: a model's own rows do not make its interval") {
    std::vector<Residual> rows = drawn_residuals(1, 6, 20, 0, 0.1);
    for (Residual& row : rows)
        if (row.model == "m0") row.logs = {2, -2, {}};
    CHECK(coverage(rows)[0] < 0.84);  // of six models one is never within
    CHECK(coverage(rows)[0] > 0.7);
    CHECK(coverage(rows)[2] == 0);  // no row has this figure
}

TEST_CASE("intervals: groups of few rows, configurations or models are left to wider ones") {
    const auto chips = [](const std::vector<Residual>& rows) {
        std::vector<std::string> result;
        for (const CostCheck& one : checks_of(rows)) result.push_back(one.hardware);
        return result;
    };
    CHECK(chips(drawn_residuals(1, 3, 20, 0.2, 0.1)) ==
          std::vector<std::string>{""});  // all are of one chip
    std::vector<Residual> rows = drawn_residuals(1, 3, 20, 0.2, 0.1);
    const auto add = [&](std::vector<Residual> more) {
        std::vector<Residual> all = rows;
        all.insert(all.end(), more.begin(), more.end());
        return chips(all);
    };
    CHECK(add(drawn_residuals(2, 2, 5, 0.2, 0.1, "h200-sxm")) ==
          std::vector<std::string>{"h100-sxm", "h200-sxm", ""});
    CHECK(add(drawn_residuals(2, 2, 4, 0.2, 0.1, "h200-sxm")) ==
          std::vector<std::string>{"h100-sxm", ""});
    CHECK(add(drawn_residuals(2, 1, 40, 0.2, 0.1, "h200-sxm")) ==
          std::vector<std::string>{"h100-sxm", ""});
    std::vector<Residual> alike = drawn_residuals(2, 2, 10, 0.2, 0.1, "h200-sxm");
    for (Residual& row : alike) row.configuration = "c";
    CHECK(add(alike) == std::vector<std::string>{"h100-sxm", ""});
}

TEST_CASE("intervals: a wider group's holds those within it, not those of a version") {
    const auto checks_with = [](const char* version, const char* chip) {
        std::vector<Residual> rows = drawn_residuals(1, 8, 100, 0, 0.05);
        for (Residual row : drawn_residuals(2, 2, 5, 0, 1)) {
            row.version = version;
            row.chip = chip;
            rows.push_back(row);
        }
        return checks_of(rows);
    };
    const auto chips = checks_with("0.11.0", "h200-sxm");
    CHECK(chips[1].output_tokens_per_second[1] > 1.5);
    CHECK(chips[2].output_tokens_per_second[1] == chips[1].output_tokens_per_second[1]);
    const auto versions = checks_with("0.12.0", "h100-sxm");
    CHECK(versions[1].output_tokens_per_second[1] > 1.5);
    CHECK(versions[2].output_tokens_per_second[1] < 1.2);
}

TEST_CASE("intervals: fewer models, wider") {
    const auto wide = [](std::size_t models) {
        const auto range = checks_of(drawn_residuals(4, models, 400 / models, 0, 0.1))
                               .back()
                               .output_tokens_per_second;
        return std::log(range[1] / range[0]);
    };
    CHECK(wide(2) > 1.2 * wide(20));
}

TEST_CASE("intervals: the error within a setup leaves out its level, and needs rows of setups") {
    const auto within = [](std::vector<Residual> rows, std::size_t rows_of_setup) {
        for (std::size_t i = 0; i < rows.size(); ++i)
            rows[i].setup = rows[i].model + std::to_string(i / rows_of_setup);
        return checks_of(rows);
    };
    // Each model has its own level, which its setups do not count.
    CHECK(within(drawn_residuals(1, 20, 60, 1, 0.1), 6).back().within == Approx(0.1).epsilon(0.1));
    CHECK(within(drawn_residuals(1, 20, 60, 1, 0.1), 3).back().within == Approx(0.1).epsilon(0.2));
    CHECK(within(drawn_residuals(1, 20, 60, 1, 0.1), 2).back().within == 0);
    // A chip with ten rows, each of its own setup, has that of its kind of model.
    std::vector<Residual> rows = drawn_residuals(1, 3, 20, 1, 0.1);
    for (Residual& row : rows) row.setup = row.model;
    std::vector<Residual> other = drawn_residuals(2, 2, 5, 1, 3, "h200-sxm");
    for (std::size_t i = 0; i < other.size(); ++i) other[i].setup = std::to_string(i);
    rows.insert(rows.end(), other.begin(), other.end());
    const auto checks = checks_of(rows);
    REQUIRE(checks.size() == 3);
    CHECK(checks[1].hardware == "h200-sxm");
    CHECK(checks[1].within == checks[0].within);
    CHECK(text_of(checks[1]).find("], within: 0.") != std::string::npos);
}
