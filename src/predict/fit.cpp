// SPDX-License-Identifier: Apache-2.0
#include "fit.hpp"

#include "base/nearest.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/load/statistics.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>

namespace servetune {

using Point = std::vector<double>;  // logarithms of the factors

double factor_of(const EngineTraits& traits, const std::string& factor) {
    if (factor == "bandwidth_efficiency") return traits.bandwidth_efficiency;
    if (factor == "step_overhead_seconds") return traits.step_overhead_seconds;
    if (factor == "sequence_overhead_seconds") return traits.sequence_overhead_seconds;
    if (factor == "layer_seconds") return traits.layer_seconds;
    if (factor == "request_overhead_seconds") return traits.request_overhead_seconds;
    if (factor == "chunk_overhead_seconds") return traits.chunk_overhead_seconds;
    if (factor == "compute_efficiency") return traits.compute_efficiency.begin()->second;
    if (factor.starts_with("compute_efficiency."))
        return traits.compute(factor.substr(factor.find('.') + 1));
    const std::vector<std::string> known{"bandwidth_efficiency",      "step_overhead_seconds",
                                         "sequence_overhead_seconds", "layer_seconds",
                                         "request_overhead_seconds",  "chunk_overhead_seconds",
                                         "compute_efficiency"};
    throw UsageError("'" + factor + "' is no factor that can be fitted; known: " +
                     listed(nearest_first(factor, known)));
}

namespace {

void set(EngineTraits& traits, const std::string& factor, double value) {
    const auto share = [](double v) { return std::clamp(v, 0.01, 1.0); };
    if (factor == "bandwidth_efficiency") traits.bandwidth_efficiency = share(value);
    else if (factor == "step_overhead_seconds") traits.step_overhead_seconds = value;
    else if (factor == "sequence_overhead_seconds") traits.sequence_overhead_seconds = value;
    else if (factor == "layer_seconds") traits.layer_seconds = value;
    else if (factor == "request_overhead_seconds") traits.request_overhead_seconds = value;
    else if (factor == "chunk_overhead_seconds") traits.chunk_overhead_seconds = value;
    else if (factor == "compute_efficiency") {
        const double ratio = value / traits.compute_efficiency.begin()->second;
        for (auto& [type, efficiency] : traits.compute_efficiency)
            efficiency = share(efficiency * ratio);
    } else traits.compute_efficiency[factor.substr(factor.find('.') + 1)] = share(value);
}

}  // namespace

EngineTraits with_factors(EngineTraits traits, const std::vector<std::string>& factors,
                          const std::vector<double>& logs) {
    for (std::size_t i = 0; i < factors.size(); ++i) set(traits, factors[i], std::exp(logs[i]));
    return traits;
}

Point minimised(const std::function<double(const Point&)>& cost, const Point& start,
                std::size_t evaluations) {
    struct Vertex {
        Point at;
        double cost;
    };
    std::vector<Vertex> simplex{{start, cost(start)}};
    for (std::size_t i = 0; i < start.size(); ++i) {
        Point at = start;
        at[i] += 0.3;
        simplex.push_back({at, cost(at)});
    }
    const auto lower = [](const Vertex& a, const Vertex& b) { return a.cost < b.cost; };
    for (std::size_t used = simplex.size(); used < evaluations;) {
        std::sort(simplex.begin(), simplex.end(), lower);
        if (simplex.back().cost - simplex.front().cost < 1e-9) break;
        Point centre(start.size(), 0);
        for (std::size_t v = 0; v + 1 < simplex.size(); ++v)
            for (std::size_t i = 0; i < centre.size(); ++i)
                centre[i] += simplex[v].at[i] / static_cast<double>(start.size());
        const auto tried = [&](double coefficient) {
            Point at = centre;
            for (std::size_t i = 0; i < at.size(); ++i)
                at[i] += coefficient * (simplex.back().at[i] - centre[i]);
            ++used;
            return Vertex{at, cost(at)};
        };
        const Vertex reflected = tried(-1);
        if (reflected.cost < simplex.front().cost) {
            const Vertex expanded = tried(-2);
            simplex.back() = lower(expanded, reflected) ? expanded : reflected;
        } else if (reflected.cost < simplex[simplex.size() - 2].cost) simplex.back() = reflected;
        else {
            const Vertex contracted = tried(0.5);
            if (lower(contracted, simplex.back())) simplex.back() = contracted;
            else
                for (std::size_t v = 1; v < simplex.size(); ++v) {
                    for (std::size_t i = 0; i < start.size(); ++i)
                        simplex[v].at[i] = (simplex[v].at[i] + simplex.front().at[i]) / 2;
                    simplex[v].cost = cost(simplex[v].at);
                    ++used;
                }
        }
    }
    return std::min_element(simplex.begin(), simplex.end(), lower)->at;
}

namespace {

Metrics predicted(const FitRow& row, const EngineTraits& traits) {
    ServingTarget target = row.serving.target;
    target.traits = traits;
    SimulatedRun run = simulate(CostModel(target, row.serving.settings), row.traffic);
    LoadRun load;
    load.records = std::move(run.records);
    load.duration_seconds = run.duration_seconds;
    return metrics_of(
        statistics_of(load, {row.traffic.requests().size(), row.traffic.arrival(), {}}));
}

Point fitted(const std::vector<const FitRow*>& rows, const EngineTraits& shipped,
             const FitOptions& options, const Point& start) {
    constexpr double pull = 0.001;  // (3 %)^2
    const auto cost = [&](const Point& logs) {
        const EngineTraits traits = with_factors(shipped, options.factors, logs);
        double sum = 0;
        for (const FitRow* row : rows) {
            const Metrics metrics = predicted(*row, traits);
            for (const std::string& metric : options.metrics) {
                const auto measured = row->measured.find(metric);
                const auto found = metrics.find(metric);
                if (measured == row->measured.end() || found == metrics.end() ||
                    !(found->second.value > 0))
                    continue;
                const double error = std::log(found->second.value / measured->second);
                sum += error * error;
            }
        }
        for (std::size_t i = 0; i < logs.size(); ++i)
            sum += pull * (logs[i] - start[i]) * (logs[i] - start[i]);
        return sum;
    };
    return minimised(cost, start, options.evaluations);
}

double error_of(double predicted, double measured) { return std::abs(predicted / measured - 1); }

void summarise(Fit& result) {
    std::vector<double> all;
    std::vector<double> held_out;
    for (const FitError& error : result.errors) {
        all.push_back(error_of(error.predicted, error.measured));
        held_out.push_back(error_of(error.predicted_held_out, error.measured));
    }
    std::sort(all.begin(), all.end());
    std::sort(held_out.begin(), held_out.end());
    result.median_error = percentile(all, 0.5);
    result.worst_error = all.back();
    result.held_out_median_error = percentile(held_out, 0.5);
    result.held_out_worst_error = held_out.back();
}

}  // namespace

Fit fit(const std::vector<FitRow>& rows, const FitOptions& options) {
    check_options("fitting", options.why_invalid());
    if (rows.empty()) throw UsageError("there is no sound row to fit to");
    const EngineTraits shipped = rows.front().serving.target.traits;
    Point start;
    for (const std::string& factor : options.factors)
        start.push_back(std::log(std::max(factor_of(shipped, factor), 1e-7)));
    std::vector<const FitRow*> all;
    for (const FitRow& row : rows) all.push_back(&row);
    const Point best = fitted(all, shipped, options, start);
    Fit result{with_factors(shipped, options.factors, best), {}, {}};
    for (const std::string& factor : options.factors)
        result.values[factor] = factor_of(result.traits, factor);

    const std::size_t folds = std::min(options.folds, rows.size());
    for (std::size_t fold = 0; fold < folds; ++fold) {
        std::vector<const FitRow*> others;
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (i % folds != fold || folds == 1) others.push_back(&rows[i]);
        const EngineTraits without =
            folds == 1
                ? result.traits
                : with_factors(shipped, options.factors,
                               fitted(others, shipped, options, start));  // held out of nothing
        for (std::size_t i = fold; i < rows.size(); i += folds) {
            const Metrics with_all = predicted(rows[i], result.traits);
            const Metrics held_out = predicted(rows[i], without);
            for (const std::string& metric : options.metrics)
                if (const auto measured = rows[i].measured.find(metric);
                    measured != rows[i].measured.end() && with_all.contains(metric))
                    result.errors.push_back(
                        {rows[i].name, metric, measured->second,
                         with_all.find(metric)->second.value,
                         held_out.contains(metric) ? held_out.find(metric)->second.value : 0});
        }
    }
    if (result.errors.empty())
        throw UsageError("no row has any of the metrics: " + listed(options.metrics));
    summarise(result);
    return result;
}

SpeedFactors fitted_factors(const std::vector<SpeedErrors>& rows, const SpeedPrior& prior) {
    if (rows.empty()) return {};
    const std::array<double, 3> widths{prior.compute, prior.bandwidth, prior.overhead};
    const auto factors_at = [](const Point& logs) {
        return SpeedFactors{std::exp(logs[0]), std::exp(logs[1]), std::exp(logs[2])};
    };
    constexpr double freedom = 4;
    const auto cost = [&](const Point& logs) {
        double sum = 0;
        for (std::size_t i = 0; i < widths.size(); ++i) sum += std::pow(logs[i] / widths[i], 2);
        const SpeedFactors factors = factors_at(logs);
        for (const SpeedErrors& row : rows)
            for (const double error : row(factors))
                sum += (freedom + 1) * std::log1p(error * error / freedom);
        return sum;
    };
    constexpr std::size_t evaluations = 120;
    return factors_at(minimised(cost, Point(widths.size(), 0), evaluations));
}

std::string FitOptions::why_invalid() const {
    return OptionCheck()
        .at_least("factors", factors.size(), 1)
        .at_least("metrics", metrics.size(), 1)
        .at_least("folds", folds, 1)
        .at_least("evaluations", evaluations, 1)
        .text();
}

}  // namespace servetune
