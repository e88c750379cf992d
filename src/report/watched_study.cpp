// SPDX-License-Identifier: Apache-2.0
#include "watched_study.hpp"

#include "report_view.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/detail/trial/metric_key.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <cmath>

namespace servetune {
namespace {

constexpr std::size_t most_lengths = 10'000;  ///< of all workloads together
constexpr double planned_as_measured =
    0.05;  ///< answers of other lengths ended by themselves: how they spread is not known

std::optional<double> study_figure(const Metrics& metrics, std::string_view name,
                                   const std::string& workload) {
    const auto found = metrics.find(MetricKey{name, workload}.text());
    return found == metrics.end() ? std::nullopt : std::optional(found->second.value);
}

/// Tokens of a request on average, as the load tests counted them.
std::optional<double> measured_mean(const Metrics& metrics, const char* tokens,
                                    const std::string& workload) {
    const auto sum = study_figure(metrics, tokens, workload);
    const auto requests = study_figure(metrics, "successful_requests", workload);
    return sum && requests && *requests > 0 ? std::optional(*sum / *requests) : std::nullopt;
}

/// `count` of the lengths, spread evenly over them in their order of size, times a factor.
void add_lengths(std::vector<double>& to, std::vector<double> lengths, std::size_t count,
                 double factor) {
    std::sort(lengths.begin(), lengths.end());
    for (std::size_t i = 0; i < count; ++i)
        to.push_back(lengths[i * lengths.size() / count] * factor);
}

double mean_of_lengths(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

/// Reads the workloads of a study one after the other.
class TrafficOfStudy {
public:
    TrafficOfStudy(const StudySetup& setup, const Metrics& metrics, WatchedStudy& study)
        : file_(setup.file),
          metrics_(metrics),
          study_(study),
          several_(file_.workloads.size() > 1) {}

    void read() {
        ExpectedTraffic& expected = study_.expected;
        expected.prompt.shape_known = expected.output.shape_known = true;
        double weights = 0;
        for (const Workload& workload : file_.workloads) weights += workload.weight;
        for (const Workload& workload : file_.workloads) add(workload, workload.weight / weights);
        for (auto* lengths : {&expected.prompt, &expected.output}) {
            std::sort(lengths->each.begin(), lengths->each.end());
            if (lengths->each.empty()) lengths->shape_known = false;
        }
        if (several_) {
            study_.notes.emplace_back(
                "the study has several workloads: their weights are taken for their shares of the "
                "traffic, and load and "
                "speed are not compared");
            return;
        }
        load(file_.workloads.front());
        const auto hits = study_figure(metrics_, "server_prefix_hit_tokens", "");
        const auto tokens = study_figure(metrics_, "input_tokens", "");
        if (hits && tokens && *tokens > 0) expected.hit_share = std::min(1.0, *hits / *tokens);
    }

private:
    void add(const Workload& workload, double share) {
        const std::string name = several_ ? workload.name : "";
        std::vector<double> prompts;
        std::vector<double> outputs;
        try {
            for (const PlannedRequest& request : plan_requests(workload).requests) {
                if (request.input_tokens > 0)
                    prompts.push_back(static_cast<double>(request.input_tokens));
                if (request.output_tokens > 0)
                    outputs.push_back(static_cast<double>(request.output_tokens));
            }
        } catch (const Error& error) {  // its file may be on the computer that measured
            study_.notes.push_back("how the lengths of '" + workload.name +
                                   "' spread is not known here: " + error.what());
        }
        add(study_.expected.prompt, prompts, measured_mean(metrics_, "input_tokens", name), share,
            true);
        add(study_.expected.output, outputs, measured_mean(metrics_, "output_tokens", name), share,
            workload.ignore_eos);
    }

    /// `sure`: requests have the lengths that were planned, up to how they are counted.
    static void add(ExpectedTraffic::Lengths& to, const std::vector<double>& planned,
                    const std::optional<double>& measured, double share, bool sure) {
        const std::optional<double> mean = measured ? measured
                                           : planned.empty()
                                               ? std::nullopt
                                               : std::optional(mean_of_lengths(planned));
        if (!mean || !(*mean > 0)) {
            to.shape_known = false;
            return;
        }
        to.mean = to.mean.value_or(0) + share * *mean;
        const double factor = planned.empty() ? 1 : *mean / mean_of_lengths(planned);
        if (planned.empty() || (!sure && std::abs(factor - 1) > planned_as_measured))
            to.shape_known = false;
        else
            add_lengths(to.each, planned,
                        std::max<std::size_t>(1, static_cast<std::size_t>(share * most_lengths)),
                        factor);
    }

    void load(const Workload& workload) {
        ExpectedTraffic& expected = study_.expected;
        const auto figure = [&](const char* name) { return study_figure(metrics_, name, ""); };
        switch (workload.arrival.kind) {
            case Arrival::Kind::rate:
                expected.requests_per_second = figure("requested_rate_per_second");
                if (!expected.requests_per_second)
                    expected.requests_per_second = workload.arrival.requests_per_second;
                break;
            case Arrival::Kind::trace:
            case Arrival::Kind::ramp:
            case Arrival::Kind::largest_rate:
                expected.requests_per_second = figure("requests_per_second");
                break;
            case Arrival::Kind::concurrency:
            case Arrival::Kind::all_at_once:
            case Arrival::Kind::largest_concurrency:
                expected.in_flight = figure("mean_concurrency");
                if (!expected.in_flight && workload.arrival.kind == Arrival::Kind::concurrency)
                    expected.in_flight = static_cast<double>(workload.arrival.in_flight);
                break;
        }
    }

    const StudyFile& file_;
    const Metrics& metrics_;
    WatchedStudy& study_;
    bool several_;
};

/// The mean of the logarithms of a metric over the trials of a configuration, and its standard
/// error: between the trials, else what the one says of itself.
void promise_speed(ExpectedTraffic& expected, const ReportView& view,
                   const Configuration& configuration) {
    std::vector<double> logs;
    double own = 0;
    for (const Trial& trial : view.search) {
        const Measurement* measurement = trial.measurement();
        if (measurement == nullptr || !(trial.configuration == configuration) ||
            measurement->validity.verdict == Verdict::unsound)
            continue;
        const auto found = measurement->metrics.find("time_per_output_token_mean_seconds");
        if (found == measurement->metrics.end() || !(found->second.value > 0)) continue;
        logs.push_back(std::log(found->second.value));
        own = found->second.standard_error.value_or(0) / found->second.value;
    }
    if (logs.empty()) return;
    const auto n = static_cast<double>(logs.size());
    const double mean = mean_of_lengths(logs);
    double squares = 0;
    for (const double one : logs) squares += (one - mean) * (one - mean);
    expected.per_token_seconds = std::exp(mean);
    expected.per_token_error = logs.size() > 1 ? std::sqrt(squares / (n - 1) / n) : own;
}

}  // namespace

WatchedStudy watched_study(const StudySetup& setup, std::span<const Trial> trials) {
    if (!setup.file.has_commands())
        throw UsageError("the study '" + setup.file.name +
                         "' tunes no engine: there is no server to watch");
    if (setup.file.workloads.empty())
        throw UsageError("the study '" + setup.file.name +
                         "' has no workload: there is no traffic to compare with");
    const ReportView view(setup, trials);
    WatchedStudy result;
    result.recommended = view.recommendation.recommended;
    result.engine = &setup.file.composition->engine_of(result.recommended);
    if (!result.engine->counters.contains("url"))
        throw UsageError("the file of " + result.engine->name +
                         " names no counters that can be read: watch has nothing to go by");
    const Metrics metrics = view.means(result.recommended);
    TrafficOfStudy(setup, metrics, result).read();
    if (setup.file.workloads.size() == 1) promise_speed(result.expected, view, result.recommended);
    if (metrics.empty())
        result.notes.emplace_back(
            "nothing was measured of what is recommended: the workloads say what to expect");
    return result;
}

}  // namespace servetune
