// SPDX-License-Identifier: Apache-2.0
// The table of what can measure a study (src/study_file/evaluator_type.hpp).
#include "support/test.hpp"

#include "servetune/error.hpp"
#include "study_file/evaluator_type.hpp"
#include "study_file/keys.hpp"
#include "study_file/yaml.hpp"

#include <algorithm>
#include <set>

using namespace servetune;
using namespace servetune::test;

TEST_CASE("measuring: each kind's row stands where its alternative does and is complete") {
    const std::map<std::string_view, std::string> smallest{{"replay", "t.csv"},
                                                           {"simulate", "{}"},
                                                           {"attach", "\"http://127.0.0.1:1\""},
                                                           {"deploy", "{}"},
                                                           {"command", "[./measure]"}};
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < evaluator_types().size(); ++i) {
        const std::string_view name = evaluator_types().at(i)->traits.name;
        INFO(name);
        CHECK(names.insert(name).second);
        const bool outside = name == "outside";
        const Yaml evaluator =
            Yaml::parse(outside ? "{}" : "{" + std::string(name) + ": " + smallest.at(name) + "}",
                        "study.yaml");
        CHECK(read_measuring(evaluator, outside).index() == i);
    }
    names.erase("outside");
    std::set<std::string_view> keys;
    for (const Key& key : rows_of(keys::evaluator)) keys.insert(key.name);
    CHECK(names == keys);
}

TEST_CASE("measuring: a study names one kind, and its keys come before what is said of the space") {
    const auto message = [](const std::string& text) {
        return message_of<ParseError>([&] { (void)read_measuring(Yaml::parse(text, "f"), false); });
    };
    CHECK(message("{}") ==
          "f:1:1: one evaluator wanted: replay, simulate, attach, deploy or command");
    CHECK(message("{deploy: {}, simulate: {}}") ==
          "f:1:1: one evaluator wanted: replay, simulate, attach, deploy or command");
    CHECK(
        message("{deply: {}}").starts_with("f:1:9: 'deply': unknown key; known: deploy, replay, "));
    CHECK(message("[]") ==
          "f:1:1: a mapping with replay, simulate, attach, deploy, command wanted, got a list");
}
