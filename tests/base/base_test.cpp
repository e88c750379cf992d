// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "base/nearest.hpp"
#include "base/present.hpp"
#include "base/probability.hpp"
#include "base/text.hpp"
#include "base/waiting.hpp"
#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/rng.hpp"

#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

using namespace servetune;
using namespace servetune::test;

TEST_CASE("edit distance counts insertions, deletions, replacements and swaps") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("abc", "") == 3);
    CHECK(edit_distance("max_num_seq", "max_num_seqs") == 1);
    CHECK(edit_distance("form", "from") == 1);
    CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("nearest names come first and long lists are cut") {
    const std::vector<std::string> known{"quantization", "max_num_seqs", "block_size"};
    CHECK(nearest_first("max_seqs", known).front() == "max_num_seqs");
    CHECK(listed(known, 2) == "quantization, max_num_seqs, ... (1 more)");
    // A part of a name counts, where it is nearer than a quarter of the letters.
    const std::vector<std::string> chips{"a10", "a6000", "h100-pcie", "h100-sxm", "rtx-4090"};
    CHECK(nearest_first("h1000", chips) ==
          std::vector<std::string>{"h100-sxm", "h100-pcie", "a6000", "a10", "rtx-4090"});
    CHECK(nearest_first("4090", chips).front() == "rtx-4090");
    CHECK(nearest_first("seqs", known).front() == "max_num_seqs");
    CHECK(nearest_text("h1000", chips) == "; nearest: h100-sxm, h100-pcie, a6000");
}

TEST_CASE("fingerprints are the published FNV-1a values, for journals hold them") {
    CHECK(fingerprint_of("").text() == "cbf29ce484222325");
    CHECK(fingerprint_of("a").text() == "af63dc4c8601ec8c");
    CHECK(fingerprint_of("foobar").text() == "85944171f73967e8");
}

TEST_CASE("the same seed draws the same numbers on every compiler and Boost") {
    Rng rng(42);
    CHECK(rng.uniform() == Approx(0.755155532954779).epsilon(1e-12));
    CHECK(rng.index(1000) == 639);
    CHECK(derive_seed(1, 2) != derive_seed(2, 1));
    STATIC_REQUIRE(mix64(0) == 0xe220a8397b1dcdafULL);  // first output of SplitMix64 seeded with 0
}

TEST_CASE("numbers are shown by what they mean") {
    CHECK(text_of(0.1) == "0.1");
    CHECK(text_of(1e300) == "1e+300");
    CHECK(fixed_text(2.5, 0) == "2");  // as printf: to even
    CHECK(fixed_text(-0.004, 2) == "-0.00");
    CHECK(fixed_text(1e22, 1) == "10000000000000000000000.0");
    CHECK(fixed_text(std::numeric_limits<double>::max(), 60).size() == 309 + 1 + 60);
    CHECK(significant_text(0.0125, 4) == "0.0125");
    CHECK(significant_text(12345678, 4) == "1.235e+07");
    CHECK(number_text(0.01234) == "0.0123");
    CHECK(short_number_text(0.98750) == "0.9875");
    CHECK(percent_text(0.125, 1) == "12.5 %");
    CHECK(seconds_text(0.05) == "0.05 s");
    CHECK(seconds_text(12.34) == "12.3 s");
    CHECK(seconds_text(9.999) == "10 s");
    CHECK(seconds_text(1234.56) == "1234.6 s");
    CHECK(seconds_text(1800) == "1800 s");
}

TEST_CASE("a number that no integer of 64 bits holds is none, whatever a file says") {
    CHECK(whole_number_within(1e308, 1, 100) == 100);
    CHECK(whole_number_within(-1e308, 1, 100) == 1);
    CHECK(whole_number_within(7.9, 1, 100) == 7);
    CHECK(whole_number_within(std::numeric_limits<double>::quiet_NaN(), 1, 100) == 1);
}

TEST_CASE("the normal distribution holds together, far to the left too") {
    for (const double x : {-5.0, -1.0, 0.0, 0.3, 2.0}) {
        CHECK(normal_cdf(x) + normal_cdf(-x) == Approx(1));
        CHECK(normal_cdf(2 * x, 4) == Approx(normal_cdf(x)));
        CHECK(normal_quantile(normal_cdf(x)) == Approx(x).margin(1e-9));
        CHECK((normal_cdf(x + 1e-5) - normal_cdf(x - 1e-5)) / 2e-5 ==
              Approx(normal_density(x)).epsilon(1e-6));
        CHECK(std::exp(log_normal_density(x)) == Approx(normal_density(x)));
        CHECK(inverse_mills(x) == Approx(normal_density(x) / normal_cdf(x)));
    }
    CHECK(normal_cdf(normal_95) == Approx(0.975).epsilon(1e-12));
    CHECK(log_normal_cdf(-40) == Approx(-804.608442).epsilon(1e-8));  // ln Phi(-40), mpmath
}

TEST_CASE("a wait ends with its time or with a stop") {
    std::stop_source source;
    const auto begin = std::chrono::steady_clock::now();
    CHECK_FALSE(wait_or_stop(std::chrono::milliseconds(20), source.get_token()));
    CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(20));
    CHECK_FALSE(wait_or_stop(std::chrono::seconds(-1), source.get_token()));
    CHECK_FALSE(wait_or_stop(std::chrono::milliseconds(1), {}));  // a token that nobody can set
    const std::jthread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        source.request_stop();
    });
    CHECK(wait_or_stop(std::chrono::hours(1), source.get_token()));
    CHECK(wait_or_stop(std::chrono::hours(1), source.get_token()));
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
}

TEST_CASE("draws have the distribution they claim") {
    Rng rng(7);
    double sum = 0;
    double squares = 0;
    constexpr int n = 20'000;
    for (int i = 0; i < n; ++i) {
        const double z = rng.normal();
        sum += z;
        squares += z * z;
    }
    CHECK(std::abs(sum / n) < 4 / std::sqrt(n));
    CHECK(std::abs(squares / n - 1) < 4 * std::sqrt(2.0 / n));
}

TEST_CASE(
    "a value that must be there is given, and one that is missing names the line that wanted it") {
    std::optional<std::string> value("there");
    CHECK(present(std::as_const(value)) == "there");
    present(value) += " still";
    CHECK(present(std::move(value)) == "there still");
    const std::optional<int> nothing;
    const int line = __LINE__ + 1;
    const std::string message = message_of<std::logic_error>([&] { (void)present(nothing); });
    CHECK(message == std::string(__FILE__) + ":" + std::to_string(line) + ": a value is missing");
}

TEST_CASE("base: a text is split as std::getline and a stream would split it") {
    using Words = std::vector<std::string>;
    CHECK(parts_of("a,,b c,", ',') == Words{"a", "", "b c"});
    CHECK(parts_of(",", ',') == Words{""});
    CHECK(parts_of("", ',').empty());
    CHECK(words_of(" a\t b,c\r\n") == Words{"a", "b,c"});
    CHECK(words_of(" \n").empty());
}

TEST_CASE("base: what a key stands for, and what entries are called") {
    std::map<std::string, int> counts{{"b", 2}, {"a", 1}};
    CHECK(names_in(counts) == std::vector<std::string>{"a", "b"});
    CHECK(entry_in(counts, "c") == nullptr);
    *entry_in(counts, "a") = 3;
    CHECK(*entry_in(std::as_const(counts), "a") == 3);
}
