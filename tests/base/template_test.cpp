// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "base/template.hpp"

using namespace servetune;

namespace {
using Fillings = std::vector<std::pair<std::string, std::string>>;  // a text, and it filled
}  // namespace

TEST_CASE("a template's places are filled, escaped as they say, and not looked at again") {
    const TemplateValues values{
        {{"name", "a \"b\""}, {"none", ""}, {"lines", "x\n\ny\n"}, {"place", "{{name}}"}}, {}};
    const TemplateEscapes escapes{
        {"quoted", [](const std::string& text) { return "<" + text + ">"; }}};
    for (const auto& [text, filled] :
         Fillings{{"", ""},
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
    for (const auto& [text, filled] :
         Fillings{{"{{#some}}x{{/some}}{{^some}}y{{/some}}", "x"},
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
                              "{{who|absent}}", "{{>absent}}"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(fill_template(wrong, values), std::logic_error);
    }
}

TEST_CASE("parts of a template, lists at a place, several escapes, comments") {
    const TemplateValues values{
        {{"name", "a-b"}, {"none", ""}, {"json", "{\n  1\n}"}},
        {{"words", {{{{".", "p"}}, {}}, {{{".", "q"}}, {}}}},
         {"rows", {{{{"n", "1"}}, {}}, {{{"n", "2"}, {"name", "own"}}, {}}}}}};
    const TemplateEscapes escapes{
        {"", [](const std::string& text) { return "_" + text; }},
        {"angle", [](const std::string& text) { return "<" + text + ">"; }},
        {"star", [](const std::string& text) { return "*" + text + "*"; }}};
    const TemplateParts parts{{"part", "{{#rows}}\n{{n}}: {{name}}\n{{/rows}}\n"},
                              {"empty", "{{?none}}\nx\n{{/none}}\n"}};
    for (const auto& [text, filled] : Fillings{
             {"{ {{name|angle}} {{{name}}} }", "{ <a-b> {_a-b} }"},
             {"{{words|angle}}|{{words,|angle}}|{{words}}", "<p> <q>|<p>, <q>|_p _q"},
             {"{{name|angle|star}}", "*<a-b>*"},
             {"a\n{{! gone }}\n  {{?words}}\n  b\n  {{/words}}\n  {{^none}}\n  c\n  {{/none}}\n",
              "a\n  b\n  c\n"},
             {"{{#words}}\n- {{.|angle}}\n{{/words}}\n", "- <p>\n- <q>\n"},
             {"x:\n  - {{>part}}\n  {{>empty}}\ny\n", "x:\n  - _1: _a-b\n    _2: _own\ny\n"},
             {"  o: {{>json}},\n", "  o: {\n    1\n  },\n"}}) {
        CAPTURE(text);
        CHECK(fill_template(text, values, escapes, parts) == filled);
    }
}
