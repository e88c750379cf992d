// SPDX-License-Identifier: Apache-2.0
// Prefill and decode apart: what a study's space has then, and what is started.
#include "support/test.hpp"

#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"
#include "servetune/feasible_set.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

Engine engine_with_roles() {
    Engine engine{"alpha"};
    engine.launch = {"alpha", "serve", "{model}", "--host", "{host}", "--port", "{port}"};
    engine.parameters = {
        {Parameter::integer("seqs", 1, 4096, Scale::log2).with_default(256), {"--seqs"}},
        {Parameter::integer("tokens", 1, 1 << 20, Scale::log2).with_default(8192), {"--tokens"}},
        {Parameter::integer("tp", 1, 64).with_default(1), {"--tp"}},
        {Parameter::integer("dp", 1, 64).with_default(1), {"--dp"}},
        {Parameter::boolean("shared_dp", false), {"--shared-dp"}},
    };
    engine.devices = {{"tp"}, {"dp", {{"shared_dp", {true}}}}};
    engine.constraints = {require("tokens >= seqs", "alpha refuses it")};
    EngineRoles roles;
    roles.each = {
        {"prefill", {"--role", "producer", "--side", "{side_port}"}, {{"SIDE_HOST", "{host}"}}},
        {"decode", {"--role", "consumer"}, {}}};
    roles.router = {{"router"},
                    {"--prefill", "{prefill_url}", "{prefill_side_port}"},
                    {"--decode={decode_url}"},
                    {"--port"},
                    {"{port}"}};
    roles.since = "0.5";
    engine.roles = roles;
    return engine;
}

SpaceEntry listed_values(std::string name, std::vector<Value> values) {
    SpaceEntry entry{std::move(name)};
    entry.domain = ChoiceDomain{std::move(values), true};
    entry.offers_unset = false;
    return entry;
}

SpaceDescription with_roles(std::map<std::string, std::vector<SpaceEntry>> roles,
                            std::int64_t devices = 8) {
    SpaceDescription description{{engine_with_roles()}};
    description.entries = {
        listed_values("seqs", {std::int64_t{128}, std::int64_t{256}}),
        listed_values("tp", {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}})};
    description.others_searched = false;
    description.devices = DeviceLimit{devices, true};
    description.roles = std::move(roles);
    return description;
}

const std::map<std::string, std::vector<SpaceEntry>> usual_roles{
    {"prefill",
     {listed_values("prefill.count", {std::int64_t{1}, std::int64_t{2}}),
      listed_values("prefill.tokens", {std::int64_t{8192}, std::int64_t{16384}}),
      listed_values("prefill.tp", {std::int64_t{1}, std::int64_t{2}})}},
    {"decode",
     {listed_values("decode.count", {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}})}}};

std::vector<std::string> names_of(const std::vector<Parameter>& parameters) {
    std::vector<std::string> result;
    for (const Parameter& parameter : parameters) result.push_back(parameter.name);
    return result;
}

std::string role_refusal(SpaceDescription description) {
    try {
        (void)Composition(std::move(description));
    } catch (const SpaceError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("roles: a study without them has the same space as ever") {
    SpaceDescription without = with_roles({});
    without.roles.reset();
    const Composition composition(std::move(without));
    CHECK(names_of(composition.parameters()) == std::vector<std::string>{"seqs", "tp"});
    const SearchSpace space(composition.parameters(), composition.constraints());
    CHECK(composition.groups(space.default_configuration()).size() == 1);
    CHECK(space.default_configuration().text() == "seqs=256 tp=1");
}

TEST_CASE(
    "roles: together is the default, and what roles have of their own is theirs where they are "
    "apart") {
    const Composition composition(with_roles(usual_roles));
    const SearchSpace space(composition.parameters(), composition.constraints());
    CHECK(names_of(composition.parameters()) ==
          std::vector<std::string>{"roles", "seqs", "tp", "prefill.tokens", "prefill.tp",
                                   "prefill.count", "decode.count"});
    const Configuration together = space.default_configuration();
    CHECK(together.text() == "roles=together seqs=256 tp=1");
    CHECK_FALSE(composition.needs_router(together));
    CHECK(composition.devices_of(together) == 1);
    CHECK_THROWS_AS(composition.render(together, {"m"}, "prefill"), SpaceError);
    CHECK_THROWS_AS(composition.render_router(together, {"m"}, {}), SpaceError);

    const Configuration apart = space.changed(together, {{"roles", "apart"},
                                                         {"tp", std::int64_t{4}},
                                                         {"prefill.tp", std::int64_t{2}},
                                                         {"prefill.tokens", std::int64_t{16384}},
                                                         {"prefill.count", std::int64_t{2}}});
    const auto groups = composition.groups(apart);
    REQUIRE(groups.size() == 2);
    CHECK((groups[0].role == "prefill" && groups[0].count == 2 && groups[0].devices == 2));
    CHECK((groups[1].role == "decode" && groups[1].count == 1 && groups[1].devices == 4));
    CHECK(composition.devices_of(apart) == 8);
    CHECK(composition.render(apart, {"m", "10.0.0.1", 8001, 9001}, "prefill").text() ==
          "SIDE_HOST=10.0.0.1 alpha serve m --host 10.0.0.1 --port 8001 --tokens=16384 --tp=2 "
          "--role producer --side 9001");
    CHECK(composition.render(apart, {"m", "10.0.0.1", 8002}, "decode").text() ==
          "alpha serve m --host 10.0.0.1 --port 8002 --tp=4 --role consumer");
    CHECK(composition.render(apart, {"m"}, "prefill").text() ==
          "alpha serve m --tokens=16384 --tp=2 --role producer");
    CHECK_THROWS_AS(composition.render(apart, {"m"}, "other"), SpaceError);
}

TEST_CASE("roles: the router's words stand once for each server") {
    const Composition composition(with_roles(usual_roles));
    const SearchSpace space(composition.parameters(), composition.constraints());
    const Configuration apart = space.changed(space.default_configuration(), {{"roles", "apart"}});
    const std::map<std::string, std::vector<ServerAddress>> servers{
        {"prefill", {{"http://a:1", 9001}, {"http://b:2", 9002}}}, {"decode", {{"http://c:3"}}}};
    CHECK(
        composition.render_router(apart, {"m", "h", 80}, servers).text() ==
        "router --prefill http://a:1 9001 --prefill http://b:2 9002 --decode=http://c:3 --port 80");
    CHECK_THROWS_AS(
        composition.render_router(apart, {"m", "h", 80}, {{"prefill", {{"http://a:1"}}}}),
        SpaceError);
}

TEST_CASE(
    "roles: all servers together fit the machine, and rules of the engine hold for each role") {
    const Composition composition(with_roles(usual_roles, 4));
    const SearchSpace space(composition.parameters(), composition.constraints());
    const FeasibleSet feasible(space);
    std::int64_t most = 0;
    for (double i = 0; i < feasible.size(); ++i) {
        const Configuration one = feasible.at(i);
        CHECK(composition.devices_of(one) <= 4);
        most = std::max(most, composition.devices_of(one));
    }
    CHECK(most == 4);

    auto small = usual_roles;
    small["prefill"][1] = listed_values("prefill.tokens", {std::int64_t{128}, std::int64_t{8192}});
    const Composition bounded(with_roles(small));
    const SearchSpace bounded_space(bounded.parameters(), bounded.constraints());
    const auto apart = [&](std::int64_t seqs, std::int64_t tokens) {
        return bounded_space.changed(
            bounded_space.default_configuration(),
            {{"roles", "apart"}, {"seqs", seqs}, {"prefill.tokens", tokens}});
    };
    CHECK(bounded_space.feasible(apart(256, 8192)));
    CHECK(bounded_space.feasible(apart(128, 128)));
    CHECK_FALSE(bounded_space.feasible(apart(256, 128)));  // tokens >= seqs
}

TEST_CASE("roles: a shared parameter that every role has of its own is for one server only") {
    auto both = usual_roles;
    both["decode"].push_back(listed_values("decode.tp", {std::int64_t{1}, std::int64_t{4}}));
    const Composition composition(with_roles(both));
    const SearchSpace space(composition.parameters(), composition.constraints());
    const Configuration apart = space.changed(space.default_configuration(), {{"roles", "apart"}});
    CHECK(apart.find("tp") == nullptr);
    CHECK(apart.find("decode.tp") != nullptr);
    CHECK(space.default_configuration().find("tp") != nullptr);
}

TEST_CASE("roles: without a count there are as many servers as the machine may hold") {
    const Composition composition(with_roles({}, 4));
    const SearchSpace space(composition.parameters(), composition.constraints());
    CHECK(space.at("prefill.count").domain_text() == Parameter::integer("x", 1, 3).domain_text());
}

TEST_CASE("roles: what cannot be is refused, with its place") {
    SpaceDescription two_engines = with_roles(usual_roles);
    two_engines.engines.push_back(Engine{"beta"});
    CHECK(has(role_refusal(two_engines), "one engine wanted"));
    SpaceDescription no_roles = with_roles(usual_roles);
    no_roles.engines.front().roles.reset();
    CHECK(has(role_refusal(no_roles), "does not say how it runs prefill and decode apart"));
    SpaceDescription old = with_roles(usual_roles);
    old.versions["alpha"] = "0.4";
    CHECK(has(role_refusal(old), "from 0.5, and the study is for 0.4"));
    CHECK(
        has(role_refusal(with_roles(usual_roles, 1)), "at least 2 devices, and the machine has 1"));
    CHECK(has(role_refusal(with_roles({{"encode", {}}})),
              "has no role 'encode'; it has prefill, decode"));
    CHECK(has(
        role_refusal(with_roles({{"decode", {listed_values("decode.sqs", {std::int64_t{1}})}}})),
        "'decode.sqs': 'sqs' is no parameter"));
    CHECK(has(
        role_refusal(with_roles({{"decode", {listed_values("decode.count", {std::int64_t{0}})}}})),
        "whole numbers of servers from 1"));
    CHECK(has(role_refusal(
                  with_roles({{"decode", {listed_values("decode.seqs", {std::int64_t{9999}})}}})),
              "'decode.seqs': "));
    SpaceEntry served = listed_values("decode.seqs", {std::int64_t{128}});
    served.checkpoints = {{"128", "org/other"}};
    CHECK(role_refusal(with_roles({{"decode", {served}}})) ==
          "'decode.seqs': checkpoints belong under 'space'");
    SpaceDescription unbounded =
        with_roles({{"prefill", {listed_values("prefill.count", {std::int64_t{1}})}}});
    unbounded.devices.reset();
    CHECK(has(role_refusal(unbounded), "'decode.count': nothing says how many devices there are"));
    SpaceDescription typed =
        with_roles({{"decode", {listed_values("decode.cache", {Value("fp8")})}}});
    for (const std::string idea : {"quantization", "weight_dtype", "kv_cache_dtype",
                                   "value_cache_dtype", "state_cache_dtype"}) {
        EngineParameter cache{Parameter::choice("cache", {Value("auto"), Value("fp8")}),
                              {"--cache"}};
        cache.parameter.concept_name = idea;
        SpaceDescription one = typed;
        one.engines.front().parameters.push_back(cache);
        CHECK(role_refusal(one) ==
              "'decode.cache': prefill and decode hand over caches, so it is the same for both: "
              "write 'cache' under 'space'");
    }
}

TEST_CASE("roles: draft models that a role has of its own are among the models of the study") {
    SpaceDescription description =
        with_roles({{"decode", {listed_values("decode.draft", {Value("org/head")})}}});
    EngineParameter draft{Parameter::choice("draft", {Value("none"), Value("org/head")}),
                          {"--draft"}};
    draft.parameter.concept_name = "draft_model";
    description.engines.front().parameters.push_back(draft);
    const std::vector<std::string> models = Composition(std::move(description)).further_models();
    CHECK(contains(models, "org/head"));
}

TEST_CASE("roles: a person is shown every command, and where it goes") {
    const Composition composition(with_roles(usual_roles));
    const SearchSpace space(composition.parameters(), composition.constraints());
    const Configuration together = space.default_configuration();
    CHECK(composition.shown(together, {"m"}) == "alpha serve m");
    CHECK(
        composition.shown(space.changed(together, {{"roles", "apart"}, {"tp", std::int64_t{2}}}),
                          {"m"}) ==
        "# devices of prefill : decode = 1 : 2; each server needs its own\n"
        "# prefill-1: 1 device\nSIDE_HOST=127.0.0.1 alpha serve m --host 127.0.0.1 --port 8001 "
        "--role producer --side 8003\n"
        "# decode-1: 2 devices\nalpha serve m --host 127.0.0.1 --port 8002 --tp=2 --role consumer\n"
        "# router\nrouter --prefill http://127.0.0.1:8001 8003 --decode=http://127.0.0.1:8002 "
        "--port 8000");
}
