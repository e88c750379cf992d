// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_value.hpp"

#include "support/fixed_entry.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/error.hpp"
#include "servetune/search_space.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr const char* schedule_form = "[[1, 1, {few}], [{from}, {from}, {many}]]";

/// vLLM of a version that guesses by n-grams, and of these settings.
Composition guessing_vllm(const std::string& version,
                          const std::vector<std::pair<std::string, Value>>& settings) {
    SpaceDescription description{{shipped_catalogue.engine(std::string("vllm"))}};
    description.others_searched = false;
    description.versions = {{"vllm", version}};
    description.entries = {fixed("speculative_method", "ngram")};
    for (const auto& [name, value] : settings) description.entries.push_back(fixed(name, value));
    return Composition(description);
}

std::string schedule_command(const Composition& composition) {
    return composition.render(SearchSpace(composition.parameters()).default_configuration(), {"m"})
        .text();
}

std::vector<std::string> broken_by_schedule(const Composition& composition) {
    const SearchSpace space(composition.parameters(), composition.constraints());
    return space.violations(space.default_configuration());
}

}  // namespace

TEST_CASE("json form: parameters are put in their places and read from them") {
    CHECK(names_in_form(schedule_form) == std::vector<std::string>{"few", "from", "many"});
    CHECK(names_in_form("{few}") == std::vector<std::string>{"few"});
    CHECK(names_in_form("{\"1\": [{few}]}") == std::vector<std::string>{"few"});
    CHECK(names_in_form("[1, 2]").empty());
    const std::string filled =
        filled_form(schedule_form, {{"few", "4"}, {"from", "32"}, {"many", "0"}});
    CHECK(filled == "[[1,1,4],[32,32,0]]");
    CHECK(values_in_form(schedule_form, filled) ==
          std::map<std::string, std::string>{{"few", "4"}, {"from", "32"}, {"many", "0"}});
    for (const char* other : {"[[1,1,4],[32,33,0]]", "[[1,1,4]]", "[[1,1,4],[32,32,0],[64,64,0]]",
                              "[[1,1,],[32,32,0]]", "[[2,1,4],[32,32,0]]", ""})
        CHECK_FALSE(values_in_form(schedule_form, other));
}

TEST_CASE(
    "json form: vLLM's guesses by load are one key of its speculation, from the version that has "
    "it") {
    const std::int64_t few = 4, from = 16, none = 0;
    const Composition both = guessing_vllm("0.24.0", {{"num_speculative_tokens", few},
                                                      {"num_speculative_tokens_at_load", none},
                                                      {"speculation_load_from", from}});
    CHECK(has(schedule_command(both),
              R"("num_speculative_tokens_per_batch_size":[[1,1,4],[16,16,0]])"));
    CHECK(broken_by_schedule(both).empty());
    const auto parsed = both.parse(shell_words(schedule_command(both)), "m");
    CHECK(parsed.unknown.empty());
    CHECK(parsed.values.at("speculation_load_from") == Value(from));
    CHECK(parsed.values.at("num_speculative_tokens_at_load") == Value(none));
    CHECK(parsed.values.at("num_speculative_tokens") == Value(few));
    // Nobody says what happens at load: nothing is passed.
    CHECK_FALSE(has(schedule_command(guessing_vllm("0.24.0", {{"num_speculative_tokens", few}})),
                    "per_batch_size"));
    CHECK_FALSE(has(schedule_command(guessing_vllm("0.23", {{"num_speculative_tokens", few}})),
                    "per_batch_size"));
    CHECK_THROWS_AS(guessing_vllm("0.23", {{"num_speculative_tokens_at_load", none}}), SpaceError);
    // A schedule of another form is not ours to change.
    const auto other = both.parse(
        shell_words(
            "vllm serve m --speculative-config={\"method\":\"ngram\",\"num_speculative_tokens\":4,"
            "\"num_speculative_tokens_per_batch_size\":[[1,8,4],[9,64,1],[65,256,0]]}"),
        "m");
    CHECK(other.unknown ==
          std::vector<std::string>{"--speculative-config num_speculative_tokens_per_batch_size"});
}

TEST_CASE(
    "json form: guesses at load that change nothing, or that vLLM takes back, are no "
    "configurations") {
    const std::int64_t few = 2, same = 2, one = 1, copies = 2;
    const auto because = [](const std::vector<std::pair<std::string, Value>>& settings) {
        const auto broken = broken_by_schedule(guessing_vllm("0.33.0", settings));
        return broken.empty() ? "" : broken.front();
    };
    CHECK(has(because({{"num_speculative_tokens", few}, {"num_speculative_tokens_at_load", same}}),
              "never guesses more"));
    CHECK(has(because({{"num_speculative_tokens_at_load", one}, {"data_parallel_size", copies}}),
              "deadlocks"));
    CHECK(because({{"num_speculative_tokens", few}, {"num_speculative_tokens_at_load", one}})
              .empty());
    CHECK(because({{"data_parallel_size", copies}}).empty());
}
