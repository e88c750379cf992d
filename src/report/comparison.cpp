// SPDX-License-Identifier: Apache-2.0
#include "comparison.hpp"

#include "base/text.hpp"
#include "document.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/ranges.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace servetune {
namespace {

constexpr std::size_t longest_gate_text =
    10'000;  ///< of one text of others: a report stays readable

constexpr std::array<std::pair<GateCheck::End, std::string_view>, 4> gate_ends{
    {{GateCheck::End::passed, "passed"},
     {GateCheck::End::failed, "failed"},
     {GateCheck::End::undecided, "undecided"},
     {GateCheck::End::not_judged, "not judged"}}};

std::string_view gate_word(GateCheck::End end) {
    return find_if(gate_ends, [&](const auto& one) { return one.first == end; })->second;
}

/// XML 1.0 (section 2.2) has no U+FFFE and U+FFFF, which HTML lets pass.
std::string xml_text(std::string_view text, const Redactor& secrets) {
    std::string result = html_text(start_of(secrets(text), longest_gate_text));
    for (const std::string_view none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})
        for (std::size_t at = result.find(none); at != npos; at = result.find(none, at))
            result.replace(at, 3, "\xEF\xBF\xBD");
    return result;
}

/// ` name="text"`, in one line: a reader of XML makes line ends of an attribute blanks.
std::string xml_attribute(std::string_view name, std::string_view text, const Redactor& secrets) {
    return " " + std::string(name) + "=\"" + xml_text(printable_line(secrets(text)), secrets) +
           "\"";
}

std::string gate_details(const GateCheck& check) {
    std::string result = check.text + "\n";
    for (const auto& [side, values] : {std::pair("A", &check.a), {"B", &check.b}}) {
        if (values->empty()) continue;
        result += std::string(side) + ":";
        for (const std::string& value : *values) result += " " + value;
        result += "\n";
    }
    for (const std::string& line : check.log) result += line + "\n";
    return result;
}

std::string xml_case(const GateCheck& check, const GateReport& report, const Redactor& secrets) {
    const std::string in = report.study + (check.workload.empty() ? "" : "." + check.workload);
    const std::string start = "    <testcase" + xml_attribute("classname", in, secrets) +
                              xml_attribute("name", check.name, secrets);
    if (check.end == GateCheck::End::passed)
        return start + ">\n      <system-out>" + xml_text(gate_details(check), secrets) +
               "</system-out>\n    </testcase>\n";
    const std::string element = check.end == GateCheck::End::failed      ? "failure"
                                : check.end == GateCheck::End::undecided ? "error"
                                                                         : "skipped";
    return start + ">\n      <" + element + xml_attribute("message", check.text, secrets) + ">" +
           xml_text(gate_details(check), secrets) + "</" + element + ">\n    </testcase>\n";
}

}  // namespace

std::string junit_xml(const GateReport& report, const Redactor& secrets) {
    const auto count = [&](GateCheck::End end) {
        return std::to_string(
            count_if(report.checks, [&](const GateCheck& one) { return one.end == end; }));
    };
    const std::string counts = " tests=\"" + std::to_string(report.checks.size()) +
                               "\" failures=\"" + count(GateCheck::End::failed) + "\" errors=\"" +
                               count(GateCheck::End::undecided) + "\"";
    const std::string time = " time=\"" + fixed_text(report.seconds, 3) + "\"";
    std::string result =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"autotune compare --gate\"" +
        counts + time + ">\n";
    result += "  <testsuite" + xml_attribute("name", report.study, secrets) + counts +
              " skipped=\"" + count(GateCheck::End::not_judged) + "\"" + time + ">\n";
    for (const GateCheck& check : report.checks) result += xml_case(check, report, secrets);
    return result + "  </testsuite>\n</testsuites>\n";
}

std::string gate_markdown(const GateReport& report, const Redactor& secrets) {
    const auto cut = [&](const std::string& of_others) {
        return start_of(secrets(of_others), longest_gate_text);
    };
    Section gate{"gate",
                 "Gate of " + cut(report.study) + ": " + std::string(gate_word(report.end))};
    gate.say(cut(report.headline));
    Table checks{"checks", {"result", "workload", "check", "B against A"}};
    std::vector<Block> logs;
    for (const GateCheck& check : report.checks) {
        Row& row = checks.rows.emplace_back(
            Row{{std::string(gate_word(check.end)), check.workload, check.name, cut(check.text)}});
        row.cells.front().strong = check.end == GateCheck::End::failed;
        std::string log;
        for (const std::string& line : check.log) log += line + "\n";
        if (!log.empty()) logs.emplace_back(Code{"text", cut(log)});
    }
    checks.texts = 4;
    gate.show(std::move(checks));
    gate.blocks.insert(gate.blocks.end(), logs.begin(), logs.end());
    for (const auto& [name, command] :
         {std::pair("A:", &report.a_command), {"B:", &report.b_command}}) {
        gate.say(name);
        gate.blocks.emplace_back(Code{"sh", cut(*command)});
    }
    Document document;
    document.add(std::move(gate));
    return markdown_of(document, secrets);
}

}  // namespace servetune
