// SPDX-License-Identifier: Apache-2.0
#include "support/fixed_entry.hpp"
#include "support/test.hpp"

#include "servetune/detail/engine/composition.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/error.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

Engine alpha() {
    Engine engine{"alpha"};
    engine.launch = {"alpha", "serve", "{model}", "--host", "{host}", "--port", "{port}"};
    auto concept_of = [](Parameter parameter, const char* idea) {
        parameter.concept_name = idea;
        return parameter;
    };
    engine.parameters = {
        {concept_of(Parameter::choice("quantization", {"none", "fp8"}), "quantization"),
         {"--quantization"}},
        {concept_of(Parameter::integer("max_num_seqs", 1, 4096, Scale::log2).or_unset(),
                    "max_concurrent_sequences"),
         {"--max-num-seqs"}},
        {Parameter::integer("max_tokens", 1, 1 << 20, Scale::log2).or_unset(8192),
         {"--max-tokens"}},
        {Parameter::boolean("cache", true), {"--cache", "--no-cache"}},
        {Parameter::choice("backend", {"a", "b"}), {"", "", "ALPHA_BACKEND"}},
        {Parameter::choice("method", {"none", "ngram", "mtp"})},
        {Parameter::integer("guesses", 1, 8).with_default(3).when("method", {"ngram", "mtp"})},
    };
    engine.json_flags = {{"--speculative-config",
                          {{"method", "method"}, {"num_speculative_tokens", "guesses"}},
                          {{"method", {"ngram", "mtp"}}}}};
    engine.constraints = {require("max_tokens >= max_num_seqs", "alpha refuses it"),
                          Forbid{{{"quantization", {"fp8"}}, {"backend", {"b"}}}}};
    return engine;
}

Engine beta() {
    Engine engine{"beta"};
    engine.launch = {"python3", "-m",     "beta.server", "--model-path", "{model}",
                     "--host",  "{host}", "--port",      "{port}"};
    engine.flag_style = Engine::FlagStyle::separate;
    Parameter requests = Parameter::integer("max_requests", 1, 4096, Scale::log2).or_unset();
    requests.concept_name = "max_concurrent_sequences";
    engine.parameters = {
        {Parameter::choice("quantization", {"none"})},
        {requests, {"--max-requests"}},
        {Parameter::choice("backend", {"fa3", "triton"}).or_unset(), {"--backend"}}};
    return engine;
}

SpaceEntry narrowed(std::string name, std::vector<Value> values) {
    SpaceEntry entry{std::move(name)};
    entry.offers_unset = std::erase_if(values, is_unset) > 0;
    if (*entry.offers_unset) entry.default_value = Unset{};
    entry.domain = ChoiceDomain{std::move(values)};
    return entry;
}

std::string rendered(const Composition& composition, const Assignment& changes) {
    const SearchSpace space(composition.parameters(), composition.constraints());
    return composition.render(space.changed(space.default_configuration(), changes), {"org/model"})
        .text();
}

}  // namespace

TEST_CASE("one engine: its parameters keep their names, and defaults need no flag") {
    const Composition composition({{alpha()}});
    CHECK(rendered(composition, {}) == "alpha serve org/model");
    CHECK(rendered(
              composition,
              {{"max_num_seqs", std::int64_t{512}}, {"cache", false}, {"quantization", "fp8"}}) ==
          "alpha serve org/model --quantization=fp8 --max-num-seqs=512 --no-cache");
    CHECK(rendered(composition, {{"backend", "b"}}) == "ALPHA_BACKEND=b alpha serve org/model");
    CHECK(rendered(composition, {{"method", "mtp"}, {"guesses", std::int64_t{4}}}) ==
          "alpha serve org/model "
          "'--speculative-config={\"method\":\"mtp\",\"num_speculative_tokens\":4}'");
    const SearchSpace space(composition.parameters());
    CHECK(composition.render(space.default_configuration(), {"m", "127.0.0.1", 8001}).argv ==
          std::vector<std::string>{"alpha", "serve", "m", "--host", "127.0.0.1", "--port", "8001"});
}

TEST_CASE("several engines: the engine is a parameter, its own parameters are active under it") {
    SpaceDescription description{{alpha(), beta()}};
    description.others_searched = false;
    SpaceEntry quantization = narrowed("quantization", {"none", "fp8"});
    quantization.checkpoints = {{"fp8", "org/model-FP8"}};
    description.entries = {quantization, narrowed("beta.backend", {Unset{}, "fa3"}),
                           narrowed("max_concurrent_sequences", {Unset{}, std::int64_t{512}})};
    const Composition composition(description);
    const SearchSpace space(composition.parameters(), composition.constraints());
    CHECK(space.default_configuration().text() ==
          "engine=alpha max_concurrent_sequences=engine quantization=none");
    CHECK(FeasibleSet(space).size() == 4 + 8);
    CHECK(rendered(composition, {{"engine", "beta"},
                                 {"beta.backend", "fa3"},
                                 {"max_concurrent_sequences", std::int64_t{512}},
                                 {"quantization", "fp8"}}) ==
          "python3 -m beta.server --model-path org/model-FP8 --max-requests 512 --backend fa3");
    CHECK(composition.resolve("backend") == "beta.backend");
    CHECK(message_of<SpaceError>([&] {
              (void)composition.resolve("quantisation");
          }).starts_with("'quantisation' is not a parameter of this study; known: quantization"));
}

TEST_CASE(
    "parameters of several engines searched whole are qualified and linked by their concept") {
    const Composition composition({{alpha(), beta()}});
    const SearchSpace space(composition.parameters(), composition.constraints());
    CHECK(space.at("alpha.max_num_seqs").concept_name ==
          space.at("beta.max_requests").concept_name);
    CHECK(message_of<SpaceError>([&] { (void)composition.resolve("backend"); }) ==
          "'backend' is ambiguous: write one of alpha.backend, beta.backend");
    // The rules of one engine do not bind the other.
    CHECK(space.violations(space.completed({{"alpha.max_tokens", std::int64_t{64}},
                                            {"alpha.max_num_seqs", std::int64_t{128}}})) ==
          std::vector<std::string>{"it breaks the rule: require (engine != 'alpha') or "
                                   "(alpha.max_tokens >= alpha.max_num_seqs) (alpha refuses it)"});
    CHECK(space.feasible(space.completed({{"engine", "beta"}})));
}

TEST_CASE("rules that speak of parameters held at their defaults keep their meaning") {
    SpaceDescription description{{alpha()}};
    description.others_searched = false;
    description.entries = {
        narrowed("max_num_seqs", {Unset{}, std::int64_t{4096}, std::int64_t{1024}})};
    const Composition composition(description);
    // max_tokens is held at the engine's own 8192: the rule is about max_num_seqs alone. The
    // forbidden pair cannot happen.
    REQUIRE(composition.constraints().size() == 1);
    CHECK(text_of(composition.constraints()[0]) == "require 8192 >= max_num_seqs");
}

TEST_CASE("an entry that makes no sense is refused") {
    const auto error = [](SpaceEntry entry) {
        SpaceDescription description{{alpha()}};
        description.entries = {std::move(entry)};
        return message_of<SpaceError>([&] { Composition{description}; });
    };
    CHECK(error(fixed("max_num_seq", std::int64_t{4}))
              .starts_with("'max_num_seq': no parameter or concept of the study's engines; "
                           "known: max_num_seqs"));
    CHECK(error(fixed("quantization", "fp4")) ==
          "'quantization': alpha does not take fp4 for 'quantization' (one of none, fp8) and no "
          "checkpoint serves it");
    CHECK(error(fixed("max_num_seqs", std::int64_t{5000}))
              .starts_with("'max_num_seqs': 5000 is outside the range in the file of alpha"));
    CHECK(error(fixed("max_num_seqs", std::int64_t{768}))
              .empty());  // powers of two are where a search looks, not what an engine takes

    SpaceDescription never{{alpha()}};
    never.entries = {fixed("method", "none"), fixed("guesses", std::int64_t{4})};
    CHECK(message_of<SpaceError>([&] { Composition{never}; }) ==
          "'guesses': it can never be active: it needs method=ngram|mtp, which this study does not "
          "offer");
}

TEST_CASE("what is rendered can be read back") {
    SpaceDescription description{{alpha(), beta()}};
    SpaceEntry quantization = narrowed("quantization", {"none", "fp8"});
    quantization.checkpoints = {{"fp8", "org/model-FP8"}};
    description.entries = {quantization};
    description.arguments = {{"beta", {"--trust-remote-code"}}};
    const Composition composition(description);
    const SearchSpace space(composition.parameters(), composition.constraints());
    const FeasibleSet feasible(space);
    Rng rng(11);
    for (int i = 0; i < 300; ++i) {
        Configuration configuration = feasible.sample(rng);
        // What goes through the environment is not in the words.
        if (configuration.find("alpha.backend") != nullptr)
            configuration = space.changed(configuration, {{"alpha.backend", "a"}});
        const Command command = composition.render(configuration, {"org/model"});
        const auto parsed = composition.parse(command.argv, "org/model");
        CHECK(parsed.unknown.empty());
        CHECK(space.completed(parsed.values) == configuration);
    }
}

TEST_CASE("serving arguments of documents: flags only, unknown words, unquoted JSON") {
    const Composition composition({{alpha(), beta()}});
    const auto words = [](const char* text) { return shell_words(text); };
    CHECK(words("a \\\n --b='c d' \"e f\" --j={\"k\":\"v\",\"n\":4}") ==
          std::vector<std::string>{"a", "--b=c d", "e f", "--j={\"k\":\"v\",\"n\":4}"});
    const auto flags = composition.parse(words("--max-requests 64 --backend fa3"), "m");
    REQUIRE(flags.engine != nullptr);
    CHECK(flags.engine->name == "beta");
    CHECK(flags.values.at("beta.max_requests") == Value(std::int64_t{64}));
    const auto json = composition.parse(
        words(
            "alpha serve m --speculative-config={\"num_speculative_tokens\":4,\"method\":\"mtp\"}"),
        "m");
    CHECK(json.values.at("alpha.guesses") == Value(std::int64_t{4}));
    CHECK(composition.parse(words("alpha serve other --new-flag=1"), "m").unknown ==
          std::vector<std::string>{"other", "--new-flag=1"});
    CHECK(composition.parse(words("gamma serve m"), "m").engine == nullptr);
}
