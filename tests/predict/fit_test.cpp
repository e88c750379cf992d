// SPDX-License-Identifier: Apache-2.0
// Fitting: known factors are found again in tables that the simulator made with them, and the
// physics holds on published results.
#include "support/test.hpp"

#include "base/files.hpp"
#include "predict/fit.hpp"
#include "servetune/rng.hpp"
#include "servetune/detail/load/statistics.hpp"
#include "servetune/error.hpp"
#include "study/table.hpp"
#include "study_file/study_predictions.hpp"
#include "support/shipped.hpp"
#include "support/small_target.hpp"

#include <cmath>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::filesystem::path thor = search_spaces / "published/qwen3-8b-jetson-thor";
const std::filesystem::path h100 = search_spaces / "published/qwen3-14b-h100";

EngineTraits start_traits() {
    EngineTraits traits = small_target().traits;
    traits.bandwidth_efficiency = 0.5;
    traits.compute_efficiency["other"] = 0.5;
    traits.step_overhead_seconds = 1e-3;
    traits.request_overhead_seconds = 1e-3;
    traits.chunk_overhead_seconds = 1e-5;
    return traits;
}

/// What the simulator measures with these traits, for rows that together say something of every
/// factor.
std::vector<FitRow> rows_of(const EngineTraits& truth, double noise = 0) {
    Rng rng(5);
    std::vector<FitRow> rows;
    struct Shape {
        std::size_t requests;
        std::int64_t input, output, in_flight;
    };
    for (const Shape& shape : {Shape{4, 16, 60, 1},
                               {4, 4000, 10, 1},
                               {60, 100, 2, 60},
                               {40, 16, 40, 8},
                               {6, 3000, 20, 2},
                               {80, 64, 1, 80},
                               {3, 16, 100, 1},
                               {10, 6000, 2, 4}}) {
        FitRow row{
            "row " + std::to_string(rows.size()),
            {},
            SimulatedTraffic(
                std::vector<SimulatedTraffic::Request>(
                    shape.requests, {.input_tokens = shape.input, .output_tokens = shape.output}),
                {.kind = Arrival::Kind::concurrency, .in_flight = shape.in_flight}),
            {}};
        row.serving.target = small_target();
        row.serving.target.hardware.flops_per_second["bf16"] = 1e14;
        row.serving.target.traits = truth;
        row.serving.settings = small_settings(100'000);
        row.serving.settings.overlap = false;
        LoadRun load;
        SimulatedRun run =
            simulate(CostModel(row.serving.target, row.serving.settings), row.traffic);
        load.records = std::move(run.records);
        load.duration_seconds = run.duration_seconds;
        for (const auto& [name, metric] :
             metrics_of(statistics_of(load, {shape.requests, row.traffic.arrival(), {}})))
            row.measured[name] = metric.value * std::exp(noise * rng.normal());
        row.serving.target.traits = start_traits();
        rows.push_back(std::move(row));
    }
    return rows;
}

double worst_of(const std::vector<FitError>& errors) {
    double worst = 0;
    for (const FitError& error : errors)
        worst = std::max(worst, std::abs(error.predicted / error.measured - 1));
    return worst;
}

std::map<std::string, std::vector<FitRow>> table(const std::filesystem::path& folder,
                                                 const char* name,
                                                 const std::string& workload = "") {
    return read_fit_table(folder / name,
                          load_study(folder / "study.yaml", Catalogue(search_spaces)), workload)
        .rows;
}

}  // namespace

TEST_CASE("fit: factors are found again in what the simulator made with them") {
    EngineTraits truth = start_traits();
    truth.bandwidth_efficiency = 0.8;
    truth.compute_efficiency["other"] = 0.3;
    truth.request_overhead_seconds = 4e-3;
    const FitOptions options{
        {"bandwidth_efficiency", "compute_efficiency", "request_overhead_seconds"},
        {"total_tokens_per_second", "time_per_output_token_mean_seconds"},
        1,
        400};
    const Fit exact = fit(rows_of(truth), options);
    // Not quite: the pull to where they began, as strong as an error of 3 % in one row.
    CHECK(exact.values.at("bandwidth_efficiency") == Approx(0.8).epsilon(0.03));
    CHECK(exact.values.at("compute_efficiency") == Approx(0.3).epsilon(0.03));
    CHECK(exact.values.at("request_overhead_seconds") == Approx(4e-3).epsilon(0.03));
    CHECK(exact.worst_error < 0.03);
    CHECK(exact.traits.bandwidth_efficiency == exact.values.at("bandwidth_efficiency"));
    CHECK(exact.traits.step_overhead_seconds == 1e-3);  // not asked for

    FitOptions folded = options;
    folded.folds = 4;
    folded.evaluations = 100;
    const Fit noisy = fit(rows_of(truth, 0.03), folded);
    CHECK(noisy.values.at("bandwidth_efficiency") == Approx(0.8).epsilon(0.08));
    CHECK(noisy.values.at("compute_efficiency") == Approx(0.3).epsilon(0.08));
    CHECK(noisy.values.at("request_overhead_seconds") == Approx(4e-3).epsilon(0.08));
    CHECK(noisy.median_error > 0.005);
    CHECK(noisy.held_out_worst_error >= noisy.worst_error * 0.9);
    CHECK(noisy.held_out_median_error >= noisy.median_error * 0.8);
    CHECK(noisy.errors.size() >=
          14);  // 8 rows, two metrics; answers of one token have no time per further token
    CHECK(worst_of(noisy.errors) == noisy.worst_error);
    folded.folds = 1;
    CHECK(fit(rows_of(truth, 0.03), folded).values == noisy.values);
}

TEST_CASE("fit: a factor of which the rows say nothing stays where it was") {
    EngineTraits truth = start_traits();
    truth.bandwidth_efficiency = 0.8;
    truth.request_overhead_seconds = 9e-3;
    const Fit time = fit({rows_of(truth)[0], rows_of(truth)[6]},
                         {{"bandwidth_efficiency", "request_overhead_seconds"},
                          {"time_per_output_token_mean_seconds"}});
    CHECK(time.values.at("request_overhead_seconds") == Approx(1e-3).epsilon(0.05));
}

TEST_CASE("fit: shares stay shares, whatever the rows say") {
    std::vector<FitRow> rows = rows_of(start_traits());
    for (FitRow& row : rows)
        for (auto& [name, value] : row.measured) value *= name.ends_with("_per_second") ? 20 : 0.05;
    const Fit result = fit(rows, {{"bandwidth_efficiency", "compute_efficiency"}});
    for (const auto& [factor, value] : result.values) CHECK((value > 0.9 && value <= 1));
}

TEST_CASE("fit: what makes no sense is refused") {
    const auto refused = [](const std::vector<FitRow>& rows, const FitOptions& options) {
        return message_of<UsageError>([&] { (void)fit(rows, options); });
    };
    const std::vector<FitRow> rows{rows_of(start_traits()).front()};
    CHECK(refused({}, {}) == "there is no sound row to fit to");
    CHECK(refused(rows, {{"bandwith_efficiency"}})
              .find("'bandwith_efficiency' is no factor that can be fitted; known: "
                    "bandwidth_efficiency") == 0);
    CHECK(refused(rows, {{"bandwidth_efficiency"}, {"happiness"}})
              .find("no row has any of the metrics: happiness") == 0);
    CHECK(fit(rows, {{"bandwidth_efficiency"}}).errors.size() ==
          1);  // one row: held out of nothing
}

TEST_CASE(
    "fit: one bandwidth efficiency explains one stream of Qwen3-8B on Jetson Thor in seven "
    "quantizations") {
    const auto rows = table(thor, "results.csv", "low_load");
    REQUIRE(rows.at("vllm").size() == 7);
    const Fit result = fit(
        rows.at("vllm"), {{"bandwidth_efficiency"}, {"time_per_output_token_mean_seconds"}, 5, 40});
    CHECK(result.errors.size() == 7);
    CHECK(result.worst_error < 0.25);           // what was asked for
    CHECK(result.held_out_worst_error < 0.06);  // what it is: 3 %
    CHECK((result.values.at("bandwidth_efficiency") > 0.7 &&
           result.values.at("bandwidth_efficiency") < 1));
}

TEST_CASE("fit: with a layer's time beside it, the mixtures of experts on Jetson Thor too") {
    const auto rows = table(thor, "other-models.csv", "low_load");
    REQUIRE(rows.at("vllm").size() >= 5);
    const Fit result = fit(
        rows.at("vllm"),
        {{"bandwidth_efficiency", "layer_seconds"}, {"time_per_output_token_mean_seconds"}, 5, 60});
    CHECK(result.worst_error < 0.25);
    CHECK(result.held_out_worst_error < 0.15);  // 7 %
}

TEST_CASE(
    "fit: unsound rows and models whose bytes are not known are left out, with their places") {
    const FitTable read =
        read_fit_table(thor / "results.csv",
                       load_study(thor / "study.yaml", Catalogue(search_spaces)), "low_load");
    REQUIRE(read.left_out.size() == 2);
    CHECK(read.left_out[0].find("results.csv:5: unsound: physics, mean TPOT = 8.88 ms") !=
          std::string::npos);
    CHECK(read.left_out[1].find(
              "results.csv:19: the bytes of Qwen/Qwen3-8B as 'gguf' are not known") !=
          std::string::npos);
    const TemporaryFolder folder;
    const auto empty = folder.write("empty.csv", "");
    CHECK(message_of<ParseError>([&] {
              (void)read_fit_table(empty,
                                   load_study(thor / "study.yaml", Catalogue(search_spaces)));
          }).find("an empty table") != std::string::npos);
}

TEST_CASE("fit: a study's own export is read, of one workload and of several") {
    const TemporaryFolder folder;
    const auto study = [&](const std::string& workloads) {
        return load_study(
            folder.write(
                "study.yaml",
                "study: own\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: vllm\nworkloads: [" +
                    workloads +
                    "]\nobjective: {maximize: total_tokens_per_second}\nspace: {max_num_seqs: "
                    "{choice: "
                    "[engine, 64]}}\nothers: default\nevaluator: simulate\n"),
            Catalogue(search_spaces));
    };
    const auto workload = [](const std::string& name, int requests) {
        return "{workload: " + name +
               ", use: random, input_tokens: 128, output_tokens: 16, requests: " +
               std::to_string(requests) + ", arrival: {concurrency: 8}}";
    };
    const auto figures = [](const std::string& suffix) {
        std::string header;
        for (const char* name : {"duration_seconds", "successful_requests", "failed_requests",
                                 "input_tokens", "output_tokens"})
            header += "," + (name + suffix);
        return header;
    };
    const std::string one =
        "block,max_num_seqs,status" + figures("") + ",verdict,findings,message\n";
    const std::string rows =
        "0,engine,ok,1,30,0,3840,480,sound,,\n1,64,ok,2,30,0,3840,480,unsound,client,\n2,64,crash,,"
        ",,,,,,it died\n";
    const auto single = study(workload("short", 30));
    const FitTable of_one = read_fit_table(folder.write("one.csv", one + rows), single);
    REQUIRE(of_one.rows.at("vllm").size() == 1);
    CHECK(of_one.rows.at("vllm")[0].name.starts_with("short vllm serve Qwen/Qwen3-8B"));
    CHECK(of_one.rows.at("vllm")[0].measured.at("duration_seconds") == 1);
    REQUIRE(of_one.left_out.size() == 2);
    CHECK(of_one.left_out[0].ends_with("one.csv:3: unsound: client"));
    CHECK(of_one.left_out[1].ends_with("one.csv:4: crash"));

    const auto both = study(workload("short", 30) + ", " + workload("long", 10));
    const std::string several = "block,max_num_seqs,status" + figures("@short") + figures("@long") +
                                ",verdict,findings,message\n";
    const auto file =
        folder.write("two.csv", several + "0,engine,ok,1,30,0,3840,480,3,10,0,1280,160,sound,,\n");
    const FitTable of_two = read_fit_table(file, both);
    CHECK(of_two.left_out.empty());
    REQUIRE(of_two.rows.at("vllm").size() == 2);
    CHECK(of_two.rows.at("vllm")[0].measured.at("duration_seconds") == 1);
    CHECK(of_two.rows.at("vllm")[1].name.starts_with("long "));
    CHECK(of_two.rows.at("vllm")[1].measured.at("duration_seconds") == 3);
    CHECK(read_fit_table(file, both, "long").rows.at("vllm").size() == 1);
    const FitTable unclear = read_fit_table(folder.write("one.csv", one + rows), both);
    CHECK(unclear.rows.empty());
    CHECK(unclear.left_out.front().ends_with(
        "one.csv:2: it does not say which of the study's workloads it is of"));
}

TEST_CASE("fit: a row of more requests than can be simulated is left out, and says so") {
    const auto study = load_study(thor / "study.yaml", Catalogue(search_spaces));
    const auto rows = parse_csv(read_file(thor / "results.csv"), "results.csv");
    const std::vector<std::string>& header = rows.front().cells;
    const TemporaryFolder folder;
    // So many times as long, in all its sums, so that the audit finds nothing.
    for (const auto& [zeros, said] :
         {std::pair<std::string, std::string>{"000000000",
                                              "10000000000 requests of 2043.1 and 128 tokens"},
          {"00000", "1000000 requests of 2043.1 and 128 tokens"}}) {
        std::string csv = csv_line(header);
        for (std::size_t i = 1; i < rows.size(); ++i) {
            std::vector<std::string> cells = rows[i].cells;
            for (std::size_t c = 0; c < header.size(); ++c)
                for (const char* name :
                     {"successful_requests", "duration_seconds", "input_tokens", "output_tokens"})
                    if (i == 2 && header[c] == name)
                        cells[c] += cells[c].find('.') == std::string::npos
                                        ? zeros
                                        : "e" + std::to_string(zeros.size());
            csv += csv_line(cells);
        }
        const FitTable read = read_fit_table(folder.write("huge.csv", csv), study, "low_load");
        REQUIRE(read.left_out.size() == 3);
        INFO(read.left_out[0]);
        CHECK(read.left_out[0].find("huge.csv:3: it says " + said +
                                    "; at most a million of each, and 1000000000 tokens in all") !=
              std::string::npos);
    }
}

TEST_CASE(
    "fit: the five workloads of Qwen3-14B on H100, with vLLM and with SGLang, each from two "
    "factors") {
    const auto rows = table(h100, "results.csv");
    for (const char* engine : {"vllm", "sglang"}) {
        std::vector<FitRow>
            usual;  // no attention back end named; each workload once for each checkpoint
        for (const FitRow& row : rows.at(engine))
            if (row.name.find("attention") == std::string::npos) usual.push_back(row);
        INFO(engine);
        REQUIRE(usual.size() >= 5);
        const Fit result = fit(usual, {{"compute_efficiency", "request_overhead_seconds"},
                                       {"total_tokens_per_second"},
                                       1,
                                       24});
        for (const FitError& error : result.errors) {
            INFO(error.row << ": " << error.measured << ", predicted " << error.predicted);
            CHECK(std::abs(error.predicted / error.measured - 1) < 0.30);
        }
    }
}

TEST_CASE("fit: the file it writes is read back, and a study takes it") {
    Fit result;
    result.traits = Catalogue(search_spaces).traits("vllm");
    result.traits.bandwidth_efficiency = 0.4321;
    for (auto& [type, efficiency] : result.traits.compute_efficiency) efficiency = 0.25;
    result.traits.request_overhead_seconds = 1.25e-3;
    result.values = {{"bandwidth_efficiency", 0.4321},
                     {"compute_efficiency", 0.25},
                     {"request_overhead_seconds", 1.25e-3}};
    const TemporaryFolder folder;
    const auto file =
        folder.write("own.yaml", fitted_traits_file(search_spaces / "traits/vllm.yaml", result,
                                                    "fitted to own.csv (7 rows)"));
    const EngineTraits back = Catalogue(search_spaces).traits(file.string());
    const EngineTraits shipped = Catalogue(search_spaces).traits("vllm");
    CHECK(back.bandwidth_efficiency == Approx(0.4321));
    CHECK(back.request_overhead_seconds == Approx(1.25e-3));
    CHECK(back.compute("fp8") == Approx(0.25));
    CHECK(back.step_overhead_seconds == shipped.step_overhead_seconds);
    CHECK(back.attention.size() == shipped.attention.size());
    CHECK(back.log == shipped.log);
    CHECK(read_file(file).find("  bandwidth_efficiency: \"fitted to own.csv (7 rows)\"") !=
          std::string::npos);

    const auto study = folder.write(
        "study.yaml",
        "study: own\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: vllm\nworkloads:\n  - "
        "{workload: w, use: "
        "random, input_tokens: 16, output_tokens: 16, requests: 1}\nobjective: {minimize: "
        "time_per_output_token_mean_seconds}\nothers: default\nevaluator: {simulate: {traits: "
        "{vllm: own.yaml}}}\n");
    const StudyFile own = load_study(study, Catalogue(search_spaces));
    const auto evaluator = simulated(own);
    const SearchSpace space(own.composition->parameters(), own.composition->constraints());
    const auto started = evaluator->started(space.default_configuration());
    CHECK(started.serving.target.traits.bandwidth_efficiency == Approx(0.4321));
}
