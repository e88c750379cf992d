// SPDX-License-Identifier: Apache-2.0
// A person's history of ten thousand trials.
#include "search/evidence.hpp"
#include "search/level_geometry.hpp"
#include "servetune/bayesian.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <algorithm>
#include <set>

using namespace servetune;
using namespace servetune::test;

TEST_CASE(
    "large history: of very many trials the default, what is under way, the best and an even part "
    "of the rest teach") {
    const SearchSpace space({Parameter::integer("a", 1, 2000)});
    const LevelGeometry geometry(space);
    std::vector<ConfigurationEvidence> evidence;
    for (std::int64_t a = 1; a <= 2000; ++a) {
        const Configuration configuration({{"a", a}});
        ConfigurationEvidence entry{configuration, geometry.encode(configuration), {}, 1, {}};
        entry.told = a != 1500;
        entry.pending = a == 1500;
        entry.works = a % 3 != 0;
        entry.passes = entry.works && entry.told;
        if (entry.passes) entry.means = {double(a)};
        evidence.push_back(std::move(entry));
    }
    const auto kept = worth_learning(evidence, {"rate"});
    CHECK(kept.size() == most_learned);
    CHECK(kept.front() == evidence.front());
    CHECK(std::is_sorted(kept.begin(), kept.end(), [](const auto& a, const auto& b) {
        return a.configuration < b.configuration;
    }));
    std::set<std::int64_t> values;
    std::size_t failed = 0;
    for (const auto& entry : kept) {
        values.insert(std::get<std::int64_t>(*entry.configuration.find("a")));
        failed += entry.works ? 0 : 1;
    }
    CHECK(values.contains(1500));
    for (const std::int64_t best : {2000, 1999, 1997}) CHECK(values.contains(best));
    CHECK(failed > 50);
    CHECK(*values.upper_bound(1) < 20);  // also of the worst
    CHECK(worth_learning({evidence.begin(), evidence.begin() + 100}, {"rate"}).size() == 100);
}

TEST_CASE(
    "large history: a search goes on from thousands of told trials with what they do not have") {
    const Problem problem(
        SearchSpace({Parameter::integer("seqs", 1, 200), Parameter::integer("tokens", 1, 200)}),
        {metric}, {});
    std::vector<Trial> history;
    Rng rng(3);
    std::set<Configuration> seen;
    for (std::int64_t seqs = 1; seqs <= 200; seqs += 3)
        for (std::int64_t tokens = 1; tokens <= 200; tokens += 2) {
            const Configuration one({{"seqs", seqs}, {"tokens", tokens}});
            const double figure =
                1000.0 - double((seqs - 120) * (seqs - 120) + (tokens - 60) * (tokens - 60)) / 100;
            history.push_back({history.size(), one, "", 0, "", Measurement{{{metric, {figure}}}}});
            seen.insert(one);
        }
    // The last one gains, so that nobody looks far away for want of gains.
    history.push_back({history.size(),
                       Configuration({{"seqs", std::int64_t{120}}, {"tokens", std::int64_t{60}}}),
                       "", 0, "", Measurement{{{metric, {1020}}}}});
    seen.insert(history.back().configuration);
    REQUIRE(history.size() > 6000);
    BayesianOptions options;
    options.trials = 20000;
    const Answer answer = Bayesian(options).ask(problem, history, rng);
    const auto* proposal = std::get_if<Proposal>(&answer);
    REQUIRE(proposal != nullptr);
    if (!proposal->why.starts_with("again")) {
        CHECK_FALSE(seen.contains(proposal->configuration));
        CHECK(std::abs(number(proposal->configuration, "seqs") - 120) < 15);
        CHECK(std::abs(number(proposal->configuration, "tokens") - 60) < 15);
    }
}
