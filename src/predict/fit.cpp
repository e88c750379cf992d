// SPDX-License-Identifier: Apache-2.0
#include "fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace servetune {

using Point = std::vector<double>;  // logarithms of the factors

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
        sort(simplex, lower);
        if (simplex.back().cost - simplex.front().cost < 1e-9) break;
        Point centre(start.size(), 0);
        for (std::size_t v = 0; v + 1 < simplex.size(); ++v)
            for (std::size_t i = 0; i < centre.size(); ++i)
                centre[i] += simplex[v].at[i] / double(start.size());
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

SpeedFactors fitted_factors(const std::vector<SpeedErrors>& rows) {
    if (rows.empty()) return {};
    // Standard deviations of the logarithms of compute, bandwidth and overhead: the spread over
    // seven published tables (docs/explanation/simulator.md).
    constexpr std::array<double, 3> widths{0.6, 0.4, 0.8};
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

}  // namespace servetune
