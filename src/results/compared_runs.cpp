// SPDX-License-Identifier: Apache-2.0
#include "compared_runs.hpp"

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "report/report_view.hpp"
#include "result_format.hpp"
#include "servetune/audit.hpp"
#include "servetune/error.hpp"
#include "study_file/audit_context.hpp"
#include "workloads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace servetune {
namespace {

using End = Comparison::Verdict;
constexpr std::array<const char*, 2> side_names{"A", "B"};

/// Mean and sum of squares around it of logarithms.
struct LogSpread {
    double n = 0, mean = 0, squares = 0;

    explicit LogSpread(const std::vector<double>& values) : n(double(values.size())) {
        for (const double value : values) mean += std::log(value) / n;
        for (const double value : values) squares += std::pow(std::log(value) - mean, 2);
    }
    [[nodiscard]] double variance() const { return n > 1 ? squares / (n - 1) : 0; }
};

/// How far the interval of a difference of means reaches either way; infinite: neither side has two
/// runs.
double welch_reach(const LogSpread& a, const LogSpread& b, double error) {
    if (a.n < 2 && b.n < 2) return std::numeric_limits<double>::infinity();
    double square = 0;
    double freedom = 0;
    if (a.n < 2 || b.n < 2) {  // the other's spread is all that is known
        const LogSpread& known = a.n < 2 ? b : a;
        square = known.variance() * (1 / a.n + 1 / b.n);
        freedom = known.n - 1;
    } else {
        const double of_a = a.variance() / a.n, of_b = b.variance() / b.n;
        square = of_a + of_b;
        freedom = square > 0 ? square * square / (of_a * of_a / (a.n - 1) + of_b * of_b / (b.n - 1))
                             : a.n + b.n - 2;
    }
    return std::sqrt(square) *
           student_quantile(error, std::size_t(std::max(1.0, std::floor(freedom + 1e-9))));
}

void compare_figure(ComparedFigure& figure, Direction direction, double margin, double error) {
    const LogSpread a(figure.a), b(figure.b);
    const double sign = direction == Direction::maximize ? 1 : -1;
    const double difference = sign * (b.mean - a.mean);
    const double reach = welch_reach(a, b, error);
    figure.gain = Gain::unknown(std::expm1(difference));
    if (std::isfinite(reach)) {
        figure.gain.low = std::expm1(difference - reach);
        figure.gain.high = std::expm1(difference + reach);
    }
    const Gain& gain = figure.gain;
    figure.verdict = gain.low > -margin && gain.high < margin ? End::same
                     : gain.low > 0                           ? End::better
                     : gain.high < 0                          ? End::worse
                                                              : End::undecided;
    const double variance = std::max(a.variance(), b.variance());
    if (figure.verdict != End::undecided || !(variance > 0)) return;
    const double wanted = std::max(std::abs(difference), std::log1p(margin) - std::abs(difference));
    constexpr std::size_t most = 1000;
    for (auto n = std::size_t(std::min(a.n, b.n)) + 1; n <= most && !figure.runs_needed; ++n)
        if (std::sqrt(2 * variance / double(n)) * student_quantile(error, 2 * n - 2) < wanted)
            figure.runs_needed = n;
}

/// The runs that may be counted; what is left out is said.
std::vector<PublishedResult> sound(const std::vector<PublishedResult>& runs, const char* side,
                                   Texts& remarks) {
    std::vector<PublishedResult> result;
    for (const PublishedResult& run : runs) {
        Validity validity = audit(run.result, AuditContext{});
        add(validity, run.validity);
        const bool counts = validity.verdict != Verdict::unsound;
        if (counts) result.push_back(run);
        if (!counts || validity.verdict == Verdict::suspect)
            remarks.push_back(fmt::format("run {} of {} {}: {}", run.index + 1, side,
                                          counts ? "is suspect" : "does not count",
                                          validity.findings.front().cause));
    }
    return result;
}

std::string load_of(const PublishedResult& run) {
    Texts words{run.labels.empty() ? "" : run.labels.front(), Work(run).text()};
    std::erase(words, "");
    return joined(words);
}

std::optional<double> figure_of_run(const PublishedResult& run, const std::string& metric) {
    std::optional<double> result;
    for_each_figure(run.result, [&](const std::string& name, const std::optional<double>& value) {
        if (name == metric && value && *value > 0) result = value;
    });
    return result;
}

}  // namespace

ComparedRuns compare_runs(const std::vector<PublishedResult>& all_a,
                          const std::vector<PublishedResult>& all_b, Goal goal, double margin) {
    Texts known;
    const BenchmarkResult names_only;
    for_each_figure(names_only,
                    [&](const std::string& name, const auto&) { known.push_back(name); });
    for (const auto& [name, rate] : leading_rates) {
        const auto has = [rate = rate](const PublishedResult& run) { return run.result.*rate > 0; };
        if (goal.metric.empty() && any_of(all_a, has) && any_of(all_b, has)) goal.metric = name;
    }
    if (goal.metric.empty()) goal.metric = leading_rates.front().first;
    if (!contains(known, goal.metric))
        throw UsageError(
            "no figure is called '" + goal.metric +
            "'; wanted: throughput, output_throughput, request_throughput; ttft, tpot, "
            "itl or e2el with _mean, _p50, _p90, _p95 or _p99; or a column of import");
    ComparedRuns result;
    const std::vector<PublishedResult> a = sound(all_a, side_names[0], result.remarks);
    const std::vector<PublishedResult> b = sound(all_b, side_names[1], result.remarks);
    std::vector<PublishedResult> runs = a;
    runs.insert(runs.end(), b.begin(), b.end());
    const auto name_of = [](const std::string& model) {
        return model.substr(model.rfind('/') + 1);
    };
    std::string model;
    for (const PublishedResult& run : runs) {
        if (run.model.empty()) continue;
        if (!model.empty() && name_of(run.model) != name_of(model))
            throw UsageError("they cannot be compared: one served " + model + ", another " +
                             run.model);
        model = run.model;
    }
    // A label may be a side's own (`--tag new`): where lengths are known, the prompts' name is
    // enough.
    const bool named = all_of(runs, [](const auto& run) { return !run.dataset.empty(); });
    for (PublishedResult& run : runs)
        if (Work(run).input_tokens) run.labels.assign(named ? 1 : 0, run.dataset);
    // Loads that both sides have.
    const std::vector<std::size_t> loads = comparable_runs(runs);
    std::map<std::size_t, std::array<std::vector<std::size_t>, 2>> by_load;
    for (std::size_t i = 0; i < runs.size(); ++i)
        by_load[loads[i]][i < a.size() ? 0 : 1].push_back(i);
    std::array<Texts, 2> alone;
    std::erase_if(by_load, [&](const auto& load) {
        const auto& [of_a, of_b] = load.second;
        if (!of_a.empty() && !of_b.empty()) return false;
        const std::size_t side = of_b.empty() ? 0 : 1;
        alone[side].push_back(load_of(runs[load.second[side].front()]));
        return true;
    });
    for (const std::size_t side : {0U, 1U})
        if (Texts& loads_alone = alone[side]; !loads_alone.empty()) {
            const std::size_t more =
                loads_alone.size() - std::min<std::size_t>(3, loads_alone.size());
            loads_alone.resize(loads_alone.size() - more);
            result.remarks.push_back(fmt::format(
                "only {} was measured with {}{}", side_names[side], joined(loads_alone, "; "),
                more > 0 ? fmt::format("; ... ({} more)", more) : ""));
        }
    if (by_load.empty())
        throw UsageError(
            "they cannot be compared: " +
            std::string(a.empty() || b.empty() ? "" : "no load was measured on both sides; ") +
            joined(result.remarks, "; "));
    // Shorter answers are less work.
    for (const auto& [load, sides] : by_load)
        for (const auto& [tokens, what] :
             {std::pair{&Work::input_tokens, "prompts"}, {&Work::output_tokens, "answers"}}) {
            std::array<double, 2> mean{};
            for (const std::size_t side : {0U, 1U})
                for (const std::size_t i : sides[side])
                    mean[side] +=
                        (Work(runs[i]).*tokens).value_or(NAN) / double(sides[side].size());
            if (std::abs(mean[1] - mean[0]) > 0.02 * mean[0])
                result.remarks.push_back(fmt::format(
                    "{} of A have {:.0f} tokens on average, of B {:.0f}", what, mean[0], mean[1]));
        }
    const auto figures_of = [&](const std::string& metric, Direction direction) {
        const std::size_t before = result.figures.size();
        for (const auto& [load, sides] : by_load) {
            ComparedFigure figure{.load = load_of(runs[sides[0].front()]), .metric = metric};
            Texts without;
            for (const std::size_t side : {0U, 1U})
                for (const std::size_t i : sides[side])
                    if (const auto value = figure_of_run(runs[i], metric))
                        (side == 0 ? figure.a : figure.b).push_back(*value);
                    else
                        without.push_back(fmt::format("run {} of {} has no {} above 0",
                                                      runs[i].index + 1, side_names[side], metric));
            if (metric == goal.metric && !(figure.a.empty() && figure.b.empty()))
                result.remarks.insert(result.remarks.end(), without.begin(), without.end());
            if (figure.a.empty() || figure.b.empty()) continue;
            result.figures.push_back(std::move(figure));
        }
        for (std::size_t i = before; i < result.figures.size(); ++i)
            compare_figure(result.figures[i], direction, margin,
                           0.05 / double(result.figures.size() - before));
    };
    figures_of(goal.metric, goal.direction);
    if (result.figures.empty()) {
        std::erase_if(known, [&](const std::string& name) {
            const auto has = [&](const PublishedResult& run) {
                return figure_of_run(run, name).has_value();
            };
            return !any_of(a, has) || !any_of(b, has);
        });
        throw UsageError("they cannot be compared by " + goal.metric +
                         ": one side has none above 0; both have " +
                         listed(nearest_first(goal.metric, known)));
    }
    const auto any = [&](End verdict) {
        return any_of(result.figures,
                      [&](const ComparedFigure& one) { return one.verdict == verdict; });
    };
    result.verdict = any(End::worse)       ? End::worse
                     : any(End::undecided) ? End::undecided
                     : any(End::better)    ? End::better
                                           : End::same;
    for (const auto& [metric, direction] :
         {std::pair{"output_tokens_per_second", Direction::maximize},
          {"time_to_first_token_mean_seconds", Direction::minimize},
          {"time_per_output_token_mean_seconds", Direction::minimize}})
        if (metric != goal.metric) figures_of(metric, direction);
    return result;
}

}  // namespace servetune
