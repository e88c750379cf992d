// SPDX-License-Identifier: Apache-2.0
// How many configurations a night judges, on a simulated clock (README.md): night [HOURS [SEED]]
#include "deploy/early_end.hpp"
#include "deploy/trial_workloads.hpp"
#include "engine/command_reader.hpp"
#include "report/report_view.hpp"
#include "servetune/rng.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace servetune;

/// Measured with vLLM 0.24 and Qwen3-8B on an H100 (benchmarks/README.md): ready after
/// 59 s with what earlier starts compiled; 12 s of warm-up before a load test of 21 s; 1 s to stop.
struct Seconds {
    double least_start = 59;
    double most_warm_up = 12;
    double warm_up_share = 0.6;  ///< of the load test
    double stop = 1;
};

struct NightStudy {
    const char* name;
    std::string text;
};

/// Measures with the simulator, on a clock of its own, as ServerMeasurement goes about it.
class NightEvaluator : public Evaluator {
public:
    explicit NightEvaluator(const StudyFile& file)
        : evaluator_(simulated(file)),
          limits_(file.objective.limits),
          workloads_(workloads_of_trial({file.workloads}, "", {})) {}

    [[nodiscard]] double now() const { return now_; }
    [[nodiscard]] const TimeSpent& spent() const { return spent_; }
    [[nodiscard]] std::size_t left_out() const { return left_out_; }
    [[nodiscard]] std::size_t ended_early() const { return ended_early_; }

    Outcome evaluate(const Configuration& configuration,
                     const EvaluationContext& context) override {
        const SimulateEvaluator::Started started = evaluator_->started(configuration);
        spend(spent_.starts,
              std::max(started.start.seconds, started.failure ? 0.0 : seconds_.least_start) +
                  seconds_.stop);
        Outcome outcome = evaluator_->predicted(configuration, context);
        auto* measured = std::get_if<Measurement>(&outcome);
        if (measured == nullptr) {
            if (!started.failure) spend(spent_.loads, until_death);
            return outcome;
        }
        return loaded(*measured, context);
    }

private:
    static constexpr double give_up = 0.1;
    static constexpr double until_death = 30;  ///< of a load test in which the engine dies

    void spend(double& on, double seconds) {
        on += seconds;
        now_ += seconds;
    }

    Outcome loaded(const Measurement& whole, const EvaluationContext& context) {
        const EarlyEnd early(context.to_beat, give_up, limits_, workloads_);
        std::vector<WorkloadMetrics> parts;
        Measurement result{{}, whole.validity};
        for (const Workload& workload : workloads_) {
            Metrics metrics;
            for (const auto& [name, metric] : whole.metrics)
                if (const MetricKey key = MetricKey::of(name);
                    key.workload == (workloads_.size() > 1 ? workload.name : ""))
                    metrics[std::string(key.name)] = metric;
            const double duration = metrics.at("duration_seconds").value;
            spend(spent_.warm_up,
                  std::min(seconds_.most_warm_up, seconds_.warm_up_share * duration));
            const auto wanted = early.rate_to_reach(parts);
            const bool raced = wanted && metrics.contains(wanted->metric);
            const double lost_after =
                raced ? metrics.at(wanted->metric).value * duration / wanted->least : duration;
            if (lost_after < duration) {
                spend(spent_.loads, lost_after);
                spent_.saved += duration - lost_after;
                ++ended_early_;
                const double rate = metrics.at(wanted->metric).value;
                parts.push_back(
                    {workload.name,
                     workload.weight,
                     {{wanted->metric, {rate, rate * (1 - lost_after / duration) / 2}}}});
                result.validity = {Verdict::suspect, {{"given_up"}}};
                break;
            }
            spend(spent_.loads, duration);
            parts.push_back({workload.name, workload.weight, std::move(metrics)});
            if (early.left_out(parts)) {
                ++left_out_;
                result.validity = {Verdict::suspect, {{"given_up"}}};
                break;
            }
        }
        spent_.saved += early.saved_seconds(parts.size());
        result.metrics = parts.size() == workloads_.size() ? combined(parts) : early.whole(parts);
        return result;
    }

    std::unique_ptr<SimulateEvaluator> evaluator_;
    std::vector<Limit> limits_;
    std::vector<Workload> workloads_;
    Seconds seconds_{};
    TimeSpent spent_{};
    std::size_t left_out_ = 0;
    std::size_t ended_early_ = 0;
    double now_ = 0;
};

std::string study_text(const std::string& model, const std::string& engine,
                       const std::string& workloads, const std::string& limits,
                       const std::string& preset) {
    return "study: night\nmodel: " + model + "\nhardware: h100-sxm\nengine: " + engine +
           "\npreset: " + preset + "\nworkloads: " + workloads +
           "\nobjective: {maximize: output_tokens_per_second, limits: [" + limits +
           "]}\nothers: default\nevaluator: {simulate: {noise: 1%}}\nbudget: 8h\n";
}

std::vector<NightStudy> night_studies() {
    const std::string good = "success_ratio >= 99%";
    const std::string one =
        "[{workload: w, use: random, input_tokens: 512, output_tokens: 128, requests: 800, "
        "arrival: {concurrency: 128}}]";
    const std::string three =
        "[{workload: single, use: random, input_tokens: 512, output_tokens: 128, requests: 32, "
        "arrival: {concurrency: 1}}, "
        "{workload: some, use: random, input_tokens: 512, output_tokens: 128, requests: 256, "
        "arrival: {concurrency: 16}}, "
        "{workload: many, use: random, input_tokens: 512, output_tokens: 128, requests: 800, "
        "arrival: {concurrency: 128}}]";
    const std::string long_ones =
        "[{use: chat, requests: 1000, arrival: {concurrency: 64}}, {workload: documents, use: "
        "random, input_tokens: 6000, output_tokens: "
        "300, "
        "requests: 100, arrival: {concurrency: 16}}]";
    return {{"8B, one workload", study_text("Qwen/Qwen3-8B", "vllm", one, good, "quick")},
            {"8B, three loads", study_text("Qwen/Qwen3-8B", "vllm", three, good, "quick")},
            {"14B, chat and documents",
             study_text("Qwen/Qwen3-14B", "vllm", long_ones, good, "throughput")},
            {"14B, the same, TTFT limit", study_text("Qwen/Qwen3-14B", "[vllm, sglang]", long_ones,
                                                     good + ", ttft_p95 <= 5s", "quick")}};
}

struct Night {
    TimeSpent spent{};
    std::size_t left_out = 0;
    std::size_t ended_early = 0;
    std::size_t trials = 0;
    std::size_t judged = 0;  ///< configurations with an outcome
    double best = 0;         ///< true figure of what is recommended / the default's
};

Night night(const NightStudy& study, double hours, std::uint64_t seed) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / fmt::format("servetune-night-{}", seed);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "study.yaml") << study.text;
    StudyFile file = load_study(folder / "study.yaml", Catalogue::standard());
    file.seed = seed;
    StudySetup setup = set_up(std::move(file), folder);
    NightEvaluator evaluator(setup.file);
    MemoryJournal journal;
    Study::Options options{setup.file.seed};
    options.now = [&] { return evaluator.now(); };
    options.default_again_every = setup.file.default_again_every();
    Study run(*setup.problem, *setup.strategy, journal, std::move(options));
    Budget budget = setup.file.budget;
    budget.wall_clock_seconds = hours * 3600;
    const Summary summary = run.run(evaluator, budget);
    Night result{.spent = evaluator.spent(),
                 .left_out = evaluator.left_out(),
                 .ended_early = evaluator.ended_early()};
    std::set<Configuration> judged;
    for (const Trial& trial : journal.trials())
        if (trial.told()) {
            ++result.trials;
            judged.insert(trial.configuration);
        }
    result.judged = judged.size();
    const auto truth = [&](const Configuration& configuration) {
        double sum = 0;
        for (std::uint64_t i = 0; i < 5; ++i) {  // the noise of each trial is its own
            const Outcome outcome =
                simulated(setup.file)
                    ->predicted(configuration, {.trial = i, .seed = derive_seed(99, i)});
            if (const auto* measured = std::get_if<Measurement>(&outcome))
                sum += measured->metrics.at(setup.problem->objective.leading().metric).value / 5;
        }
        return sum;
    };
    result.best = truth(summary.recommendation.recommended) /
                  truth(setup.problem->space.default_configuration());
    return result;
}

}  // namespace

int main(int count, char** words) {
    try {
        const double hours = count > 1 ? std::stod(words[1]) : 8;
        const std::uint64_t seed = count > 2 ? std::stoull(words[2]) : 1;
        fmt::print("{:<26} {:>6} {:>6} {:>8} {:>7} {:>7} {:>7} {:>5} {:>5} {:>6}\n", "study",
                   "judged", "trials", "starts h", "warm h", "loads h", "saved h", "early", "left",
                   "gain");
        for (const NightStudy& study : night_studies()) {
            const Night found = night(study, hours, seed);
            const TimeSpent& spent = found.spent;
            fmt::print(
                "{:<26} {:>6} {:>6} {:>8.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>5} {:>5} {:>5.1f}%\n",
                study.name, found.judged, found.trials, spent.starts / 3600, spent.warm_up / 3600,
                spent.loads / 3600, spent.saved / 3600, found.ended_early, found.left_out,
                (found.best - 1) * 100);
            std::fflush(stdout);
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "night: {}\n", error.what());
        return 2;
    }
}
