// SPDX-License-Identifier: Apache-2.0
// The largest load that keeps the limits: found closely with few points, also from noisy answers;
// what has no such edge is said to have none.
#include "load/capacity.hpp"

#include "servetune/error.hpp"
#include "servetune/rng.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <cmath>
#include <limits>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr double infinite_level = std::numeric_limits<double>::infinity();

Arrival arrival_looked_for(Arrival::Kind kind, LoadSearch search = {}) {
    Arrival arrival{.kind = kind};
    arrival.search = search;
    return arrival;
}

/// A server that waits as a queue with one place does: time to first token = 0.1 s / (1 - load /
/// most).
struct OnePlaceQueue {
    double most = 10;  ///< requests a second
    double cv = 0;     ///< of an answer

    [[nodiscard]] LoadPoint at(double level, Rng& rng) const {
        const double load = std::min(level, 3 * most);
        const double first_token =
            load < most ? std::min(0.1 / (1 - load / most), 20.0) : 20 * load / most;
        return {.level = level,
                .metrics = {{"time_to_first_token_p95_seconds",
                             {first_token * std::exp(cv * rng.normal())}},
                            {"requests_per_second", {std::min(load, most)}},
                            {"success_ratio", {1}}}};
    }
    [[nodiscard]] double capacity(double bound) const { return most * (1 - 0.1 / bound); }
};

Capacity searched_capacity(const Arrival& arrival, const OnePlaceQueue& queue, double bound,
                           std::uint64_t seed = 1, std::size_t requests = 200) {
    Rng rng(seed);
    const std::vector<Limit> limits{{"time_to_first_token_p95_seconds", false, bound}};
    CapacitySearch search(arrival, requests);
    while (const auto level = search.next()) {
        LoadPoint point = queue.at(*level, rng);
        point.limit_utilization = limit_utilization_of(limits, point.metrics).value();
        search.tell(std::move(point));
    }
    return search.result();
}

/// A study whose load is looked for, on the simulator.
struct SimulatedCapacity {
    StudySetup setup;

    explicit SimulatedCapacity(const std::string& arrival, const std::string& limit,
                               const std::string& noise = "{}",
                               const std::string& goal = "request_rate", std::size_t requests = 300)
        : setup(set_up(load_study(
              folder().write(
                  "study.yaml",
                  "study: own\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: vllm\nworkloads:\n"
                  "  - {workload: chat, dataset: {kind: random, input_tokens: 512, output_tokens: "
                  "64, "
                  "range_ratio: 0.5}, requests: " +
                      std::to_string(requests) + ", arrival: " + arrival +
                      "}\nobjective: {maximize: " + goal + ", limits: [\"" + limit +
                      "\"]}\nothers: default\nspace: {max_num_seqs: {choice: [engine, 16]}}\n"
                      "evaluator: {simulate: " +
                      noise + "}\n"),
              Catalogue(search_spaces)))) {}

    [[nodiscard]] Metrics metrics(std::uint64_t trial = 0) const {
        const Outcome outcome = setup.evaluator->evaluate(
            setup.problem->space.default_configuration(), {.trial = trial});
        REQUIRE(std::holds_alternative<Measurement>(outcome));
        return std::get<Measurement>(outcome).metrics;
    }

private:
    static const TemporaryFolder& folder() {
        static const TemporaryFolder place;
        return place;
    }
};

/// The rate at which the limit breaks, by halving, each rate measured as a workload of its own,
/// without noise.
double true_rate(const std::string& limit_text) {
    const Limit limit = Limit::parse(limit_text, true);
    double low = 0.5;
    double high = 200;
    while (high / low > 1.002) {
        const double rate = std::sqrt(low * high);
        const bool keeps = limit
                               .holds(SimulatedCapacity("{rate: " + std::to_string(rate) + "}",
                                                        limit_text, "{}", "total_tokens_per_second")
                                          .metrics())
                               .value();
        (keeps ? low : high) = rate;
    }
    return std::sqrt(low * high);
}

/// What the simulated server ends a second while it always has work.
double most_it_serves() {
    return SimulatedCapacity("{rate: inf}", "success_ratio >= 0.99", "{}",
                             "total_tokens_per_second", 3000)
        .metrics()
        .at("requests_per_second")
        .value;
}

/// A server that ends ten requests a second, each a second after it is taken up.
LoadPoint of_ten_a_second(double level, double requests) {
    const double arriving = requests / level;
    const double duration = std::max(arriving, requests / 10) + 1;
    const double wait = duration - 1 - arriving;  // of the last request
    return {.level = level,
            .metrics = {{"successful_requests", {requests}},
                        {"failed_requests", {0}},
                        {"success_ratio", {1}},
                        {"duration_seconds", {duration}},
                        {"requests_per_second", {requests / duration}},
                        {"time_to_first_token_p95_seconds", {0.01 + 0.95 * wait}}}};
}

std::vector<Served> served_of(std::vector<LoadPoint> points) {
    judge_served(points);
    std::vector<Served> result;
    for (const LoadPoint& point : points) result.push_back(point.served);
    return result;
}

}  // namespace

TEST_CASE(
    "capacity: short and long tests tell what the server falls behind from its last answers") {
    for (const double requests : {50.0, 100.0, 1000.0, 10000.0}) {
        INFO(requests << " requests");
        const auto at = [&](double level) { return of_ten_a_second(level, requests); };
        // At 9.9 a second 50 requests are served at 8.3 a second, at 12 and more too.
        CHECK(
            served_of({at(8), at(9.9), at(11), at(12), at(30), at(infinite_level)}) ==
            std::vector{Served::yes, Served::yes, Served::no, Served::no, Served::no, Served::yes});
    }
    const auto few = [](double level) { return of_ten_a_second(level, 10); };
    CHECK(served_of({few(4), few(12), few(infinite_level)}) ==
          std::vector{Served::yes, Served::undecided, Served::yes});
    CHECK(served_of({of_ten_a_second(9, 40)}) ==
          std::vector{Served::undecided});  // 7.3 a second, and nothing to compare
    CHECK(served_of({of_ten_a_second(9, 4000)}) == std::vector{Served::yes});  // 8.98
    CHECK(served_of({of_ten_a_second(20, 4000)}) ==
          std::vector{Served::undecided});  // no lower load says how long answers take
    LoadPoint late = of_ten_a_second(5, 1000);
    late.validity.findings.push_back({"sent_late"});
    CHECK(served_of({late}) == std::vector{Served::no});
}

TEST_CASE("capacity: what a burst keeps of the limits is no load that is sustained") {
    Workload workload{.name = "w"};
    workload.arrival = arrival_looked_for(Arrival::Kind::largest_rate, {.points = 10});
    const std::vector<Limit> limits{Limit::parse("ttft_p95 <= 500ms", true)};
    const auto found = [&](std::size_t requests) {
        return std::get<Capacity>(find_capacity(
            workload, requests, limits,
            [&](const Workload& at_level) -> std::variant<LoadPoint, Failure> {
                const bool at_once = at_level.arrival.kind == Arrival::Kind::all_at_once;
                return of_ten_a_second(
                    at_once ? infinite_level : at_level.arrival.requests_per_second,
                    double(at_level.requests.value_or(std::int64_t(requests))));
            }));
    };
    // 40 requests at 11.5 a second end 0.52 s late: 95 % wait less than 500 ms, at 15 % too much.
    for (const std::size_t requests : {std::size_t{40}, std::size_t{400}}) {
        CHECK(found(requests).end == Capacity::End::found);
        CHECK(found(requests).level == Approx(10).epsilon(0.05));
    }
    const Capacity undecided = found(10);
    CHECK(undecided.end == Capacity::End::too_few_requests);
    CHECK(undecided.level == undecided.low.value());
    CHECK(undecided.level <= 10);
    const Measurement measured = measurement_of(undecided, workload.arrival);
    CHECK(measured.validity.verdict == Verdict::suspect);
    REQUIRE(measured.validity.findings.size() == 1);
    CHECK(has(measured.validity.findings.front().cause, "use more requests"));
}

TEST_CASE("capacity: a simulated server sustains what it serves, however many requests say so") {
    const double truth = most_it_serves();
    for (const std::size_t requests : {std::size_t{100}, std::size_t{300}, std::size_t{1000}}) {
        const Metrics found =
            SimulatedCapacity("{rate: inf}", "ttft_p95 <= 400ms", "{}", "request_rate", requests)
                .metrics();
        INFO(requests << ": true " << truth << ", found "
                      << found.at("sustained_requests_per_second").value);
        // In the 13 s of a thousand requests more come than it ends, before the first waits.
        CHECK(found.at("sustained_requests_per_second").value < 1.1 * truth);
        CHECK(found.at("sustained_requests_per_second").value > 0.8 * truth);
    }
}

TEST_CASE(
    "capacity: six points find the largest rate within 3 %, also from answers with 1 % noise") {
    const OnePlaceQueue queue{.most = 10, .cv = 0.01};
    for (const double bound : {0.2, 0.3, 0.5, 1.0, 4.0})
        for (std::uint64_t seed = 0; seed < 40; ++seed) {
            const Capacity found = searched_capacity(
                arrival_looked_for(Arrival::Kind::largest_rate), queue, bound, seed);
            INFO(bound << " s, seed " << seed << ": " << found.level);
            CHECK(found.end == Capacity::End::found);
            CHECK(found.points.size() <= 6);
            CHECK(found.level == Approx(queue.capacity(bound)).epsilon(0.03));
        }
}

TEST_CASE("capacity: of requests in flight the very number is found, given points enough") {
    const OnePlaceQueue queue{.most = 100};
    for (const double bound : {0.15, 0.3, 0.7}) {
        const Capacity found = searched_capacity(
            arrival_looked_for(Arrival::Kind::largest_concurrency, {.points = 20, .within = 0.001}),
            queue, bound);
        CHECK(found.end == Capacity::End::found);
        CHECK(found.low.value() == std::floor(queue.capacity(bound)));
        CHECK(found.high.value() == std::floor(queue.capacity(bound)) + 1);
    }
}

TEST_CASE("capacity: where there is no edge, the end says which one is missing") {
    const OnePlaceQueue queue{.most = 10};
    const Capacity too_strict = searched_capacity(
        arrival_looked_for(Arrival::Kind::largest_rate, {.from = 1.0}), queue, 0.105);
    CHECK(too_strict.end == Capacity::End::fails_at_lowest);
    CHECK(too_strict.level == 1);
    CHECK(too_strict.text("requests a second") ==
          "the lowest load that may be tried, 1 requests a second, breaks a limit");

    const Capacity bounded =
        searched_capacity(arrival_looked_for(Arrival::Kind::largest_rate, {.to = 5.0}), queue, 1);
    CHECK(bounded.end == Capacity::End::edge_not_reached);
    CHECK(bounded.points.size() == 1);
    CHECK(bounded.level == 5);

    const Capacity lenient =
        searched_capacity(arrival_looked_for(Arrival::Kind::largest_rate), queue, 100);
    CHECK(lenient.end == Capacity::End::edge_not_reached);
    CHECK(lenient.level == 10);  // what it did under all of them at once
    CHECK(lenient.text("requests a second") ==
          "the highest load that may be tried (all requests at once) keeps all limits");

    const Measurement as_outcome =
        measurement_of(too_strict, arrival_looked_for(Arrival::Kind::largest_rate));
    REQUIRE(as_outcome.validity.findings.size() == 1);
    CHECK(as_outcome.validity.findings.front().id == "capacity");
    CHECK(as_outcome.validity.verdict == Verdict::suspect);
    CHECK(
        measurement_of(bounded, arrival_looked_for(Arrival::Kind::largest_rate)).validity.verdict ==
        Verdict::suspect);
}

TEST_CASE(
    "capacity: the figures are those of a load that kept the limits, and bounds of the user are "
    "kept") {
    const OnePlaceQueue queue{.most = 10, .cv = 0.02};
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const Capacity found = searched_capacity(
            arrival_looked_for(Arrival::Kind::largest_rate, {.from = 2.0, .to = 12.0}), queue, 0.5,
            seed);
        CHECK(found.points[found.shown].kept());
        for (const LoadPoint& point : found.points) {
            CHECK(point.level >= 2);
            CHECK(point.level <= 12);
        }
        const Measurement measured =
            measurement_of(found, arrival_looked_for(Arrival::Kind::largest_rate));
        CHECK(measured.metrics.at("time_to_first_token_p95_seconds").value <= 0.5);
        CHECK(measured.metrics.at("sustained_requests_per_second").value == found.level);
    }
}

TEST_CASE(
    "capacity: a rate that the server falls behind breaks, though its times keep the limits") {
    const Arrival looked_for =
        arrival_looked_for(Arrival::Kind::largest_rate, {.from = 1.0, .to = 10.0, .points = 10});
    CapacitySearch search(looked_for, 100);
    for (const double level : {10.0, 4.0, 7.0}) {
        LoadPoint point;
        if (level > 5) point.validity.findings.push_back({"rate"});
        judge(point, {}, search.at(level));
        CHECK(point.level == level);
        CHECK(point.kept() == (level < 5));
        search.tell(std::move(point));
    }
    const Capacity found = search.result();
    CHECK(found.low == 4);
    CHECK(found.high == 7);
}

TEST_CASE("capacity: answers that do not rise are smoothed, not believed one by one") {
    CapacitySearch search(
        arrival_looked_for(Arrival::Kind::largest_rate, {.from = 1.0, .to = 10.0, .points = 10}),
        100);
    const std::vector<std::pair<double, double>> answers{
        {10, 3}, {2, 0.4}, {4, 1.05}, {5, 0.8}, {8, 1.6}};
    for (const auto& [level, limit_utilization] : answers)
        search.tell({.level = level, .limit_utilization = limit_utilization});
    const Capacity found = search.result();
    CHECK(found.low == 5);  // 4 and 5 together keep it: sqrt(1.05 x 0.8) < 1
    CHECK(found.high == 8);
    CHECK(found.points[found.shown].level == 5);
    CHECK(found.level > 5);
    CHECK(found.level < 8);
}

TEST_CASE("capacity: requests that fail break what no limit names, and a failure ends the search") {
    Workload workload{.name = "w"};
    workload.arrival = arrival_looked_for(Arrival::Kind::largest_rate, {.from = 1.0, .to = 8.0});
    const std::vector<Limit> limits{{"time_to_first_token_p95_seconds", false, 10}};
    const MeasureLoad drops = [](const Workload& at_level) -> std::variant<LoadPoint, Failure> {
        const double rate = at_level.arrival.requests_per_second;
        return LoadPoint{.metrics = {{"time_to_first_token_p95_seconds", {0.1}},
                                     {"success_ratio", {rate > 4 ? 0.9 : 1}},
                                     {"requests_per_second", {rate}}}};
    };
    const auto found = find_capacity(workload, 100, limits, drops);
    REQUIRE(std::holds_alternative<Capacity>(found));
    CHECK(std::get<Capacity>(found).low.value() <= 4);
    CHECK(std::get<Capacity>(found).high.value() > 4);
    CHECK(std::get<Capacity>(found).level == Approx(4).epsilon(0.1));

    const auto died = find_capacity(workload, 100, limits, [](const Workload& /*load*/) {
        return Failure{FailureKind::hung, "silent"};
    });
    REQUIRE(std::holds_alternative<Failure>(died));
    CHECK(std::get<Failure>(died).message == "silent");
    const auto blind = find_capacity(workload, 100, limits, [](const Workload& /*load*/) {
        return LoadPoint{.metrics = {{"success_ratio", {1}}}};
    });
    REQUIRE(std::holds_alternative<Failure>(
        blind));  // answers in one piece have no time to the first token
    CHECK(has(std::get<Failure>(blind).message,
              "no figure for the limit time_to_first_token_p95_seconds"));
}

TEST_CASE(
    "capacity: limit_utilization and service limits read what grows with load and nothing else") {
    const std::vector<Limit> limits{
        Limit::parse("ttft_p95 <= 500ms", true), Limit::parse("ttft_p99 <= 2s", true),
        Limit::parse("tpot_mean < 50ms", true), Limit::parse("success_ratio >= 99%"),
        Limit::parse("output_tokens_per_second >= 100")};
    CHECK(grows_with_load(limits[0]));
    CHECK(grows_with_load(limits[3]));
    CHECK_FALSE(grows_with_load(limits[4]));
    Metrics metrics{{"time_to_first_token_p95_seconds", {0.4}},
                    {"time_per_output_token_mean_seconds", {0.045}},
                    {"success_ratio", {1}}};
    CHECK(limit_utilization_of(limits, metrics).value() == Approx(0.9));
    metrics["success_ratio"] = {0.98};
    CHECK(limit_utilization_of(limits, metrics).value() == infinite_level);
    CHECK_FALSE(limit_utilization_of(limits, {{"output_tokens_per_second", {1}}}));
    const ServiceLimits service = service_limits(limits);
    CHECK(service.time_to_first_token_seconds == 0.5);
    CHECK(service.time_per_output_token_seconds == 0.05);
    CHECK_FALSE(service.latency_seconds);
}

TEST_CASE(
    "capacity: a limit counts for the workload that it names, and only those that a load test has "
    "grow with load") {
    const std::vector<Limit> limits{Limit::parse("ttft_p95@chat <= 1s", true),
                                    Limit::parse("latency_p95_seconds <= 9")};
    REQUIRE(limits_of_workload(limits, "chat").size() == 2);
    CHECK(limits_of_workload(limits, "chat").front().metric == "time_to_first_token_p95_seconds");
    REQUIRE(limits_of_workload(limits, "documents").size() == 1);
    CHECK(limits_of_workload(limits, "documents").front().metric == "latency_p95_seconds");
    CHECK_FALSE(grows_with_load({"duration_seconds", false, 60}));  // falls as the rate rises
    CHECK_FALSE(grows_with_load({"trial_start_seconds", false, 60}));
    CHECK(with_least_success(limits).back().metric == "success_ratio");
    CHECK(with_least_success({{"success_ratio", true, 0.5}}).size() == 1);
}

TEST_CASE("capacity: a low load gets fewer requests, so that a search does not take hours") {
    const OnePlaceQueue queue{.most = 10};
    Rng rng(1);
    CapacitySearch search(arrival_looked_for(Arrival::Kind::largest_rate, {.from = 8.0}), 1000);
    CHECK(search.requests_at(search.next().value()) == 1000);
    LoadPoint first = queue.at(search.next().value(), rng);  // 100 s
    first.limit_utilization = 9;
    search.tell(first);
    CHECK(search.requests_at(5) == 1000);
    CHECK(search.requests_at(0.5) == 200);
    CHECK(search.requests_at(0.01) == 20);
    // Where the lowest load lies just below what the server does, the bounds hold all the same.
    LoadPoint broken = queue.at(8.5, rng);
    broken.limit_utilization = 3;
    search.tell(broken);
    CHECK(search.next().value() >= 8);
}

TEST_CASE(
    "capacity: conversations never have as many requests in flight as a load asks for, so they are "
    "refused") {
    Workload talk;
    talk.name = "talk";
    talk.dataset.kind = Dataset::Kind::multi_turn;
    talk.arrival = {.kind = Arrival::Kind::largest_concurrency};
    const MeasureLoad never = [](const Workload&) -> std::variant<LoadPoint, Failure> {
        return Failure{FailureKind::other, "asked"};
    };
    CHECK_THROWS_WITH(
        find_capacity(talk, 200, {Limit::parse("ttft_p95 <= 500ms", true)}, never, nullptr),
        Catch::Matchers::Contains("whose turns wait for answers"));
}

TEST_CASE("capacity: bounds that cannot be are refused") {
    const auto refused = [](LoadSearch search, Arrival::Kind kind = Arrival::Kind::largest_rate) {
        CHECK_THROWS_AS(CapacitySearch(arrival_looked_for(kind, search), 100), UsageError);
    };
    refused({.points = 1});
    refused({.within = 0});
    refused({.from = 5.0, .to = 5.0});
    refused({.from = -1.0});
    refused({.from = 200.0}, Arrival::Kind::largest_concurrency);  // there are only 100 requests
    refused({}, Arrival::Kind::rate);
    CHECK_THROWS_AS(CapacitySearch(arrival_looked_for(Arrival::Kind::largest_rate), 100).result(),
                    UsageError);
}

TEST_CASE(
    "capacity: on the simulator within 3 % of the true rate by six points on one start, noise 1 "
    "%") {
    for (const char* limit : {"ttft_p95 <= 200ms", "ttft_p99 <= 1s", "latency_p95 <= 1500ms"}) {
        const double truth = std::min(true_rate(limit), most_it_serves());
        for (std::uint64_t trial = 1; trial <= 5; ++trial) {
            const Metrics found =
                SimulatedCapacity("{rate: inf}", limit, "{step_noise: 1%}").metrics(trial);
            INFO(limit << ": true " << truth << ", found "
                       << found.at("sustained_requests_per_second").value);
            CHECK(found.at("sustained_requests_per_second").value == Approx(truth).epsilon(0.03));
            CHECK(found.at("goodput_requests_per_second").value > 0);
        }
    }
}

TEST_CASE("capacity: what a study needs to look for its load is said where it is missing") {
    const auto error = [](const std::string& arrival, const std::string& limit,
                          const std::string& goal) {
        return message_of<ParseError>([&] { (void)SimulatedCapacity(arrival, limit, "{}", goal); });
    };
    CHECK(has(error("{rate: inf}", "success_ratio <= 1", "request_rate"),
              "no limit grows with load"));
    CHECK(has(error("{largest_rate: {from: 4, to: 2}}", "ttft_p95 <= 1s", "request_rate"),
              "`from` is below `to`"));
    CHECK(has(error("{rate: 1}", "ttft_p95 <= 1s", "sustained_requests_per_second"),
              "has no metric"));
    CHECK(has(error("{rate: 1}", "ttft_p59 <= 1", "total_tokens_per_second"),
              "has no metric 'ttft_p59'"));
    CHECK(SimulatedCapacity("{largest_concurrency: {to: 64}}", "tpot_mean <= 20ms", "{}", "goodput")
              .metrics()
              .contains("sustained_concurrency"));
}
