// SPDX-License-Identifier: Apache-2.0
#include "support/brute_force.hpp"
#include "support/test.hpp"

#include "servetune/feasible_set.hpp"
#include "servetune/search_space.hpp"
#include "space/expression_rewriting.hpp"

#include <array>
#include <map>
#include <optional>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

/// Conditions (nested, two parents), a constraint over three parameters, a forbidden pair: 3 x 9 x
/// 7 and branches.
SearchSpace rich_space() {
    return SearchSpace(
        {Parameter::choice("backend", {"fa3", "flashinfer", "triton"}),
         Parameter::integer("seqs", 16, 4096, Scale::log2).with_default(256),
         Parameter::integer("tokens", 1024, 65536, Scale::log2).or_unset(8192),
         Parameter::boolean("speculate"),
         Parameter::choice("method", {"ngram", "mtp"}).when("speculate", {true}),
         Parameter::integer("guesses", 1, 4)
             .with_default(3)
             .when("speculate", {true})
             .when("method", {"mtp"})},
        {require("tokens >= seqs"),
         Forbid{{{"backend", {"triton"}}, {"speculate", {true}}}, "triton cannot verify guesses"}});
}

/// Two to six parameters of every kind, conditions on earlier ones, up to three rules; nothing when
/// it contradicts itself.
std::optional<SearchSpace> random_space(Rng& rng) {
    std::vector<Parameter> parameters;
    const std::size_t count = 2 + rng.index(5);
    for (std::size_t i = 0; i < count; ++i) {
        const std::string name(1, static_cast<char>('a' + i));
        const std::int64_t low = 1 + std::int64_t(rng.index(4));
        Parameter parameter =
            rng.index(3) == 0 ? Parameter::boolean(name)
            : rng.index(2) == 0
                ? Parameter::choice(name, {"x", "y", "z"})
                : Parameter::integer(name, low, low * 4,
                                     rng.index(2) == 0 ? Scale::log2 : Scale::linear);
        if (rng.index(3) == 0) parameter = std::move(parameter).or_unset();
        if (i > 0 && rng.index(3) == 0) {
            const Parameter& parent = parameters[rng.index(i)];
            parameter = std::move(parameter).when(parent.name,
                                                  {parent.level(rng.index(parent.level_count()))});
        }
        parameters.push_back(std::move(parameter));
    }
    std::vector<Constraint> constraints;
    const auto any = [&]() -> const Parameter& { return parameters[rng.index(count)]; };
    // `(a == 2 and b != 'x') or c == true`: what it comes to may be known early.
    const auto compared = [&] {
        const Parameter& one = any();
        Value value = Unset{};
        while (is_unset(value)) value = one.level(rng.index(one.level_count()));
        const bool text = std::holds_alternative<std::string>(value);
        return one.name + (rng.index(3) == 0 ? " != " : " == ") + (text ? "'" : "") +
               text_of(value) + (text ? "'" : "");
    };
    for (std::size_t i = rng.index(4); i > 0; --i) {
        if (rng.index(3) == 0) {
            const auto both = [&] { return "(" + compared() + " and " + compared() + ")"; };
            const std::string pairs = both() + " or " + both();
            constraints.push_back(
                require(pairs + " or " + (rng.index(2) == 0 ? both() : compared())));
            continue;
        }
        const Parameter& a = any();
        const Parameter& b = any();
        const bool numbers = std::holds_alternative<IntegerDomain>(a.domain) &&
                             std::holds_alternative<IntegerDomain>(b.domain);
        if (numbers)
            constraints.push_back(require(rng.index(2) == 0 ? a.name + " <= " + b.name
                                                            : a.name + " + " + b.name + " != 5"));
        else if (a.name != b.name)
            constraints.emplace_back(Forbid{{{a.name, {a.level(rng.index(a.level_count()))}},
                                             {b.name, {b.level(rng.index(b.level_count()))}}}});
    }
    try {
        return SearchSpace(std::move(parameters), std::move(constraints));
    } catch (const SpaceError&) {
        return std::nullopt;
    }
}

std::string space_error(std::vector<Parameter> parameters,
                        std::vector<Constraint> constraints = {}) {
    return message_of<SpaceError>(
        [&] { SearchSpace(std::move(parameters), std::move(constraints)); });
}

}  // namespace

TEST_CASE("levels of every domain") {
    const Parameter seqs = Parameter::integer("seqs", 16, 100, Scale::log2).or_unset();
    CHECK(seqs.level_count() == 4);
    CHECK(seqs.level(0) == Value(Unset{}));
    CHECK(seqs.level(3) == Value(std::int64_t{64}));
    CHECK_FALSE(seqs.contains(std::int64_t{100}));
    CHECK(seqs.domain_text() == "integer 16..100 (log2), or engine");

    Parameter stepped = Parameter::integer("n", 10, 25);
    std::get<IntegerDomain>(stepped.domain).step = 5;
    CHECK(stepped.level_count() == 4);
    CHECK(stepped.level_of(Value(std::int64_t{20})) == 2U);
    CHECK_FALSE(stepped.contains(std::int64_t{21}));
    CHECK_FALSE(stepped.contains(20.0));

    const Parameter fraction = Parameter::real("fraction", 0.1, 10, Scale::log);
    CHECK(fraction.continuous());
    CHECK(fraction.at_position(0.5) == Approx(1.0));
    CHECK(fraction.position_of(10) == Approx(1.0));
    CHECK(fraction.contains(10.0));
    CHECK_FALSE(fraction.contains(10.5));
}

TEST_CASE("values keep their types and read back from their text") {
    for (const Value& value :
         {Value(Unset{}), Value(true), Value(std::int64_t{-7}), Value(0.1), Value("fp8")})
        CHECK(value_of(text_of(value)) == value);
    CHECK(value_of("1e3") == Value(1000.0));
    CHECK(value_of("nan") == Value("nan"));
    CHECK(value_of("0x10") == Value("0x10"));
}

TEST_CASE("a configuration is canonical: active parameters present, inactive ones absent") {
    const SearchSpace space = rich_space();
    CHECK(space.default_configuration().text() ==
          "backend=fa3 seqs=256 speculate=false tokens=engine");
    const Configuration made =
        space.completed({{"method", "mtp"}, {"guesses", std::int64_t{2}}, {"speculate", true}});
    CHECK(made.text() == "backend=fa3 guesses=2 method=mtp seqs=256 speculate=true tokens=engine");
    CHECK(space.completed({{"method", "mtp"}}) == space.default_configuration());
    CHECK(space.completed(made.assignment()) == made);
    CHECK(message_of<SpaceError>([&] {
              (void)space.changed(space.default_configuration(), {{"guesses", std::int64_t{2}}});
          }) ==
          "'guesses' = 2 has no effect: 'guesses' is inactive in backend=fa3 seqs=256 "
          "speculate=false tokens=engine");
}

TEST_CASE("the order of names does not matter to a configuration, types do") {
    const Configuration a({{"x", std::int64_t{1}}, {"y", true}});
    const Configuration b({{"y", true}, {"x", std::int64_t{1}}});
    CHECK(a == b);
    CHECK(a.fingerprint() == b.fingerprint());
    CHECK(a.fingerprint() != Configuration({{"x", 1.0}, {"y", true}}).fingerprint());
    CHECK(a.fingerprint().text() == "48873d5a8131b8df");  // pinned: journals hold it
    CHECK(message_of<UsageError>([] {
              Configuration({{"x", true}, {"x", false}});
          }) == "a configuration sets 'x' twice");
}

TEST_CASE("a configuration gives the number of a name, or says that it has none") {
    const Configuration configuration(
        {{"x", std::int64_t{13}}, {"y", 0.5}, {"mode", std::string("fast")}});
    CHECK(configuration.number("x") == 13);
    CHECK(configuration.number("y") == 0.5);
    CHECK(message_of<UsageError>([&] { (void)configuration.number("mode"); }) ==
          "'mode' has no number in the configuration mode=fast x=13 y=0.5");
    CHECK(message_of<UsageError>([&] { (void)configuration.number("z"); }) ==
          "'z' has no number in the configuration mode=fast x=13 y=0.5");
}

TEST_CASE("violations say what is wrong") {
    const SearchSpace space = rich_space();
    const auto why = [&](Assignment assignment) {
        return space.violations(Configuration::of(assignment));
    };
    CHECK(why({{"backend", "fa3"},
               {"seqs", std::int64_t{4096}},
               {"speculate", false},
               {"tokens", std::int64_t{1024}}}) ==
          std::vector<std::string>{"it breaks the rule: require tokens >= seqs"});
    // Left to the engine, whose own value is known to be 8192.
    CHECK(why({{"backend", "fa3"},
               {"seqs", std::int64_t{4096}},
               {"speculate", false},
               {"tokens", Unset{}}})
              .empty());
    CHECK(why({{"backend", "triton"},
               {"seqs", std::int64_t{16}},
               {"speculate", true},
               {"method", "ngram"},
               {"tokens", Unset{}}}) ==
          std::vector<std::string>{"it breaks the rule: forbid backend=triton speculate=true "
                                   "(triton cannot verify guesses)"});
    CHECK(why({{"backend", "fa4"},
               {"seqs", std::int64_t{16}},
               {"speculate", false},
               {"tokens", Unset{}}}) ==
          std::vector<std::string>{
              "'backend' = fa4 is outside its domain (one of fa3, flashinfer, triton)"});
    CHECK(why({{"backend", "fa3"},
               {"seqs", std::int64_t{16}},
               {"speculate", false},
               {"method", "ngram"},
               {"tokens", Unset{}}}) ==
          std::vector<std::string>{"'method' is set but inactive here"});
    CHECK(why({{"backend", "fa3"}, {"speculate", false}, {"tokens", Unset{}}}) ==
          std::vector<std::string>{"'seqs' is active but not set"});
}

TEST_CASE("a space that contradicts itself is refused with the reason") {
    CHECK(space_error({Parameter::integer("max_num_seqs", 1024, 8)}) ==
          "'max_num_seqs': low <= high must hold, got low=1024 high=8");
    CHECK(space_error({Parameter::integer("n", 0, 8, Scale::log2)}) ==
          "'n': low > 0 must hold on a log scale, got low=0 high=8");
    CHECK(space_error({Parameter::integer("n", 1, 8).with_default(9)}) ==
          "'n': the default '9' is outside its domain (integer 1..8)");
    CHECK(space_error({Parameter::choice("c", {})}) == "'c': a choice needs at least one value");
    CHECK(space_error({Parameter::choice("c", {"a", "b", "a"})}) ==
          "'c': the choice lists 'a' twice");
    CHECK(space_error({Parameter::boolean("a"), Parameter::boolean("a")}) ==
          "parameter 'a' is declared twice");
    CHECK(space_error({Parameter::boolean("flag").when("flog", {true})}) ==
          "'flag': its condition names 'flog', which is not a parameter; known: flag");
    CHECK(space_error({Parameter::choice("m", {"x"}), Parameter::boolean("b").when("m", {"y"})}) ==
          "'b': its condition wants m=y, but 'm' is x");
    CHECK(space_error({Parameter::boolean("a").when("c", {true}),
                       Parameter::boolean("b").when("a", {true}),
                       Parameter::boolean("c").when("b", {true})}) ==
          "conditions go in a circle: a -> c -> b -> a");
    CHECK(space_error({Parameter::boolean("a")}, {require("b")}) ==
          "constraint 'require b' names 'b', which is not a parameter; known: a");
}

TEST_CASE("a rule that names a value which its parameter does not have is refused, not void") {
    const auto error = [](Constraint rule) {
        return space_error(
            {Parameter::choice("cache", {"none", "lru"}),
             Parameter::integer("seqs", 16, 256, Scale::log2), Parameter::boolean("eager"),
             Parameter::real("share", 0.5, 0.9), Parameter::integer("tokens", 1, 9).or_unset(64)},
            {std::move(rule)});
    };
    CHECK(error(Forbid{{{"cache", {"none", "lfu"}}}, ""}) ==
          "constraint 'forbid cache=none|lfu' names cache=lfu, but 'cache' is one of none, lru");
    CHECK(error(require("cache != 'lfu'")) ==
          "constraint 'require cache != 'lfu'' names cache=lfu, but 'cache' is one of none, lru");
    for (const char* rule : {"cache in ['lru', 'lfu']", "eager or not (cache not in ['lfu'])",
                             "'lfu' == cache", "seqs == 100", "seqs == 16.5", "eager == 'true'",
                             "share != 0.95", "tokens == 65", "cache == 'engine'"})
        CHECK(has(error(require(rule)), " names "));
    CHECK(has(error(Forbid{{{"seqs", {64.0}}}, ""}),
              " names seqs=64"));  // a real, which no integer is
    CHECK(has(error(Forbid{{{"cache", {Unset{}}}}, ""}), " names cache=engine"));
    CHECK(has(error(Allow{{"cache", "eager"}, {{"lru", true}, {"lfu", false}}, ""}),
              " names cache=lfu"));

    for (const char* rule :
         {"seqs == 64.0", "tokens == 64 or tokens < 99", "share == 0.75", "seqs < 1000",
          "cache in ['lru']", "eager == true", "seqs + tokens != 5"})
        CHECK(error(require(rule)).empty());
    CHECK(error(Forbid{{{"tokens", {Unset{}, std::int64_t{9}}}}, ""}).empty());
    CHECK(error(Forbid{{{"cache", {"lfu"}}, {"eager", {true}}}, "", true})
              .empty());  // a rule of a larger space
}

TEST_CASE("an empty space is refused with a smallest contradiction") {
    const SearchSpace space(
        {Parameter::integer("a", 1, 4), Parameter::integer("b", 1, 4),
         Parameter::integer("c", 1, 4)},
        {require("a < b"), require("c > 2"), require("b < a", "the engine says so")});
    CHECK(message_of<SpaceError>([&] { FeasibleSet{space}; }) ==
          "the space is empty: no configuration satisfies 'require a < b' and 'require b < a' (the "
          "engine says so)");
}

TEST_CASE("the feasible set of a temporary space keeps it") {
    const FeasibleSet made = [] {
        const FeasibleSet first(
            SearchSpace({Parameter::integer("a", 1, 3), Parameter::boolean("b")}));
        return FeasibleSet(first);
    }();
    CHECK(made.size() == 6);
    CHECK(made.at(5).text() == "a=3 b=true");
}

TEST_CASE("the feasible set is the filter of the product: counted, listed, each once") {
    const SearchSpace space = rich_space();
    const FeasibleSet feasible(space);
    const std::set<Configuration> expected = by_brute_force(space);
    CHECK(feasible.size() == double(expected.size()));
    std::set<Configuration> listed;
    for (double i = 0; i < feasible.size(); ++i) listed.insert(feasible.at(i));
    CHECK(listed == expected);
    CHECK(has(message_of<UsageError>([&] { (void)feasible.at(feasible.size()); }),
              "asked for number"));
}

TEST_CASE("levels that are one to a rule are one before its other parameters are decided, too") {
    const SearchSpace space(
        {Parameter::choice("a", {"p", "q"}), Parameter::integer("b", 0, 1),
         Parameter::integer("c", 0, 2)},
        {require("(a == 'q' and b == 1) or (a == 'p' and b == 1 and c >= 0) or c == 1")});
    const FeasibleSet feasible(space);
    CHECK(feasible.size() == 8);
    std::set<Configuration> drawn;
    Rng rng(1);
    for (int i = 0; i < 200; ++i) drawn.insert(feasible.sample(rng));
    CHECK(drawn == by_brute_force(space));
}

TEST_CASE("only known combinations: rows of a table as a constraint, inactive cells included") {
    const SearchSpace space({Parameter::boolean("speculate"),
                             Parameter::integer("guesses", 1, 4).when("speculate", {true}),
                             Parameter::choice("backend", {"fa3", "triton"})},
                            {Allow{{"speculate", "guesses"},
                                   {{false, std::nullopt}, {true, std::int64_t{2}}},
                                   "measured"}});
    CHECK(FeasibleSet(space).size() == 4);
}

TEST_CASE("sampling is uniform over feasible configurations, not over the product") {
    // 1 configuration without speculation, 8 with it: a draw parameter by parameter would give each
    // branch one half.
    const SearchSpace space({Parameter::boolean("speculate"),
                             Parameter::integer("guesses", 1, 8).when("speculate", {true})});
    const FeasibleSet feasible(space);
    Rng rng(3);
    std::map<Configuration, int> seen;
    constexpr int draws = 9000;
    for (int i = 0; i < draws; ++i) ++seen[feasible.sample(rng)];
    REQUIRE(seen.size() == 9);
    double chi_square = 0;
    for (const auto& [configuration, count] : seen)
        chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
    CHECK(chi_square < 26.1);  // 99.9 % point with 8 degrees of freedom
}

TEST_CASE("reals are drawn inside their constraints") {
    const SearchSpace space(
        {Parameter::real("a", 0, 1), Parameter::real("b", 0, 1), Parameter::boolean("c")},
        {require("a + b <= 0.5")});
    const FeasibleSet feasible(space);
    CHECK(feasible.size() == 2);
    CHECK_FALSE(feasible.finite());
    Rng rng(5);
    for (int i = 0; i < 200; ++i) CHECK(space.feasible(feasible.sample(rng)));
    CHECK(message_of<UsageError>([&] { (void)feasible.at(0); }) ==
          "a space with continuous parameters cannot be listed");
}

TEST_CASE("a product of 1e12 is counted by its states, not by its members") {
    std::vector<Parameter> parameters;
    std::vector<Constraint> constraints;
    for (int i = 0; i < 12; ++i) {
        parameters.push_back(Parameter::integer("p" + std::to_string(i), 1, 10));
        if (i > 0)
            constraints.push_back(
                require("p" + std::to_string(i) + " >= p" + std::to_string(i - 1)));
    }
    const SearchSpace space(parameters, constraints);
    CHECK(FeasibleSet(space).size() == 293930);  // multisets of 12 out of 10: C(21, 12)
}

TEST_CASE("neighbours are feasible and mutual") {
    const SearchSpace space = rich_space();
    for (const Configuration& a : by_brute_force(space))
        for (const Configuration& b : neighbours(space, a)) {
            CHECK(space.feasible(b));
            const auto back = neighbours(space, b);
            CHECK(contains(back, a));
        }
}

TEST_CASE(
    "random spaces keep their promises: canonical form, feasible set, neighbours, rules read back "
    "from their text") {
    Rng rng(20261121);
    int made = 0;
    for (int i = 0; i < 1000; ++i) {
        const auto space = random_space(rng);
        if (!space) continue;
        ++made;
        const std::set<Configuration> expected = by_brute_force(*space);
        std::string description;
        for (const Parameter& parameter : space->parameters())
            description += parameter.name + ": " + parameter.domain_text() + "\n";
        for (const Constraint& constraint : space->constraints())
            description += text_of(constraint) + "\n";
        INFO(description);
        if (expected.empty()) {
            CHECK_THROWS_AS(FeasibleSet(*space), SpaceError);
            continue;
        }
        const FeasibleSet feasible(*space);
        CHECK(feasible.size() == double(expected.size()));
        std::set<Configuration> listed;
        double at = 0;
        feasible.for_each([&](const Configuration& configuration) {
            CHECK(feasible.at(at++) == configuration);
            listed.insert(configuration);
            return true;
        });
        CHECK(listed == expected);
        CHECK(expected.contains(feasible.sample(rng)));
        std::size_t looked_at = 0;
        for (const Configuration& a : expected) {
            CHECK(space->completed({a.entries().begin(), a.entries().end()}) == a);
            if (++looked_at > 10) continue;
            for (const Configuration& b : neighbours(*space, a)) {
                CHECK(expected.contains(b));
                const auto back = neighbours(*space, b);
                CHECK(contains(back, a));
            }
        }
        for (const Constraint& constraint : space->constraints())
            if (const auto* rule = std::get_if<Require>(&constraint))
                CHECK(parse_expression(rule->expression.text()).text() == rule->expression.text());
    }
    CHECK(made > 700);
}

TEST_CASE(
    "one in three million of a product is feasible, a real is mixed in, and each is drawn equally "
    "often") {
    std::vector<Parameter> parameters;
    std::vector<Constraint> constraints;
    for (int i = 0; i < 12; ++i) {
        parameters.push_back(Parameter::integer("p" + std::to_string(i), 1, 10));
        if (i > 0)
            constraints.push_back(
                require("p" + std::to_string(i) + " >= p" + std::to_string(i - 1)));
    }
    parameters.push_back(Parameter::real("x", 0, 1));
    const SearchSpace space(parameters, constraints);
    const FeasibleSet feasible(space);
    REQUIRE(feasible.size() == 293930);
    // With p11 = k the other eleven are a multiset out of 1..k: C(k + 10, 11) of them. 20 000
    // draws, judged in two ways.
    const std::array<double, 10> ways{1, 12, 78, 364, 1365, 4368, 12376, 31824, 75582, 167960};
    std::array<double, 10> drawn{};
    std::array<double, 10> halves{};
    Rng rng(7);
    constexpr int draws = 20'000;
    for (int i = 0; i < draws; ++i) {
        const Configuration configuration = feasible.sample(rng);
        const auto last = std::size_t(std::get<std::int64_t>(*configuration.find("p11")) - 1);
        ++drawn[last];
        ++halves[std::size_t(std::get<double>(*configuration.find("x")) * 10)];
    }
    double chi_square = 0;
    for (std::size_t k = 3; k < 10; ++k) {  // cells with at least 20 expected
        const double expected = draws * ways[k] / 293930;
        chi_square += (drawn[k] - expected) * (drawn[k] - expected) / expected;
    }
    CHECK(chi_square < 24.3);  // 99.9 % point with 7 degrees of freedom
    chi_square = 0;
    for (const double count : halves)
        chi_square += (count - draws / 10.0) * (count - draws / 10.0) / (draws / 10.0);
    CHECK(chi_square < 27.9);  // 9 degrees of freedom
}

TEST_CASE("unset sits beside the engine's own value") {
    const SearchSpace space(
        {Parameter::integer("tokens", 1024, 65536, Scale::log2).or_unset(8192)});
    const auto around = neighbours(space, space.default_configuration());
    REQUIRE(around.size() == 1);
    CHECK(around.front().text() == "tokens=8192");
}

// -------------------------------------------------------------------------------------------------
// expressions

namespace {

std::optional<bool> evaluated(const std::string& text, const Assignment& values = {}) {
    const Expression expression = parse_expression(text);
    return expression.evaluate([&](std::size_t i) -> const Value* {
        const auto found = values.find(expression.names()[i]);
        return found == values.end() ? nullptr : &found->second;
    });
}

}  // namespace

TEST_CASE("expressions: precedence, types and the unknown") {
    const Assignment values{{"a", std::int64_t{3}}, {"b", 0.5}, {"s", "fp8"}, {"t", true}};
    CHECK(evaluated("1 + 2 * 3 == 7") == true);
    CHECK(evaluated("(1 + 2) * 3 == 9") == true);
    CHECK(evaluated("-a + 4 == 1 and 7 % 4 == 3", values) == true);
    CHECK(evaluated("8 - 3 - 2 == 3") == true);
    CHECK(evaluated("not t or a >= 3", values) == true);
    CHECK(evaluated("s in ['fp8', \"fp4\"] and s != 'none'", values) == true);
    CHECK(evaluated("s not in ['fp4']", values) == true);
    CHECK(evaluated("a == 3.0", values) == true);
    CHECK(evaluated("s == 3", values) == false);
    CHECK(evaluated("1 / 0 > 1e300") == true);
    CHECK(evaluated("missing > 1", values) == std::nullopt);
    CHECK(evaluated("missing > 1 or a == 3", values) == true);
    CHECK(evaluated("missing > 1 and a == 4", values) == false);
    CHECK(evaluated("missing > 1 and a == 3", values) == std::nullopt);
    CHECK(evaluated("vllm.a_1 == 1", {{"vllm.a_1", std::int64_t{1}}}) == true);
}

TEST_CASE("expressions: errors name the column and what was wanted") {
    const auto error = [](const std::string& text) {
        return message_of<ParseError>([&] { (void)parse_expression(text); });
    };
    CHECK(error(std::string("a == 'x\0y'", 10)) == "an expression has no zero bytes");
    CHECK(error("a >") ==
          "'a >': column 4: a number, a 'string', a name or '(' wanted, got the end");
    CHECK(error("(a > 1") == "'(a > 1': column 7: ')' wanted, got the end");
    const std::string next = "'and', 'or', one of == != <= >= < > or the end wanted, got ";
    CHECK(error("a > 1 b") == "'a > 1 b': column 7: " + next + "'b'");
    CHECK(error("a => 1") == "'a => 1': column 3: " + next + "'=> 1'");
    CHECK(error("a && b") == "'a && b': column 3: " + next + "'&& b'");
    CHECK(error("a in 3") == "'a in 3': column 6: '[' after 'in' wanted, got '3'");
    CHECK(error("'open") == "''open': column 1: a closing quote wanted, got ''open'");
    CHECK(has(error(std::string(500, '(')), "at most 200 nested terms"));
    CHECK(has(error(std::string(20'000, '1')), "at most 10000 characters"));
    CHECK(message_of<SpaceError>([] { (void)evaluated("'fp8' + 1 > 2"); }) ==
          "''fp8' + 1 > 2': a number wanted, got 'fp8'");
}

TEST_CASE("expressions: holding names and restricting to an engine keep the meaning") {
    const Expression rule = parse_expression("tokens >= seqs or chunked");
    CHECK(rule.with_constant("chunked", false).text() == "(tokens >= seqs) or false");
    CHECK(rule.with_constant("seqs", Unset{}).names() ==
          std::vector<std::string>{"tokens", "chunked"});
    CHECK(rule.only_if("engine", "vllm").text() ==
          "(engine != 'vllm') or ((tokens >= seqs) or chunked)");
    CHECK(rule.renamed([](const std::string& name) { return "vllm." + name; }).text() ==
          "(vllm.tokens >= vllm.seqs) or vllm.chunked");
}
