// SPDX-License-Identifier: Apache-2.0
#include "comparison.hpp"

#include "base/probability.hpp"
#include "base/text.hpp"
#include "document.hpp"
#include "report_json.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/version.hpp"
#include "study/json.hpp"
#include "trial/metric_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>
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
    return std::find_if(gate_ends.begin(), gate_ends.end(),
                        [&](const auto& one) { return one.first == end; })
        ->second;
}

/// XML 1.0 (section 2.2) has no U+FFFE and U+FFFF, which HTML lets pass.
std::string xml_text(std::string_view text, const Redactor& secrets) {
    std::string result = html_text(start_of(secrets(text), longest_gate_text));
    for (const std::string_view none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})
        for (std::size_t at = result.find(none); at != std::string::npos;
             at = result.find(none, at))
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
        return std::to_string(std::count_if(report.checks.begin(), report.checks.end(),
                                            [&](const GateCheck& one) { return one.end == end; }));
    };
    const std::string counts = " tests=\"" + std::to_string(report.checks.size()) +
                               "\" failures=\"" + count(GateCheck::End::failed) + "\" errors=\"" +
                               count(GateCheck::End::undecided) + "\"";
    const std::string time = " time=\"" + fixed_text(report.seconds, 3) + "\"";
    std::string result =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"autotune compare --gate\"" +
        counts + time + ">\n";
    result += "  <testsuite" + xml_attribute("name", report.study, secrets) + counts +
              " skipped=\"" + count(GateCheck::End::not_judged) + "\"" + time +
              ">\n    <properties>\n";
    const auto property = [&](const std::string& name, const std::string& value) {
        result += "      <property" + xml_attribute("name", name, secrets) +
                  xml_attribute("value", value, secrets) + "/>\n";
    };
    property("servetune", std::string(library_version));
    property("verdict", report.headline);
    property("margin", short_number_text(report.margin));
    property("command of A", report.a_command);
    property("command of B", report.b_command);
    for (const GateReport::Row& row : report.rows) {
        property(row.what + " of A", row.a);
        property(row.what + " of B", row.b);
    }
    result += "    </properties>\n";
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
    Section figures{"figures", "Figures"};
    std::vector<Block> logs;
    for (const GateCheck& check : report.checks) {
        Row& row = checks.rows.emplace_back(
            Row{{std::string(gate_word(check.end)), check.workload, check.name, cut(check.text)}});
        row.cells.front().strong = check.end == GateCheck::End::failed;
        std::string log;
        for (const std::string& line : check.log) log += line + "\n";
        if (!log.empty()) logs.emplace_back(Code{"text", cut(log)});
        if (check.a.empty()) continue;
        figures.say(check.name + (check.workload.empty() ? "" : ", " + check.workload));
        Table pairs{check.name, {"pair", "A", "B"}};
        pairs.texts = 0;
        for (std::size_t i = 0; i < check.a.size() && i < check.b.size(); ++i)
            pairs.rows.push_back({{std::to_string(i + 1), check.a[i], check.b[i]}});
        figures.show(std::move(pairs));
    }
    checks.texts = 4;
    gate.show(std::move(checks));
    gate.blocks.insert(gate.blocks.end(), logs.begin(), logs.end());
    Table settings{"settings", {"setting", "A, the baseline", "B, the candidate"}};
    settings.texts = 3;
    for (const GateReport::Row& row : report.rows)
        settings.rows.push_back({{row.what, cut(row.a), row.a == row.b ? "the same" : cut(row.b)}});
    gate.show(std::move(settings));
    for (const auto& [name, command] :
         {std::pair("A:", &report.a_command), {"B:", &report.b_command}}) {
        gate.say(name);
        gate.blocks.emplace_back(Code{"sh", cut(*command)});
    }
    Document document;
    document.add(std::move(gate));
    document.add(std::move(figures));
    return markdown_of(document, secrets);
}

namespace {

using OrderedJson = nlohmann::ordered_json;

/// The second study's figures over the first one's, of the configurations that both have.
struct InBoth {
    std::size_t configurations = 0;
    /// Geometric mean, with its 95 % interval over the configurations; of one: of its measurements.
    std::optional<Gain> gain{};
};

InBoth found_in_both(const ReportView& a, const ReportView& b) {
    InBoth result;
    if (a.goal().metric != b.goal().metric) return result;
    std::vector<double> logs;
    std::optional<Gain> of_last;
    for (const Standing& standing : a.standings.all()) {
        const Standing* other = b.standings.find(standing.configuration);
        if (other == nullptr || !standing.passes() || !other->passes()) continue;
        of_last = gain_between(a.goal(), other->estimate(), standing.estimate());
        logs.push_back(std::log1p(of_last->value));
    }
    result.configurations = logs.size();
    if (!a.scale().ratios() || !b.scale().ratios()) return result;  // each has a unit of its own
    if (logs.size() < 2) {
        result.gain = of_last;
        return result;
    }
    const auto count = static_cast<double>(logs.size());
    double mean = 0;
    for (const double one : logs) mean += one / count;
    double squares = 0;
    for (const double one : logs) squares += (one - mean) * (one - mean);
    const double reach =
        student_quantile(0.05, logs.size() - 1) * std::sqrt(squares / (count - 1) / count);
    result.gain = Gain{std::expm1(mean), std::expm1(mean - reach), std::expm1(mean + reach)};
    return result;
}

/// A study with what is said of it.
struct Side {
    explicit Side(const StudyTrials& of) : view(of.setup, of.trials), headline(headline_of(view)) {}

    [[nodiscard]] const Estimate* estimate(const Configuration& configuration) const {
        const Standing* standing = view.standings.find(configuration);
        return standing == nullptr || !standing->passes() ? nullptr : &standing->leading().estimate;
    }
    [[nodiscard]] const Estimate* recommended() const {
        return headline.conclusion == Conclusion::nothing_passes
                   ? nullptr
                   : estimate(view.recommendation.recommended);
    }
    [[nodiscard]] std::string figure(const Estimate* estimate) const {
        const std::string& metric = view.goal().metric;
        if (estimate == nullptr) return "nothing that passes";
        return figure_text(metric, estimate->mean) +
               (view.standings.replicated() == 0  // its noise is only assumed
                    ? ""
                    : " (" + plain_figure_text(metric, estimate->low()) + " to " +
                          figure_text(metric, estimate->high()) + ")");
    }
    [[nodiscard]] std::string trials() const {
        const ReportView::Counts counts = view.counts();
        return fmt::format("{}, {} of them failed", counts.completed, counts.failed);
    }
    [[nodiscard]] OrderedJson json() const {
        const ReportView::Counts counts = view.counts();
        OrderedJson result{{"study", view.setup.file.name},
                           {"conclusion", name_in(conclusions, headline.conclusion)},
                           {"title", headline.title},
                           {"objective", view.problem().objective.goals_text()},
                           {"trials", {{"told", counts.completed}, {"failed", counts.failed}}},
                           {"command", headline.command}};
        for (const auto& [name, one] :
             {std::pair("default", estimate(view.base())), {"recommended", recommended()}})
            if (one != nullptr)
                result[name] = {{"value", one->mean}, {"low", one->low()}, {"high", one->high()}};
        return result;
    }

    ReportView view;
    Headline headline;
};

using Pairs = std::vector<std::pair<std::string, std::pair<std::string, std::string>>>;

/// The names under which two maps of texts have not the same.
Pairs differing(const std::map<std::string, std::string>& one,
                const std::map<std::string, std::string>& other) {
    std::set<std::string> names;
    for (const auto* each : {&one, &other})
        for (const auto& [name, text] : *each) names.insert(name);
    Pairs result;
    for (const std::string& name : names) {
        const auto text = [&](const auto& in) {
            const auto found = in.find(name);
            return found == in.end() ? "not there" : found->second;
        };
        if (text(one) != text(other)) result.push_back({name, {text(one), text(other)}});
    }
    return result;
}

Pairs different_settings(const ReportView& a, const ReportView& b) {
    const auto texts = [](const ReportView& view) {
        std::map<std::string, std::string> result;
        for (const auto& [name, value] : view.recommendation.recommended.entries())
            result[name] = text_of(value);
        return result;
    };
    return differing(texts(a), texts(b));
}

/// What decides what the studies do, where it is not the same; the first so many characters of it.
Pairs different_definitions(const ReportView& a, const ReportView& b) {
    constexpr std::size_t shown = 120;
    Pairs result = differing(a.setup.definition(), b.setup.definition());
    for (auto& [path, texts] : result)
        for (std::string* text : {&texts.first, &texts.second})
            if (text->size() > shown) *text = text->substr(0, shown) + "...";
    return result;
}

void show_pairs(Section& section, const std::string& what, const std::string& a,
                const std::string& b, const Pairs& rows, const char* if_none = "") {
    Table table{section.title, {what, a, b}};
    table.texts = 3;
    for (const auto& [name, values] : rows)
        table.rows.push_back({{name, values.first, values.second}});
    if (rows.empty()) section.say(if_none);
    section.show(std::move(table));
}

OrderedJson json_of_pairs(const Pairs& pairs) {
    OrderedJson result = OrderedJson::object();
    for (const auto& [name, values] : pairs)
        result[name] = {{"a", values.first}, {"b", values.second}};
    return result;
}

std::string in_both_text(const ReportView& a, const ReportView& b) {
    const InBoth both = found_in_both(a, b);
    if (a.goal().metric != b.goal().metric) return "The studies have different objectives.";
    if (both.configurations == 0) return "No configuration passes in both.";
    if (!both.gain)
        return "Some figures are 0 or below: by how much B is better than A is not said, as that "
               "would be a ratio.";
    return std::to_string(both.configurations) +
           (both.configurations == 1 ? " configuration passes" : " configurations pass") +
           " in both. B against A in " + a.goal().metric + ": " + percent(both.gain->value) + " (" +
           interval_text(*both.gain) +
           "). This is the difference of machines, days, versions or workloads, not of flags. "
           "'autotune compare' measures two studies' defaults in turns.";
}

}  // namespace

std::string markdown_comparison(const StudyTrials& a, const StudyTrials& b) {
    const Side one(a);
    const Side other(b);
    const std::string left = "A: " + a.setup.file.name;
    const std::string right = "B: " + b.setup.file.name;
    Document document{"Two studies side by side"};
    Section of_both{"verdicts", "Verdicts"};
    const auto both = [&](const auto& text) { return std::pair(text(one), text(other)); };
    show_pairs(
        of_both, "what", left, right,
        {{"verdict", {one.headline.title, other.headline.title}},
         {"objective",
          both([](const Side& side) { return side.view.problem().objective.goals_text(); })},
         {"trials", {one.trials(), other.trials()}},
         {"the default",
          both([](const Side& side) { return side.figure(side.estimate(side.view.base())); })},
         {"recommended", both([](const Side& side) { return side.figure(side.recommended()); })}});
    for (const auto& [name, side] : {std::pair(&left, &one), std::pair(&right, &other)})
        if (!side->headline.command.empty()) {
            of_both.say(*name);
            of_both.blocks.emplace_back(Code{"sh", side->headline.command});
        }
    document.add(std::move(of_both));
    Section settings{"settings", "Recommended settings that differ"};
    show_pairs(settings, "parameter", "A", "B", different_settings(one.view, other.view), "None.");
    document.add(std::move(settings));
    Section measured{"both", "Measured in both"};
    measured.say(in_both_text(one.view, other.view));
    document.add(std::move(measured));
    Section definitions{"definitions", "What is not the same"};
    show_pairs(definitions, "of the definition", "A", "B",
               different_definitions(one.view, other.view), "Nothing.");
    document.add(std::move(definitions));
    Redactor secrets = a.setup.file.secrets;
    secrets.add(b.setup.file.secrets);
    return markdown_of(document, secrets);
}

std::string json_comparison(const StudyTrials& a, const StudyTrials& b) {
    const Side one(a);
    const Side other(b);
    const InBoth both = found_in_both(one.view, other.view);
    OrderedJson result{
        {"a", one.json()},
        {"b", other.json()},
        {"different_settings", json_of_pairs(different_settings(one.view, other.view))},
        {"in_both", {{"configurations", both.configurations}}},
        {"different_definitions", json_of_pairs(different_definitions(one.view, other.view))}};
    if (both.gain) result["in_both"]["b_against_a"] = gain_json(*both.gain);
    redact(result, a.setup.file.secrets);
    redact(result, b.setup.file.secrets);
    return result.dump(2);
}

}  // namespace servetune
