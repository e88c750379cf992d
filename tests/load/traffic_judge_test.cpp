// SPDX-License-Identifier: Apache-2.0
// Whether a server's traffic is still the study's: changes are found soon, the same traffic hardly
// ever called another one, and no number of requests makes a hair significant.
#include "load/traffic_judge.hpp"

#include "servetune/detail/base/rng.hpp"
#include "support/test.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

using namespace servetune;

namespace {

const std::vector<double> token_bounds{1,   2,   5,    10,   20,   50,    100,
                                       200, 500, 1000, 2000, 5000, 10000, 20000};
const std::vector<double> time_bounds{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3};

void observe(Histogram& histogram, const std::vector<double>& bounds, double value) {
    if (histogram.counts.empty())
        histogram = {bounds, std::vector<double>(bounds.size() + 1), 0, 0};
    ++histogram.counts[static_cast<std::size_t>(
        std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin())];
    ++histogram.count;
    histogram.sum += value;
}

/// Users whose requests have lognormal lengths and come at a rate that wanders, as days do: by
/// 15 % with a memory of ten windows; the mean length wanders by 5 %.
struct MadeUpUsers {
    double rate = 2;
    double prompt_mean = 700;
    double output_mean = 150;
    double spread = 0.8;  ///< of ln(length)
    double hits = 0.3;
    double per_token = 0.03;
    bool wander = true;

    [[nodiscard]] double length(double mean, Rng& rng) const {
        return std::max(1.0,
                        std::round(mean * std::exp(spread * rng.normal() - spread * spread / 2)));
    }
    ServerWindow window(double seconds, Rng& rng) {
        constexpr double memory = 0.9;
        const double fresh = std::sqrt(1 - memory * memory);
        rate_ = memory * rate_ + fresh * rng.normal();
        mean_ = memory * mean_ + fresh * rng.normal();
        const double busy = wander ? std::exp(0.15 * rate_) : 1;
        const double longer = wander ? std::exp(0.05 * mean_) : 1;
        const double mean_count = rate * busy * seconds;
        const auto count =
            std::max(0.0, std::round(mean_count + std::sqrt(mean_count) * rng.normal()));
        ServerWindow result;
        result.seconds = seconds;
        Histogram prompts{token_bounds, std::vector<double>(token_bounds.size() + 1), 0, 0};
        Histogram outputs = prompts;
        Histogram latency{time_bounds, std::vector<double>(time_bounds.size() + 1), 0, 0};
        Histogram per_output = latency;
        for (double i = 0; i < count; ++i) {
            const double output = length(output_mean, rng);
            observe(prompts, token_bounds, length(prompt_mean * longer, rng));
            observe(outputs, token_bounds, output);
            observe(latency, time_bounds, output * per_token);
            observe(per_output, time_bounds, per_token * std::exp(0.1 * rng.normal()));
        }
        result.counters = {
            {"prompt_tokens", prompts.sum},
            {"generated_tokens", outputs.sum},
            {"prefix_queried_tokens", prompts.sum},
            {"prefix_hit_tokens", prompts.sum * std::clamp(hits + 0.03 * rng.normal(), 0.0, 1.0)}};
        result.histograms = {{"request_prompt_tokens", prompts},
                             {"request_generated_tokens", outputs},
                             {"latency_seconds", latency},
                             {"per_token_seconds", per_output}};
        return result;
    }
    /// A study of 500 of these requests.
    [[nodiscard]] ExpectedTraffic study(Rng& rng) const {
        ExpectedTraffic result;
        result.requests_per_second = rate;
        for (int i = 0; i < 500; ++i) {
            result.prompt.each.push_back(length(prompt_mean, rng));
            result.output.each.push_back(length(output_mean, rng));
        }
        for (auto* lengths : {&result.prompt, &result.output}) {
            std::sort(lengths->each.begin(), lengths->each.end());
            double sum = 0;
            for (const double one : lengths->each) sum += one;
            lengths->mean = sum / 500;
            lengths->shape_known = true;
        }
        result.hit_share = hits;
        result.per_token_seconds = per_token;
        result.per_token_error = 0.01;
        return result;
    }

private:
    double rate_ = 0, mean_ = 0;
};

const JudgedTrait& trait(const std::vector<JudgedTrait>& traits, const std::string& name) {
    const auto found = std::find_if(traits.begin(), traits.end(),
                                    [&](const JudgedTrait& one) { return one.name == name; });
    REQUIRE(found != traits.end());
    return *found;
}

/// Windows of other traffic until it is called changed; at most 40.
int windows_until_changed(TrafficJudge& judge, MadeUpUsers& users, Rng& rng) {
    for (int i = 1; i <= 40; ++i) {
        judge.add(users.window(60, rng));
        if (likeness_of(judge.traffic()) == Likeness::changed) return i;
    }
    return 41;
}

/// Days of the study's own traffic, by minutes, on which it was called another one at any moment;
/// and those on which the server was called slower.
struct FalseAlarms {
    int traffic = 0;
    int speed = 0;
    int same = 0;  ///< days at whose end it is called the same
    std::string which{};
};
FalseAlarms false_alarms(int days, const std::vector<double>& rates, std::uint64_t seed) {
    FalseAlarms result;
    for (int day = 0; day < days; ++day) {
        Rng rng(derive_seed(seed, static_cast<std::uint64_t>(day)));
        MadeUpUsers users;
        users.rate = rates[static_cast<std::size_t>(day) % rates.size()];
        TrafficJudge judge(users.study(rng));
        bool traffic = false;
        bool speed = false;
        std::size_t judged = 0;
        double seen = 0;
        for (int minute = 0; minute < 1440; ++minute) {
            const ServerWindow window = users.window(60, rng);
            judge.add(window);
            seen += window.requests().value_or(0);
            if (seen < TrafficJudge::requests_in_batch)
                continue;  // no new batch: nothing new to judge
            seen = 0;
            ++judged;
            for (const JudgedTrait& one : judge.traffic())
                if (one.likeness == Likeness::changed && !std::exchange(traffic, true))
                    result.which += one.name + "; ";
            speed = speed || judge.speed().likeness == Likeness::changed;
        }
        result.traffic += traffic ? 1 : 0;
        result.speed += speed ? 1 : 0;
        result.same += likeness_of(judge.traffic()) == Likeness::same ? 1 : 0;
    }
    return result;
}

}  // namespace

TEST_CASE("traffic judge: the study's own traffic is the same, after five batches") {
    Rng rng(1);
    MadeUpUsers users;
    TrafficJudge judge(users.study(rng));
    for (int i = 0; i < 4; ++i) judge.add(users.window(60, rng));
    CHECK(likeness_of(judge.traffic()) == Likeness::undecided);
    CHECK(trait(judge.traffic(), "prompt tokens").because == "4 of the 5 batches that it takes");
    for (int i = 0; i < 16; ++i) judge.add(users.window(60, rng));
    for (const JudgedTrait& one : judge.traffic()) {
        INFO(one.name << ": " << one.because);
        CHECK(one.likeness == Likeness::same);
        CHECK(one.low);
    }
    CHECK(judge.speed().likeness == Likeness::same);
}

TEST_CASE("traffic judge: each kind of change is found within fifteen windows and named") {
    struct Change {
        const char* trait;
        void (*make)(MadeUpUsers&);
    };
    for (const Change& change :
         {Change{"requests per second", [](MadeUpUsers& users) { users.rate *= 2; }},
          Change{"prompt tokens", [](MadeUpUsers& users) { users.prompt_mean *= 1.8; }},
          Change{"output tokens", [](MadeUpUsers& users) { users.output_mean /= 2; }},
          Change{"share of prompt tokens from the prefix cache",
                 [](MadeUpUsers& users) { users.hits = 0.05; }}}) {
        INFO(change.trait);
        Rng rng(2);
        MadeUpUsers users;
        TrafficJudge judge(users.study(rng));
        for (int i = 0; i < 30; ++i) judge.add(users.window(60, rng));
        REQUIRE(likeness_of(judge.traffic()) == Likeness::same);
        change.make(users);
        CHECK(windows_until_changed(judge, users, rng) <= 15);
        CHECK(trait(judge.traffic(), change.trait).likeness == Likeness::changed);
        CHECK(judge.speed().likeness == Likeness::not_known);
    }
}

TEST_CASE("traffic judge: the same mean with another spread is another traffic") {
    Rng rng(3);
    MadeUpUsers users;
    users.spread = 0.1;
    TrafficJudge judge(users.study(rng));
    for (int i = 0; i < 20; ++i) judge.add(users.window(60, rng));
    REQUIRE(likeness_of(judge.traffic()) == Likeness::same);
    users.spread = 1.2;
    CHECK(windows_until_changed(judge, users, rng) <= 15);
    const auto traits = judge.traffic();
    CHECK((trait(traits, "prompt tokens").likeness == Likeness::changed ||
           trait(traits, "output tokens").likeness == Likeness::changed));
}

TEST_CASE(
    "traffic judge: a change of a twentieth stays the same, however many requests there are") {
    Rng rng(4);
    MadeUpUsers users;
    users.wander = false;
    users.rate = 20;
    TrafficJudge judge(users.study(rng));
    users.prompt_mean *= 1.05;
    users.rate *= 1.05;
    for (int i = 0; i < 200; ++i) {
        judge.add(users.window(60, rng));
        CHECK(likeness_of(judge.traffic()) != Likeness::changed);
    }
    CHECK(likeness_of(judge.traffic()) == Likeness::same);
}

TEST_CASE("traffic judge: less load is no change until a whole day was below the study's") {
    Rng rng(5);
    MadeUpUsers users;
    TrafficJudge judge(users.study(rng));
    users.rate /= 3;
    for (int i = 0; i < 60; ++i) judge.add(users.window(60, rng));
    CHECK(trait(judge.traffic(), "requests per second").likeness == Likeness::less_load);
    CHECK(likeness_of(judge.traffic()) == Likeness::same);
    for (int i = 0; i < 24; ++i) judge.add(users.window(3600, rng));
    CHECK(trait(judge.traffic(), "requests per second").likeness == Likeness::changed);
}

TEST_CASE("traffic judge: a server that got slower is told from another traffic") {
    Rng rng(6);
    MadeUpUsers users;
    TrafficJudge judge(users.study(rng));
    users.per_token *= 1.5;
    for (int i = 0; i < 20; ++i) judge.add(users.window(60, rng));
    CHECK(likeness_of(judge.traffic()) == Likeness::same);
    CHECK(judge.speed().likeness == Likeness::changed);
    CHECK(*judge.speed().now == Approx(0.045).epsilon(0.02));
    users.per_token /= 3;
    for (int i = 0; i < 20; ++i) judge.add(users.window(60, rng));
    CHECK(judge.speed().because == "faster than the study measured");
}

TEST_CASE("traffic judge: what study or page do not say is not judged") {
    CHECK(likeness_of(TrafficJudge(ExpectedTraffic{}).traffic()) == Likeness::undecided);
    Rng rng(7);
    MadeUpUsers users;
    TrafficJudge judge(users.study(rng));
    for (int i = 0; i < 20; ++i) {
        ServerWindow window = users.window(60, rng);
        window.histograms.clear();  // llama.cpp
        judge.add(window);
    }
    CHECK(trait(judge.traffic(), "prompt tokens").likeness == Likeness::not_known);
    CHECK(trait(judge.traffic(), "requests per second").likeness == Likeness::not_known);
    CHECK(trait(judge.traffic(), "share of prompt tokens from the prefix cache").likeness ==
          Likeness::same);
    CHECK(trait(judge.traffic(), "prompt tokens per output token").likeness == Likeness::same);
    users.prompt_mean *= 2;
    for (int i = 0; i < 20; ++i) {
        ServerWindow window = users.window(60, rng);
        window.histograms.clear();
        judge.add(window);
    }
    CHECK(trait(judge.traffic(), "prompt tokens per output token").likeness == Likeness::changed);
    TrafficJudge silent(users.study(rng));
    for (int i = 0; i < 100; ++i) silent.add({.seconds = 60});
    CHECK(likeness_of(silent.traffic()) == Likeness::undecided);
}

TEST_CASE("traffic judge: hardly a day of the study's own traffic is called another one") {
    const FalseAlarms alarms = false_alarms(12, {0.05, 0.5, 2}, 8);
    INFO(alarms.which);
    CHECK(alarms.traffic == 0);
    CHECK(alarms.speed == 0);
    CHECK(alarms.same >= 8);
}

TEST_CASE("traffic judge: at most one day in a hundred raises a false alarm", "[.long]") {
    const FalseAlarms alarms = false_alarms(1000, {0.02, 0.1, 0.5, 2}, 9);
    WARN("of 1000 days another traffic on " << alarms.traffic << ", slower on " << alarms.speed
                                            << ", the same at the end of " << alarms.same << " ("
                                            << alarms.which << ")");
    CHECK(alarms.traffic <= 10);  // 6, on which the load or the lengths were off for ten minutes
    CHECK(alarms.speed <= 10);
}
