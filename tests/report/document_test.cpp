// SPDX-License-Identifier: Apache-2.0
// One document, and what each writer makes of it.
#include "report/document.hpp"
#include "support/test.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

Document every_block() {
    Document document{"a <b> study"};
    document.add({"empty", "Left out"});
    Section section{"one", "First|section"};
    section.kind = "brief";
    section.blocks.emplace_back(Paragraph{"bold *text* sk-12345678", true, " and *not*"});
    section.blocks.emplace_back(Facts{{{"a <fact>", "its *value*"}}});
    section.say("plain");
    section.blocks.emplace_back(Heading{"more"});
    section.list(std::vector<Item>{{"an item"}, {"with a log", "line\n```\n"}});
    Table table{"figures", {"setting", "rate", "verdict"}};
    table.rows.push_back({{"a|b", Cell("12", 12.5), "wins"}, "passing", 3});
    table.rows.back().cells.back().strong = true;
    table.id = "results";
    table.sortable = true;
    section.show(table);
    section.blocks.emplace_back(Code{"sh", "run --key sk-12345678", "command"});
    document.add(std::move(section));
    Section drawn{"drawn", "Drawings"};
    drawn.draw("<svg></svg>");
    document.add(std::move(drawn));
    return document;
}

Redactor one_secret() {
    Redactor secrets;
    secrets.add("sk-12345678", "${KEY}");
    return secrets;
}

}  // namespace

TEST_CASE("document: Markdown escapes all text, and leaves out drawings and what is empty") {
    CHECK(markdown_of(every_block(), one_secret()) ==
          "# a \\<b> study\n\n## First\\|section\n\n**bold \\*text\\* ${KEY}** and \\*not\\*\n\n- "
          "a \\<fact>: its \\*value\\*\n\nplain\n\n### "
          "more\n\n- an item\n- with a log\n\n  ````text\n  line\n  ```\n  ````\n\n"
          "| setting | rate | verdict |\n|---|---:|---|\n| a\\|b | 12 | **wins** |\n\n"
          "```sh\nrun --key ${KEY}\n```\n\n");
}

TEST_CASE("document: a terminal has even columns and no marks") {
    Document document;
    Section section{"t", "Table"};
    section.show({"t", {"a", "long title"}, {{{"größer", "1"}}, {{"x", "22"}}}});
    section.say("one\x1b line");
    document.add(std::move(section));
    CHECK(text_of(document, {}) ==
          "Table\n\n  a       long title\n  größer  1\n  x       22\n\none\\u001b line\n\n");
}

TEST_CASE("document: HTML has every section in its contents, escaped, with what scripts read") {
    const std::string html = html_of(every_block(), one_secret());
    for (const char* part :
         {"<ul>\n<li><a href=\"#one\">First|section</a></li>\n<li><a "
          "href=\"#drawn\">Drawings</a></li>\n</ul></nav>",
          "<dl><div><dt>a &lt;fact&gt;</dt><dd>its *value*</dd></div>\n</dl>",
          "<section class=\"brief\" aria-labelledby=\"one\"><h2 id=\"one\">First|section</h2>",
          "<p><strong>bold *text* ${KEY}</strong> and *not*</p>", "<h3>more</h3>",
          "<li>with a log<pre>line\n```\n</pre></li>",
          " id=\"results\" class=\"sortable\"><thead><tr><th scope=\"col\" "
          "class=\"text\">setting</th><th scope=\"col\">rate</th>",
          "<tr class=\"passing\" data-of=\"3\"><td class=\"text\">a|b</td><td "
          "data-value=\"12.5\">12</td><td class=\"text\"><strong>wins</strong></td></tr>",
          "<pre id=\"command\"", "data-copy=\"command\""}) {
        INFO(part);
        CHECK(has(html, part));
    }
    CHECK_FALSE(has(html, "sk-12345678"));
}
