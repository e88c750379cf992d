// SPDX-License-Identifier: Apache-2.0
// Requests of texts that are made up: random words, shared prefixes, conversations of several
// turns.
#include "support/test.hpp"

#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/error.hpp"
#include "support/planned_texts.hpp"
#include "support/tokenize_server.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

TEST_CASE("random: a server counts exactly the lengths asked for") {
    TokenizeServer server;
    const Plan plan = plan_requests(random_workload(50, 128, 16, 0.5),
                                    {.salt = 3, .calibration = calibrated(server)});
    REQUIRE(plan.requests.size() == 50);
    CHECK(plan.lengths_exact);
    std::set<std::int64_t> lengths;
    for (const PlannedRequest& request : plan.requests) {
        CHECK(server(request.text) == request.input_tokens);
        CHECK(request.input_tokens >= 64);
        CHECK(request.input_tokens <= 192);
        CHECK(request.output_tokens >= 8);
        CHECK(request.output_tokens <= 24);
        lengths.insert(request.input_tokens);
    }
    CHECK(lengths.size() > 20);
    CHECK(*plan.mean_input_tokens == Approx(128).margin(25));
    const Plan equal =
        plan_requests(random_workload(5, 128, 16), {.calibration = calibrated(server)});
    CHECK(*equal.mean_input_tokens == 128);
    CHECK(*equal.mean_output_tokens == 16);
    CHECK(equal.description == "random words; lengths as the server counts them");
    CHECK(plan_requests(random_workload(5, 128, 16)).description ==
          "random words; lengths estimated, the server was not asked");
}

TEST_CASE(
    "random: the plan is a function of the seed, the salt changes the start of texts and nothing "
    "else") {
    Workload workload = random_workload(100, 64, 8, 0.3);
    const Plan one = plan_requests(workload, {.salt = 1});
    CHECK(texts_of(one) == texts_of(plan_requests(workload, {.salt = 1})));
    const Plan two = plan_requests(workload, {.salt = 2});
    same_lengths(one, two);
    const auto a = words_of(one.requests[7].text);
    const auto b = words_of(two.requests[7].text);
    CHECK(std::equal(a.begin() + 9, a.end(), b.begin() + 9));
    CHECK(one.fingerprint.text() == "d66a457b62d51572");
    workload.seed = 43;
    CHECK(plan_requests(workload, {.salt = 1}).fingerprint != one.fingerprint);
    CHECK(plan_requests(random_workload(100, 64, 9, 0.3)).fingerprint != one.fingerprint);
}

TEST_CASE("random: no two prompts of any runs begin alike") {
    std::vector<std::string> texts;
    for (std::uint64_t salt = 0; salt < 5; ++salt)
        for (const std::string& text :
             texts_of(plan_requests(random_workload(400, 40, 8), {.salt = salt})))
            texts.push_back(text);
    // 2000 prompts have 2 million pairs; the header's 8 words are a bijection of the salt, so 9
    // words never agree, and 5 by luck rarely.
    CHECK(longest_common_start(texts) <= 5);
    CHECK(longest_common_start(texts) >= 1);  // the first word is always the same
}

TEST_CASE("shared_prefix: groups share their prefix and nothing else, in one run") {
    Workload workload{.name = "w",
                      .dataset = {.kind = Dataset::Kind::shared_prefix,
                                  .input_tokens = 20,
                                  .output_tokens = 4,
                                  .prefix_tokens = 50,
                                  .prefix_groups = 3},
                      .requests = 30};
    const Plan plan = plan_requests(workload, {.salt = 1});
    std::map<std::vector<std::string>, std::vector<std::vector<std::string>>> groups;
    for (const PlannedRequest& request : plan.requests) {
        const std::vector<std::string> words = words_of(request.text);
        REQUIRE(words.size() == 70);
        CHECK(request.input_tokens == 70);
        groups[{words.begin(), words.begin() + 50}].push_back({words.begin() + 50, words.end()});
    }
    REQUIRE(groups.size() == 3);
    std::vector<std::vector<std::string>> prefixes;
    for (auto& [prefix, rests] : groups) {
        CHECK(rests.size() == 10);
        sort(rests);
        for (std::size_t i = 1; i < rests.size(); ++i)
            CHECK(common_start(rests[i - 1], rests[i]) <= 3);
        prefixes.push_back(prefix);
    }
    for (std::size_t i = 1; i < prefixes.size(); ++i)
        CHECK(common_start(prefixes[i - 1], prefixes[i]) <= 3);
    const Plan other = plan_requests(workload, {.salt = 2});
    same_lengths(plan, other);
    CHECK(common_start(words_of(plan.requests[0].text), words_of(other.requests[0].text)) <= 3);
}

TEST_CASE(
    "multi_turn: a turn follows the one before, in a closed loop as many conversations go on as "
    "there are places") {
    Workload workload{.name = "w",
                      .dataset = {.kind = Dataset::Kind::multi_turn,
                                  .input_tokens = 16,
                                  .output_tokens = 8,
                                  .turns = 3},
                      .requests = 14,
                      .arrival = {.kind = Arrival::Kind::concurrency, .in_flight = 2}};
    const auto conversations = [](const Plan& plan) {
        std::vector<std::size_t> of(plan.requests.size());
        std::size_t next = 0;
        for (std::size_t i = 0; i < of.size(); ++i) {
            if (plan.requests[i].follows) CHECK(*plan.requests[i].follows < i);
            of[i] = plan.requests[i].follows ? of[*plan.requests[i].follows] : next++;
        }
        return of;
    };
    const Plan plan = plan_requests(workload, {.salt = 1});
    CHECK(conversations(plan) ==
          std::vector<std::size_t>{0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 4, 4});
    CHECK(plan.requests[0].input_tokens == 16);
    CHECK(plan.requests[2].input_tokens == 0);  // counts the answer before it: not known
    CHECK(*plan.mean_input_tokens == 16);
    const Plan other = plan_requests(workload, {.salt = 2});
    CHECK(other.fingerprint == plan.fingerprint);
    CHECK(other.requests[0].text != plan.requests[0].text);
    CHECK(other.requests[2].text == plan.requests[2].text);  // comes after a salted turn
    workload.arrival = {};
    CHECK(conversations(plan_requests(workload)) ==
          std::vector<std::size_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3});
}

TEST_CASE("workloads that say too little or too much") {
    const auto error = [](const Workload& workload, const PlanOptions& options = {}) {
        return message_of<UsageError>([&] { (void)plan_requests(workload, options); });
    };
    Workload workload = random_workload(3, 8, 8);
    CHECK(error(workload, {.calibration = {.overhead_tokens = 12, .exact = true}}) ==
          "workload 'w': input_tokens 8: the server counts 12 tokens around any text, so at least "
          "13 wanted");
    workload.requests.reset();
    CHECK(error(workload) == "workload 'w': how many requests wanted ('requests:')");
    CHECK(error(random_workload(2'000'000, 8, 8)) ==
          "workload 'w': 'requests': an integer in [1, 1000000] wanted, got 2000000");
    CHECK(error(random_workload(3, 1'000'000'000, 8)) ==
          "workload 'w': input_tokens: an integer in [1, 16777216] wanted, got 1000000000");
    CHECK(has(error(random_workload(1'000'000, 10'000, 8)), "at most 500000000 tokens together"));
    workload = random_workload(3, 8, 8);
    workload.dataset.kind = Dataset::Kind::shared_prefix;
    CHECK(error(workload) == "workload 'w': a data set of this kind needs prefix_tokens");
    workload = random_workload(3, 8, 8);
    workload.arrival.kind = Arrival::Kind::trace;
    CHECK(has(error(workload), "time stamps wanted"));
}
