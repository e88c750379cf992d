// SPDX-License-Identifier: Apache-2.0
#include "report/comparison.hpp"
#include "support/test.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

GateReport made_up_gate() {
    GateReport report;
    report.study = "chat & <code>";
    report.headline = "B fails: it crashes";
    report.end = GateCheck::End::failed;
    report.checks = {
        {"both are measured",
         "",
         GateCheck::End::failed,
         "B fails: \x1b[31mred ]]> \xff\xef\xbf\xbf end",
         {"key sk-12345678", "| a | `b`"}},
        {"maximize x", "long", GateCheck::End::passed, "+1 %", {}, {"1", "2"}, {"3", "4"}},
        {"minimize y", "long", GateCheck::End::undecided, "-1 %"},
        {"limit z <= 1", "long", GateCheck::End::not_judged, "A breaks it too"}};
    report.a_command = "engine --key sk-12345678";
    report.b_command = "engine 2";
    report.seconds = 12.5;
    return report;
}

Redactor known_secrets() {
    Redactor secrets;
    secrets.add("sk-12345678", "${KEY}");
    return secrets;
}

}  // namespace

TEST_CASE("gate report: JUnit has a case for each check, and no text of others ends an element") {
    const std::string xml = junit_xml(made_up_gate(), known_secrets());
    INFO(xml);
    CHECK(has(
        xml,
        R"(<testsuites name="autotune compare --gate" tests="4" failures="1" errors="1" time="12.500">)"));
    CHECK(has(
        xml,
        R"(<testsuite name="chat &amp; &lt;code&gt;" tests="4" failures="1" errors="1" skipped="1" time="12.500">)"));
    CHECK(has(xml, R"(<testcase classname="chat &amp; &lt;code&gt;" name="both are measured">)"));
    CHECK(has(xml,
              "<failure message=\"B fails: \\u001b[31mred ]]&gt; \xef\xbf\xbd\xef\xbf\xbd end\">"));
    CHECK(has(xml, R"(<error message="-1 %">)"));
    CHECK(has(xml, R"(<skipped message="A breaks it too">)"));
    CHECK(has(xml, "+1 %\nA: 1 2\nB: 3 4\n</system-out>"));
    CHECK(has(xml, "key ${KEY}"));
    CHECK_FALSE(has(xml, "sk-12345678"));
    for (const char c : xml) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
}

TEST_CASE("gate report: the summary has verdict, checks and commands, without secrets") {
    const std::string text = gate_markdown(made_up_gate(), known_secrets());
    INFO(text);
    CHECK(text.starts_with("## Gate of chat & \\<code>: failed\n\nB fails: it crashes\n"));
    CHECK(has(text, "| **failed** |  | both are measured | B fails: "));
    CHECK(has(text, "| passed | long | maximize x | +1 % |\n"));
    CHECK(has(text, "```text\nkey ${KEY}\n| a | `b`\n```\n"));
    CHECK(has(text, "```sh\nengine --key ${KEY}\n```\n"));
    CHECK_FALSE(has(text, "sk-12345678"));
}

TEST_CASE("gate report: a text without end is cut") {
    GateReport report = made_up_gate();
    report.checks.front().log = {std::string(5'000'000, '<')};
    CHECK(junit_xml(report, {}).size() < 100'000);
    CHECK(gate_markdown(report, {}).size() < 100'000);
}
