// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/figures.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"
#include "servetune/result_file.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

/// Samples of result files (tests/data/results), and what tests of their readers ask of them.
namespace servetune::test {

using Unread = std::map<std::string, std::string>;

inline std::string sample_text(const std::string& name) {
    return read_file(std::filesystem::path(SERVETUNE_SOURCE "/tests/data/results") / name);
}

inline std::vector<PublishedResult> results_in(const std::string& content) {
    static const std::vector<Engine> engines =
        shipped_catalogue.engines();  // thousands of files below
    return read_results(content, "f", engines);
}

inline std::vector<PublishedResult> sample_results(const std::string& name) {
    return results_in(sample_text(name));
}

inline std::string refusal(const std::string& content) {
    return message_of<ParseError>([&] { (void)results_in(content); });
}

/// Each figure that is wanted and no other, to nine digits.
inline void check_figures(const PublishedResult& result, Figures want) {
    for (const auto& [name, value] : figures_of(result.result)) {
        INFO(name << " " << value);
        REQUIRE(want.contains(name));
        CHECK(value == Approx(want.at(name)).epsilon(1e-9).margin(0));
        want.erase(name);
    }
    INFO("missing: " << (want.empty() ? "" : want.begin()->first));
    CHECK(want.empty());
}

/// A family of times whose p90 and p95 are absent unless they are factors of the mean too.
inline void add_times(Figures& into, const std::string& family, double mean, double p90 = 0,
                      double p95 = 0, double deviation = 0.1) {
    into[family + "_mean_seconds"] = mean;
    into[family + "_p50_seconds"] = mean * 0.98;
    if (p90 > 0) into[family + "_p90_seconds"] = mean * p90;
    if (p95 > 0) into[family + "_p95_seconds"] = mean * p95;
    into[family + "_p99_seconds"] = mean * 1.3;
    if (deviation > 0) into[family + "_standard_deviation_seconds"] = mean * deviation;
}

}  // namespace servetune::test
