// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "base/template.hpp"

#include <stdexcept>
#include <string>
#include <vector>

using namespace servetune;

TEST_CASE("a template's places are filled, escaped as they say, and not looked at again") {
    const TemplateValues values{
        {{"name", "a \"b\""}, {"none", ""}, {"lines", "x\n\ny\n"}, {"place", "{{name}}"}}, {}};
    const TemplateEscapes escapes{
        {"quoted", [](const std::string& text) { return "<" + text + ">"; }}};
    struct Case {
        std::string text, filled;
    };
    for (const auto& [text, filled] :
         std::vector<Case>{{"", ""},
                           {"no place, { { and }}\n", "no place, { { and }}\n"},
                           {"{{name}}, {{name|quoted}}\n", "a \"b\", <a \"b\">\n"},
                           {"a:\n  {{lines}}\nb\n", "a:\n  x\n\n  y\nb\n"},
                           {"a: {{lines}}", "a: x\n\ny\n"},
                           {"a\n  {{none}}\nb", "a\nb"},
                           {"a{{none}}b", "ab"},
                           {"{{place}}", "{{name}}"}}) {
        CAPTURE(text);
        CHECK(fill_template(text, values, escapes) == filled);
    }
}

TEST_CASE("sections of a template stand once for each entry, or if a text is there") {
    const TemplateValues values{
        {{"some", "1"}, {"none", ""}, {"who", "outer"}},
        {{"all", {{{{"n", "a"}}, {{"inner", {{}, {}}}}}, {{{"n", "b"}, {"who", "own"}}, {}}}},
         {"empty", {}}}};
    struct Case {
        std::string text, filled;
    };
    for (const auto& [text, filled] : std::vector<Case>{
             {"{{#some}}x{{/some}}{{^some}}y{{/some}}", "x"},
             {"{{#none}}x{{/none}}{{^none}}y{{/none}}", "y"},
             {"{{#unknown}}{{absent}}{{/unknown}}{{^unknown}}y{{/unknown}}", "y"},
             {"{{#empty}}x{{/empty}}{{^empty}}y{{/empty}}", "y"},
             {"[{{#all}}{{n}} {{who}};{{/all}}]", "[a outer;b own;]"},
             {"{{#all}}{{n}}{{#inner}}.{{/inner}}{{/all}}", "a..b"},
             {"list:\n  {{#all}}\n  - {{n}}\n  {{/all}}\nend\n", "list:\n  - a\n  - b\nend\n"},
             {"a\n{{#none}}\nx {{#some}}y{{/some}}\n{{/none}}\nb\n", "a\nb\n"}}) {
        CAPTURE(text);
        CHECK(fill_template(text, values) == filled);
    }
    for (const char* wrong : {"{{absent}}", "{{#some}}", "{{/some}}", "{{#some}}{{/none}}",
                              "{{who|absent}}", "{{#none}}{{#some}}{{/none}}"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(fill_template(wrong, values), std::logic_error);
    }
}
