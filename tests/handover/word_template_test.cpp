// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "handover/word_template.hpp"
#include "servetune/error.hpp"

#include <stdexcept>
#include <string>
#include <vector>

using namespace servetune;

TEST_CASE("words: places, sections and templates within templates") {
    const nlohmann::ordered_json values{
        {"name", "a-b"},
        {"odd", "x {{name}}"},
        {"none", ""},
        {"count", 2},
        {"words", {"p", "q"}},
        {"rows", {{{"n", "1"}, {"some", true}}, {{"n", "2"}, {"name", "own"}}}},
        {"object", {{"k", 1}}}};
    const WordTemplates parts{
        .escapes = {{"angle",
                     {[](const auto& word) { return "<" + word.template get<std::string>() + ">"; },
                      ", "}},
                    {"pretty", {[](const auto& value) { return value.dump(2); }, "", true}},
                    {"star", {[](const auto& word) {
                         return "*" + word.template get<std::string>() + "*";
                     }}}},
        .templates = {{"part", "{{#rows}}\n{{n}}: {{name}}\n{{/rows}}\n"},
                      {"empty", "{{?none}}\nx\n{{/none}}\n"}}};
    struct Case {
        std::string text, filled;
    };
    for (const auto& [text, filled] : std::vector<Case>{
             {"{ {{name}} {{{name}}} }", "{ a-b {a-b} }"},
             {"{{angle:odd}}|{{angle:words}}|{{words}}", "<x {{name}}>|<p>, <q>|p q"},
             {"{{star:angle:odd}}", "*<x {{name}}>*"},
             {"a\n{{! gone }}\n  {{?none}}\n  b\n  {{/none}}\n  {{^none}}\n  c\n  {{/none}}\n",
              "a\n  c\n"},
             {"{{#rows}}{{n}}{{?some}}!{{/some}}{{/rows}}{{?count}}{{count}}{{/count}}", "1!22"},
             {"{{#words}}\n- {{angle:.}}\n{{/words}}\n", "- <p>\n- <q>\n"},
             {"x:\n  - {{>part}}\n  {{>empty}}\ny\n", "x:\n  - 1: a-b\n    2: own\ny\n"},
             {"  o: {{pretty:object}}\n", "  o: {\n    \"k\": 1\n  }\n"}}) {
        CAPTURE(text);
        CHECK(fill_words(text, values, parts) == filled);
    }
    CHECK_THROWS_AS(fill_words("{{odd}}", values, parts), UsageError);
    for (const char* wrong : {"{{absent}}", "{{#rows}}", "{{name"})
        CHECK_THROWS_AS(fill_words(wrong, values, parts), std::logic_error);
}
