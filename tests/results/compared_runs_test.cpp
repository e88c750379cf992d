// SPDX-License-Identifier: Apache-2.0
// Is B better than A, by results that exist?
#include "results/compared_runs.hpp"
#include "support/test.hpp"

#include "servetune/error.hpp"

using namespace servetune;

namespace {

using End = Comparison::Verdict;
const Goal total_rate{"total_tokens_per_second", Direction::maximize};

std::vector<PublishedResult> runs_of(const std::vector<double>& rates, double in_flight = 64) {
    std::vector<PublishedResult> result;
    for (const double value : rates) {
        PublishedResult& run = result.emplace_back();
        run.index = result.size() - 1;
        run.result.successful_requests = 100;
        run.result.input_tokens = 100 * 512;
        run.result.output_tokens = 100 * 128;
        run.result.maximum_concurrency = in_flight;
        run.result.total_tokens_per_second = value;
    }
    return result;
}

ComparedRuns opposed(const std::vector<PublishedResult>& a, const std::vector<PublishedResult>& b,
                     const Goal& goal = total_rate) {
    return compare_runs(a, b, goal, 0.01);
}

}  // namespace

TEST_CASE("compared runs: the interval is Welch's of the logarithms") {
    // scipy.stats: difference 0.046316, 4.295 degrees of freedom, of which 4 count.
    const ComparedRuns found =
        opposed(runs_of({1000, 1012, 995, 1008}), runs_of({1051, 1043, 1060}));
    REQUIRE(found.figures.size() == 1);
    const ComparedFigure& figure = found.figures.front();
    CHECK(figure.gain.value == Approx(0.0474057));
    CHECK(figure.gain.low == Approx(0.0299993));
    CHECK(figure.gain.high == Approx(0.0651063));
    CHECK(found.verdict == End::better);
    CHECK(opposed(runs_of({1051, 1043, 1060}), runs_of({1000, 1012, 995, 1008})).verdict ==
          End::worse);
}

TEST_CASE(
    "compared runs: what is within the noise is undecided, and says how many runs would tell") {
    const ComparedRuns found = opposed(runs_of({1000, 1040, 980}), runs_of({1010, 1050, 1001}));
    CHECK(found.verdict == End::undecided);
    REQUIRE(found.figures.front().runs_needed);
    CHECK(*found.figures.front().runs_needed > 3);
    CHECK(opposed(runs_of({1000, 1001, 999}), runs_of({1001, 1002, 1000})).verdict == End::same);
}

TEST_CASE("compared runs: one run of each tells nothing, one of one side is judged by the other") {
    const ComparedRuns one = opposed(runs_of({1000}), runs_of({2000}));
    CHECK(one.verdict == End::undecided);
    CHECK_FALSE(one.figures.front().gain.has_interval());
    CHECK_FALSE(one.figures.front().runs_needed);
    CHECK(opposed(runs_of({1000, 1012, 995, 1008}), runs_of({1100})).verdict == End::better);
}

TEST_CASE("compared runs: each load is held against itself, and one that is worse decides") {
    const auto both = [](std::vector<PublishedResult> first,
                         const std::vector<PublishedResult>& second) {
        first.insert(first.end(), second.begin(), second.end());
        return first;
    };
    const auto a = both(runs_of({1000, 1001, 999}), runs_of({100, 101, 99}, 1));
    ComparedRuns found = opposed(a, both(runs_of({1100, 1101, 1099}), runs_of({80, 81, 79}, 1)));
    REQUIRE(found.figures.size() == 2);
    CHECK(found.verdict == End::worse);
    found = opposed(a, runs_of({1100, 1101, 1099}));
    CHECK(found.verdict == End::better);
    REQUIRE(found.remarks.size() == 1);
    CHECK(found.remarks.front().starts_with("only A was measured with "));
    CHECK_THROWS_AS(opposed(runs_of({1000}, 8), runs_of({1000}, 64)), UsageError);
}

TEST_CASE("compared runs: other models are not compared, and unsound runs do not count") {
    auto a = runs_of({1000, 1001, 999}), b = runs_of({1100, 1101, 1099});
    a.front().model = "org/one";
    b.front().model = "org/two";
    CHECK_THROWS_AS(opposed(a, b), UsageError);
    a.front().model = b.front().model = "";
    b.front().validity.verdict = Verdict::unsound;
    b.front().validity.findings = {{"complete", "90", "100", "requests were lost"}};
    const ComparedRuns found = opposed(a, b);
    CHECK(found.figures.front().b.size() == 2);
    REQUIRE(found.remarks.size() == 1);
    CHECK(found.remarks.front() == "run 1 of B does not count: requests were lost");
    b.front().validity.verdict = Verdict::suspect;
    const ComparedRuns doubtful = opposed(a, b);
    CHECK(doubtful.figures.front().b.size() == 3);
    CHECK(doubtful.remarks ==
          std::vector<std::string>{"run 1 of B is suspect: requests were lost"});
}

TEST_CASE("compared runs: a label of one side is no load, and answers of other lengths are said") {
    auto a = runs_of({1000, 1001, 999}), b = runs_of({1100, 1101, 1099});
    for (PublishedResult& run : a) run.labels = {"baseline"};
    for (PublishedResult& run : b) {
        run.labels = {"new"};
        run.result.output_tokens = 100 * 100;
    }
    const ComparedRuns found = opposed(a, b, Goal{.metric = ""});
    CHECK(found.verdict == End::better);
    CHECK(found.figures.front().metric == "total_tokens_per_second");
    CHECK(found.remarks ==
          std::vector<std::string>{"answers of A have 128 tokens on average, of B 100"});
    CHECK_THROWS_AS(opposed(a, b, Goal{.metric = "ttfx"}), UsageError);
}

TEST_CASE("compared runs: of times less is better") {
    auto a = runs_of({1000, 1001, 999}), b = a;
    for (PublishedResult& run : a) run.result.time_to_first_token.mean = 0.2;
    for (PublishedResult& run : b) run.result.time_to_first_token.mean = 0.1;
    const ComparedRuns found =
        opposed(a, b, {"time_to_first_token_mean_seconds", Direction::minimize});
    CHECK(found.verdict == End::better);
    CHECK(found.figures.front().gain.value == Approx(1));
}
