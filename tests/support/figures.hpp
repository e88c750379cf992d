// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/benchmark_result.hpp"

#include <map>
#include <optional>
#include <string>

namespace servetune::test {

using Figures = std::map<std::string, double>;

/// Those that a result has, by their names.
inline Figures figures_of(const BenchmarkResult& result) {
    Figures found;
    for_each_figure(result, [&](const std::string& name, const std::optional<double>& figure) {
        if (figure) found[name] = *figure;
    });
    return found;
}

}  // namespace servetune::test
