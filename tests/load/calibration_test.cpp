// SPDX-License-Identifier: Apache-2.0
// How many tokens a text has: as a server counts it, once calibrated, and as it is estimated where
// no server was asked.
#include "support/test.hpp"

#include "servetune/detail/load/calibration.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/error.hpp"
#include "support/planned_texts.hpp"
#include "support/tokenize_server.hpp"

#include <cstddef>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

TEST_CASE("calibration finds what a server counts around a text, in four questions") {
    TokenizeServer server;
    const Calibration calibration = calibrated(server);
    CHECK(calibration.exact);
    CHECK(calibration.overhead_tokens == 11);
    CHECK(calibration.left_out.empty());
    CHECK(calibration.tokens_per_word == 1);
    CHECK(server.asked == 4);
}

TEST_CASE("calibration leaves out the words that a server does not count as one token") {
    TokenizeServer server{.long_words = {"the", "school", "away"}};
    const Calibration calibration = calibrated(server);
    CHECK(calibration.left_out.size() == 3);
    CHECK(server.asked <= 64);
    TokenizeServer other{.long_words = {"school", "away"}};
    const Calibration fine = calibrated(other);
    CHECK(fine.exact);
    CHECK(fine.overhead_tokens == 11);
    const Plan plan = plan_requests(random_workload(20, 100, 10), {.calibration = fine});
    for (const PlannedRequest& request : plan.requests) CHECK(other(request.text) == 100);
}

TEST_CASE(
    "calibration gives up exactness where many words are long, and refuses counts that make no "
    "sense") {
    TokenizeServer server;
    const Plan all = plan_requests(random_workload(1, 4000, 1));
    const std::vector<std::string> words = words_of(all.requests[0].text);
    for (std::size_t i = 0; i < words.size(); i += 2) server.long_words.insert(words[i]);
    const Calibration calibration = calibrated(server);
    CHECK_FALSE(calibration.exact);
    CHECK(calibration.tokens_per_word > 1.5);
    CHECK(server.asked <= 64);
    Plan plan = plan_requests(random_workload(50, 1000, 1), {.calibration = calibration});
    CHECK_FALSE(plan.lengths_exact);
    for (const PlannedRequest& request : plan.requests)
        CHECK(double(server(request.text)) == Approx(1000).epsilon(0.1));
    CHECK(message_of<UsageError>([] { (void)calibrate([](const std::string&) { return 7; }); }) ==
          "calibration: a text of 256 more words is at least as many more tokens, the server "
          "counted 0; does it report usage.prompt_tokens "
          "of "
          "the whole prompt?");
    CHECK(has(message_of<UsageError>([] { (void)calibrate([](const std::string&) { return 0; }); }),
              "at least 1 token wanted"));
}

TEST_CASE("token estimates of known texts") {
    CHECK(estimated_tokens("") == 0);
    CHECK(estimated_tokens("the cat sat") == 3);
    CHECK(estimated_tokens("2023-11-16") == 6);  // cl100k: 202 3 - 11 - 16
    // cl100k and o200k count 10 and 10.
    CHECK(estimated_tokens("The quick brown fox jumps over the lazy dog.") == Approx(10));
    // cl100k 37, o200k 25; Chinese.
    CHECK(estimated_tokens("这是一个测试句子,用来估计中文文本的词元数量。我们希望误差不要太大。") ==
          Approx(31).margin(6));
    CHECK(estimated_tokens("\xff\xfe\xe4") > 0);  // not UTF-8, and cut off: still a number
}
