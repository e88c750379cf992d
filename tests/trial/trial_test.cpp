// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "servetune/standings.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

Trial told(std::uint64_t id, std::int64_t setting, Outcome outcome) {
    Trial trial{id, Configuration({{"seqs", setting}})};
    trial.outcome = std::move(outcome);
    return trial;
}
Measurement token_rate(double value) { return {{{"total_tokens_per_second", {value}}}}; }

}  // namespace

TEST_CASE("limits are read, and judged on every workload") {
    const Limit limit = Limit::parse("success_ratio >= 0.99");
    CHECK(limit.text() == "success_ratio >= 0.99");
    CHECK(limit.holds({{"success_ratio", {1.0}}}) == true);
    CHECK(limit.holds({{"success_ratio", {0.514}}}) == false);
    CHECK(limit.holds({{"other", {0.5}}}) == std::nullopt);
    CHECK(limit.holds({{"success_ratio", {1.0}}, {"success_ratio@long", {0.9}}}) == false);
    CHECK(limit.holds({{"success_ratio_of_something", {0.1}}}) == std::nullopt);
    CHECK_FALSE(Limit::parse("latency_p99_seconds<=2").at_least);
    CHECK(Limit::parse("success_ratio > 0.9") == Limit{"success_ratio", true, 0.9});
    CHECK(Limit::parse("latency_p99_seconds < 500ms") == Limit{"latency_p99_seconds", false, 0.5});
    CHECK(Limit::parse("success_ratio >= 99%") == Limit{"success_ratio", true, 0.99});
    CHECK(Limit::parse("p95_ttft_ms <= 200", true) ==
          Limit{"time_to_first_token_p95_seconds", false, 0.2});
    CHECK_THROWS_AS(Limit::parse("tpot <= 30", true), ParseError);  // milliseconds or seconds?
    CHECK(message_of<ParseError>([] { (void)Limit::parse("ttft_p59 <= 500ms", true); }) ==
          "the unit of '500ms' does not fit 'ttft_p59', which is no known time");
    CHECK(Limit::parse("tpot <= 0.03s", true) ==
          Limit{"time_per_output_token_mean_seconds", false, 0.03});
    CHECK(Limit::parse("median_itl@chat <= 1s", true) ==
          Limit{"inter_token_latency_p50_seconds@chat", false, 1});
    CHECK(Limit::parse("ttft_p95 <= 3").metric ==
          "ttft_p95");  // of an evaluator with names of its own
    CHECK_THROWS_AS(Limit::parse("output_tokens_per_second >= 3s"), ParseError);
    CHECK_THROWS_AS(Limit::parse("latency_p99_seconds <= 99%"), ParseError);
    for (const char* bad :
         {"", "success_ratio", "success_ratio is 0.9", ">= 1", "a b >= 1", "x >= many"})
        CHECK(message_of<ParseError>([&] { (void)Limit::parse(bad); }) ==
              "a limit is written 'metric >= number' or 'metric <= number', such as "
              "'latency_p95_seconds <= 2s', got '" +
                  std::string(bad) + "'");
}

TEST_CASE("several workloads combine to a weighted geometric mean and the smallest success ratio") {
    const Metrics a{{"total_tokens_per_second", {100}}, {"success_ratio", {1}}, {"only_here", {5}}};
    const Metrics b{{"total_tokens_per_second", {400}}, {"success_ratio", {0.9}}};
    const Metrics both = combined({{"short", 1, a}, {"long", 1, b}});
    CHECK(both.at("total_tokens_per_second").value == Approx(200));
    CHECK(both.at("success_ratio").value == 0.9);
    CHECK(both.at("total_tokens_per_second@long").value == 400);
    CHECK_FALSE(both.contains("only_here"));
    CHECK(combined({{"short", 3, a}, {"long", 1, b}}).at("total_tokens_per_second").value ==
          Approx(std::pow(100.0, 0.75) * std::pow(400.0, 0.25)));
    CHECK(combined({{"short", 1, a}}) == a);
}

TEST_CASE("a gain has an interval, and the rule says whether it counts") {
    const Goal goal;
    const Gain gain = gain_between(goal, {102, 0.01, 1}, {100, 0.01, 1});
    CHECK(gain.value == Approx(0.02));
    CHECK(gain.low == Approx(1.02 * std::exp(-1.959964 * 0.01 * std::sqrt(2.0)) - 1));
    CHECK_FALSE(gain.significant());
    CHECK(meets_min_gain({Decision::Rule::published, 0.01}, gain));
    CHECK_FALSE(meets_min_gain({Decision::Rule::significant, 0.01}, gain));
    CHECK_FALSE(meets_min_gain({Decision::Rule::published, 0.03}, gain));
    CHECK(Goal{"latency_mean_seconds", Direction::minimize}.gain(0.5, 1) == Approx(1.0));
}

TEST_CASE("noise: the assumption gives way to replicates") {
    CHECK(pooled_noise(0.01, {{100}, {50}}) == Approx(0.01));
    std::vector<double> spread;
    for (int i = 0; i < 200; ++i) spread.push_back(i % 2 == 0 ? 95 : 105);
    CHECK(pooled_noise(0.01, {spread}) == Approx(0.05).epsilon(0.03));
}

TEST_CASE("the probability to be the best: equal ones share it, two have a closed form") {
    const Goal goal;
    const Estimate a{100, 0.01, 1};
    CHECK(probability_best(goal, {a, a, a, a}, 2) == Approx(0.25).epsilon(1e-6));
    const Estimate b{101, 0.02, 1};
    const double z = std::log(1.01) / std::hypot(0.01, 0.02);
    CHECK(probability_best(goal, {a, b}, 1) ==
          Approx(0.5 * std::erfc(-z / std::sqrt(2.0))).epsilon(1e-6));
    CHECK(probability_best(goal, {{100, 0, 1}, {90, 0, 1}}, 0) == 1);
    CHECK(probability_best({"latency_mean_seconds", Direction::minimize},
                           {{1, 0.01, 1}, {2, 0.01, 1}}, 0) == Approx(1));
}

TEST_CASE("standings: what passes, what is refused and why, whatever the order of telling") {
    Objective objective;
    objective.limits = {Limit::parse("success_ratio >= 0.99"),
                        Limit::parse("latency_p99_seconds <= 2")};
    const auto rate = [](double value) {
        Measurement measurement = token_rate(value);
        measurement.metrics["success_ratio"] = {1};
        measurement.metrics["latency_p99_seconds"] = {1.5};
        return measurement;
    };
    Measurement survivors = rate(15059.89);
    survivors.metrics["success_ratio"] = {0.514};
    Measurement impossible = rate(99999);
    impossible.validity = {Verdict::unsound, {{"physics"}}};
    std::vector<Trial> history{told(0, 1, rate(100)),
                               told(1, 2, survivors),
                               told(2, 3, Failure{FailureKind::out_of_memory, "no room"}),
                               told(3, 4, impossible),
                               told(4, 5, Measurement{}),
                               told(5, 1, rate(104)),
                               told(6, 6, rate(-1))};
    const Configuration usual = history.front().configuration;
    for (int round = 0; round < 2; ++round) {
        const Standings standings(history, objective, {}, usual);
        REQUIRE(standings.all().size() == 6);
        CHECK(standings.all()[0].passes());
        CHECK(standings.all()[0].estimate().mean == 102);
        CHECK(standings.all()[0].estimate().replicates == 2);
        CHECK(standings.all()[1].refused == "limit success_ratio >= 0.99 broken: 0.514");
        CHECK(standings.all()[2].refused == "out_of_memory: no room");
        CHECK(standings.all()[3].refused == "unsound measurement: physics");
        CHECK(standings.all()[4].refused == "the result has no total_tokens_per_second");
        CHECK(standings.all()[5].refused == "total_tokens_per_second = -1 is not positive");
        CHECK(standings.best() == &standings.all()[0]);
        std::reverse(history.begin(), history.end());
    }
    Decision trusting;
    trusting.enforce_audit = false;
    CHECK(Standings(history, objective, trusting, usual).best()->estimate().mean == 99999);
}

TEST_CASE("standings: a limit that could not be judged does not pass") {
    Objective objective;
    objective.limits = {Limit::parse("time_to_first_token_p95_seconds <= 0.1")};
    const auto with = [](double rate, std::vector<std::pair<std::string, double>> more) {
        Measurement measurement = token_rate(rate);
        for (const auto& [name, value] : more) measurement.metrics[name] = {value};
        return measurement;
    };
    const std::string first = "time_to_first_token_p95_seconds";
    const auto refused = [&](const Measurement& measurement,
                             const std::vector<Measurement>& others = {}) {
        std::vector<Trial> history{told(0, 1, measurement)};
        for (const Measurement& other : others)
            history.push_back(told(history.size(), static_cast<int>(history.size()) + 1, other));
        return Standings(history, objective, {}, history.front().configuration).all()[0].refused;
    };
    const std::string unjudged =
        "limit " + first + " <= 0.1 cannot be judged: the result has no " + first;
    CHECK(refused(with(100, {{first, 0.05}})).empty());
    CHECK(refused(with(100, {})) == unjudged);
    CHECK(refused(with(100, {}), {with(90, {{first, 0.05}})}) == unjudged);
    // One of several measurements is enough: which of them is right is not known.
    const std::vector<Trial> twice{told(0, 1, with(100, {{first, 0.05}})),
                                   told(1, 1, with(100, {}))};
    CHECK(Standings(twice, objective, {}, twice.front().configuration).all()[0].refused ==
          unjudged);

    // On one of two workloads: refused where another measurement has it there.
    const auto two = [&](std::vector<std::pair<std::string, double>> more) {
        more.insert(more.end(), {{"total_tokens_per_second@a", 100},
                                 {"total_tokens_per_second@b", 100},
                                 {first + "@a", 0.05}});
        return with(100, more);
    };
    const Measurement whole = two({{first + "@b", 0.05}, {first, 0.05}});
    CHECK(refused(whole, {two({})}).empty());
    CHECK(refused(two({}), {whole}) == unjudged + "@b");
    CHECK(refused(two({})).empty());  // as answers of one token have no time per token
    CHECK(has(refused(two({{first + "@b", 0.2}})), "broken"));

    // What the audit refuses, and what was ended early, is refused for that.
    Measurement unsound = with(100, {});
    unsound.validity = {Verdict::unsound, {{"unseen"}}};
    CHECK(refused(unsound) == "unsound measurement: unseen");
    unsound.validity.findings = {{"order"}, {"client"}, {"client"}, {"physics"}};
    CHECK(refused(unsound) == "unsound measurement: order, client, physics");
    Measurement lost = with(100, {});
    lost.validity = {Verdict::suspect, {{"given_up"}}};
    CHECK(has(refused(lost), "ended early"));
}

TEST_CASE(
    "standings: a failure that was not its own takes nothing from what is known, unsound repeats "
    "do where they are as many") {
    const auto standing = [](const std::vector<Outcome>& outcomes) {
        std::vector<Trial> history;
        for (const Outcome& outcome : outcomes) history.push_back(told(history.size(), 1, outcome));
        const Standings standings(history, {}, {}, history.front().configuration);
        return std::pair(standings.all()[0].refused, standings.all()[0].measured());
    };
    using Known = std::pair<std::string, std::size_t>;
    Measurement impossible = token_rate(99999);
    impossible.validity = {Verdict::unsound, {{"physics"}}};
    for (const FailureKind kind :
         {FailureKind::infrastructure, FailureKind::cancelled, FailureKind::wrong_model}) {
        const Failure failure{kind, "disk full"};
        CHECK(standing({failure, token_rate(100)}) == Known("", 1));
        CHECK(standing({token_rate(100), failure}) == Known("", 1));
        CHECK(standing({failure}).first ==
              std::string(name_in(failure_kinds, kind)) + ": disk full");
        CHECK(standing({token_rate(100), Failure{FailureKind::hung, ""}, failure}) ==
              Known("hung", 1));
    }
    CHECK(standing({token_rate(100), impossible, token_rate(101)}) == Known("", 2));
    CHECK(standing({token_rate(100), impossible}) == Known("unsound measurement: physics", 1));
    CHECK(standing({impossible}) == Known("unsound measurement: physics", 0));
}

TEST_CASE(
    "standings: a load test that was ended early cannot win, and a whole one replaces its figure") {
    Measurement lost = token_rate(121);  // more than the default's 100
    lost.validity = {Verdict::suspect, {{"given_up"}}};
    std::vector<Trial> history{told(0, 1, token_rate(100)), told(1, 2, lost)};
    {
        const Standings standings(history, {}, {}, history.front().configuration);
        CHECK(standings.all()[1].refused.starts_with("its load test was ended early"));
        CHECK(standings.all()[1].measured() == 1);  // the models learn from it
        CHECK(standings.best() == &standings.all()[0]);
    }
    history.push_back(told(2, 2, token_rate(111)));
    const Standings standings(history, {}, {}, history.front().configuration);
    CHECK(standings.all()[1].passes());
    CHECK(standings.all()[1].estimate().mean == 111);
    CHECK(standings.all()[1].estimate().replicates == 1);
    CHECK(standings.noise() == Approx(0.01));  // they are no replicates
}
