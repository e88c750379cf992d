// SPDX-License-Identifier: Apache-2.0
#include "html_report.hpp"

#include "html_text.hpp"
#include "html_view.hpp"
#include "page_files.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/secret_forms.hpp"
#include "time_spent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace servetune {
namespace {

std::string with_blanks(std::string name) {
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
}

/// `TTFT p95 (ms) ≤ 900`: words that a narrow column can break.
std::string limit_title(const Limit& limit) {
    return metric_title(limit.metric) + (limit.at_least ? " ≥ " : " ≤ ") +
           short_number_text(shown_in_milliseconds(limit.metric) ? limit.bound * 1e3 : limit.bound);
}

/// A text with places `{{name}}`. What is put there is not looked at again.
std::string filled(std::string_view frame, const std::map<std::string_view, std::string>& texts) {
    std::string result;
    for (auto at = frame.find("{{"); at != std::string_view::npos; at = frame.find("{{")) {
        const auto end = frame.find("}}", at);
        result += frame.substr(0, at);
        result += texts.at(frame.substr(at + 2, end - at - 2));
        frame.remove_prefix(end + 2);
    }
    return result.append(frame);
}

/// Sources of a content security policy: these files and nothing else, whatever text of others may
/// become.
std::string allowed(const std::vector<const EmbeddedFile*>& files) {
    std::string result;
    for (const EmbeddedFile* file : files) {
        std::string bytes;
        for (std::size_t i = 0; i < file->sha256.size(); i += 2)
            bytes +=
                static_cast<char>(std::stoi(std::string(file->sha256.substr(i, 2)), nullptr, 16));
        result += " 'sha256-" + base64(bytes) + "'";
    }
    return result;
}

class HtmlPage {
public:
    HtmlPage(const HtmlView& page, const std::vector<AccountPart>& account,
             const std::string& report_json, std::string_view live_version)
        : page_(page),
          account_(account),
          view_(page.view),
          setup_(page.view.setup),
          file_(page.view.setup.file),
          result_(page.view.recommendation),
          json_(report_json),
          live_version_(live_version) {}

    std::string text() {
        verdict();
        facts();
        section("gains", "Gain", gains_figure(page_));
        brief(account_);
        brief(handover_parts(view_));
        section("search", "Path of the search", path_tools() + search_figures(page_));
        section("trade", "Trade-offs", trade_figure(page_), "trade-offs");
        section("latency", "Latencies", latency_figure(page_));
        section("results", "All configurations", results(), "configurations");
        section("parallel", "Which settings are good together", parallel_figure(page_));
        section("effects", "What the flags do", effects_figure(page_) + pairs() + no_effects());
        section("failures", "What failed", failures());
        section("audit", "Audit", audit());
        section("noise", "Noise and drift", noise());
        section("predicted", "Predicted against measured", predicted_figure(page_));
        section("certain", "How sure this is", certain());
        section("words", "Words", words());
        return whole();
    }

private:
    [[nodiscard]] std::string shown(std::string_view text) const { return page_.shown(text); }
    [[nodiscard]] std::string figure(std::optional<double> value, std::string_view metric) const {
        return value ? plain_figure_text(metric, *value) : "–";
    }

    void section(const std::string& id, const std::string& title, const std::string& content,
                 const std::string& anchor = "", const std::string& kind = "") {
        if (content.empty()) return;
        const std::string name = anchor.empty() ? id : anchor;
        contents_ += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", name, title);
        body_ += fmt::format(
            "<section{3} aria-labelledby=\"{0}\"><h2 id=\"{0}\">{1}</h2>\n{2}</section>\n", name,
            title, content, kind.empty() ? "" : " class=\"" + kind + "\"");
    }

    /// Sections that are printed.
    void brief(const std::vector<AccountPart>& parts) {
        for (const AccountPart& part : parts) {
            std::string content = account_html(page_, part);
            if (part.id == "back" && !result_.keep_default)
                content +=
                    "<pre>" + shown(setup_.advice(result_.default_configuration)) + "</pre>\n";
            section(part.id, part.title, content, "", "brief");
        }
    }

    void verdict() {
        const Headline headline = headline_of(view_);
        top_ += fmt::format("<div class=\"verdict {}\"><p><strong>{}</strong></p>\n",
                            name_in(conclusions, headline.conclusion), shown(headline.title + "."));
        const std::string why =
            headline.reason + (headline.advice.empty() ? "" : " " + headline.advice);
        top_ += "<p>" + shown(why) + "</p>\n";
        if (!headline.command.empty())
            top_ += "<pre id=\"command\" tabindex=\"0\" aria-label=\"the command to serve\">" +
                    shown(headline.command) +
                    "</pre>\n<div class=\"only-script\"><button type=\"button\" "
                    "data-copy=\"command\">Copy the command</button></div>\n";
        if (!headline.given_away.empty())
            top_ += "<p class=\"soft\">" + shown(headline.given_away) + "</p>\n";
        top_ += "</div>\n";
    }

    void facts() {
        std::size_t told = 0;
        std::size_t failed = 0;
        for (const Trial& trial : view_.trials) {
            told += trial.told() ? 1 : 0;
            failed += trial.failure() != nullptr ? 1 : 0;
        }
        const auto fact = [&](const std::string& name, const std::string& value) {
            std::string text;
            for (const char c : shown(value))
                text += c == '_' ? "_<wbr>" : std::string(1, c);  // a long name may break there
            top_ += "<div><dt>" + shown(name) + "</dt><dd>" + text + "</dd></div>\n";
        };
        top_ += "<dl class=\"facts\">\n";
        if (!file_.model.empty()) fact("model", file_.model);
        if (!file_.machine.hardware.empty()) fact("hardware", file_.machine.hardware);
        fact("goal", setup_.problem->objective.goals_text());
        fact("trials", fmt::format("{}, {} failed", told, failed));
        fact("time of trials", spent_text(time_spent_in(view_.trials).trials));
        fact("ended", page_.stop_reason.empty() ? "not yet" : with_blanks(page_.stop_reason));
        fact("strategy", file_.strategy.name + fmt::format(", seed {}", file_.seed));
        top_ += "</dl>\n";
        if (const std::string by = file_.measured_by(); !by.empty())
            top_ += "<p class=\"soft\">" + shown(by) + "</p>\n";
    }

    [[nodiscard]] static std::string key() {
        return "<ul class=\"key\"><li><span class=\"swatch "
               "recommended\"></span>recommended</li><li><span class=\"swatch "
               "usual\"></span>the default</li>"
               "<li><span class=\"swatch\"></span>passes</li><li><span class=\"swatch "
               "refused\"></span>refused</li>"
               "<li><span class=\"swatch failed\"></span>no number</li></ul>\n";
    }
    [[nodiscard]] std::string path_tools() const {
        if (view_.search.empty()) return "";
        return "<div class=\"tools only-script\"><label>Across: <select id=\"path-axis\"><option "
               "value=\"trial\">trials</option><option "
               "value=\"time\">"
               "time</option></select></label></div>\n" +
               key();
    }

    /// The columns beside the goal: every other goal and every limited metric.
    [[nodiscard]] std::string results() const {
        if (page_.rows.empty()) return "";
        const Problem& problem = *setup_.problem;
        std::string out =
            "<div class=\"tools only-script\"><label>Show rows with: <input id=\"filter\" "
            "type=\"search\"></label><span id=\"shown\" "
            "role=\"status\"></span>"
            "</div>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"all "
            "configurations\"><table id=\"results\" "
            "class=\"sortable\"><caption>" +
            fmt::format("{} configurations, the best first.", page_.rows.size()) +
            "</caption><thead><tr><th scope=\"col\">setting</th><th scope=\"col\">" +
            html_text(metric_title(page_.leading().metric)) + "</th><th scope=\"col\">gain</th>";
        for (std::size_t k = 1; k < problem.objective.goals.size(); ++k)
            out += "<th scope=\"col\">" +
                   html_text(metric_title(problem.objective.goals[k].metric)) + "</th>";
        for (const Limit& limit : problem.objective.limits)
            out += "<th scope=\"col\">" + shown(limit_title(limit)) + "</th>";
        out +=
            "<th scope=\"col\">measured</th><th scope=\"col\" "
            "class=\"text\">verdict</th></tr></thead><tbody>\n";
        for (std::size_t i = 0; i < page_.rows.size(); ++i) {
            const HtmlRow& row = page_.rows[i];
            out += fmt::format("<tr class=\"{}\" data-of=\"{}\"><td>{}</td>", row.kind, i,
                               shown(row.name));
            const auto cell = [&](const std::string& text, std::optional<double> value,
                                  const char* kind = "") {
                out += fmt::format("<td data-value=\"{}\" class=\"{}\">{}</td>",
                                   value ? fmt::format("{:.9g}", *value) : "", kind, text);
            };
            cell(figure(row.value, page_.leading().metric), row.value);
            cell(row.gain ? stated_text(*row.gain, view_.standings.scale()) : "–", row.gain);
            for (std::size_t k = 1; k < problem.objective.goals.size(); ++k) {
                const auto value = value_in(row.means, problem.objective.goals[k].metric);
                cell(figure(value, problem.objective.goals[k].metric), value);
            }
            for (const Limit& limit : problem.objective.limits) limited(*row.standing, limit, out);
            cell(fmt::format("{:.0f}", row.standing->leading().total_runs()),
                 row.standing->leading().total_runs());
            out += "<td class=\"text\">" + shown(row.verdict) + "</td></tr>\n";
        }
        return out + "</tbody></table></div>\n";
    }
    void limited(const Standing& standing, const Limit& limit, std::string& out) const {
        std::string cell;
        std::optional<double> worst;
        for (const auto& [workload, value] :
             limited_figures(standing, limit, setup_.problem->decision)) {
            const std::string text =
                (workload.empty() ? "" : workload + " ") + plain_figure_text(limit.metric, value);
            cell +=
                (cell.empty() ? "" : "<br>") +
                (limit.keeps(value) ? shown(text)
                                    : "<span class=\"broken\">" + shown(text) + " broken</span>");
            if (!worst || (limit.at_least ? value < *worst : value > *worst)) worst = value;
        }
        out += fmt::format("<td data-value=\"{}\">{}</td>",
                           worst ? fmt::format("{:.9g}", *worst) : "", cell.empty() ? "–" : cell);
    }

    [[nodiscard]] std::string pairs() const {
        if (!page_.effects.is_object() || !page_.effects.contains("interactions") ||
            page_.effects["interactions"].empty())
            return "";
        std::string out;
        const auto said = [&](const nlohmann::ordered_json& gain) {
            return stated_text(gain.get<double>(), view_.standings.scale());
        };
        for (const auto& pair : page_.effects["interactions"]) {
            const auto& gain = pair["gain"];
            if (!gain["low"].is_number() || !gain["high"].is_number() || !gain["value"].is_number())
                continue;
            if (gain["low"].get<double>() <= 0 && gain["high"].get<double>() >= 0) continue;
            out +=
                "<li>" +
                shown(fmt::format("{} = {} with {} = {}: {} beyond what each does alone (interval "
                                  "{} to {}, 95 % for all pairs "
                                  "together); measured together {} times",
                                  level_text(pair["parameters"][0]), level_text(pair["levels"][0]),
                                  level_text(pair["parameters"][1]), level_text(pair["levels"][1]),
                                  said(gain["value"]), said(gain["low"]), said(gain["high"]),
                                  pair["together"].get<std::size_t>())) +
                "</li>\n";
        }
        return "<h3>Pairs</h3>\n" + (out.empty() ? "<p>No pair of parameters is known to do more "
                                                   "or less together than each does alone.</p>\n"
                                                 : "<ul>\n" + out + "</ul>\n");
    }
    [[nodiscard]] std::string no_effects() const {
        if (!page_.effects.is_object() || !page_.effects["main"].empty()) return "";
        return "<p>" +
               shown(fmt::format("Not known yet: {} configurations have been measured; to tell the "
                                 "effects apart, {} are needed.",
                                 page_.effects["configurations"].get<std::size_t>(),
                                 page_.effects["needed"].get<std::size_t>())) +
               "</p>\n";
    }

    [[nodiscard]] std::string setting(const Trial& trial) const {
        const std::string changes =
            difference_text(trial.configuration, result_.default_configuration);
        return (changes.empty() ? "the default" : changes) +
               (trial.workload.empty() ? "" : ", workload " + trial.workload);
    }

    /// By kind, the most frequent first, each with the lines of its log.
    [[nodiscard]] std::string failures() const {
        std::map<std::string, std::vector<const Trial*>> kinds;
        for (const Trial& trial : view_.trials)
            if (trial.failure() != nullptr)
                kinds[std::string(name_in(failure_kinds, trial.failure()->kind))].push_back(&trial);
        std::vector<std::pair<std::string, std::vector<const Trial*>>> sorted(kinds.begin(),
                                                                              kinds.end());
        std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
            return a.second.size() > b.second.size();
        });
        std::string out;
        constexpr std::size_t most_shown = 20;
        for (const auto& [kind, trials] : sorted) {
            out += fmt::format("<details{}><summary>{}: {} trial{}</summary>\n",
                               &kind == &sorted.front().first ? " open" : "", shown(kind),
                               trials.size(), trials.size() == 1 ? "" : "s");
            for (std::size_t i = 0; i < std::min(trials.size(), most_shown); ++i) {
                const Failure& failure = *trials[i]->failure();
                out += "<p>" +
                       shown(fmt::format("Trial {} ({}): {}", trials[i]->id, setting(*trials[i]),
                                         failure.message)) +
                       "</p>\n";
                std::string log;
                for (const std::string& line : failure.log_lines) log += line + "\n";
                if (!log.empty()) out += "<pre>" + shown(log) + "</pre>\n";
            }
            if (trials.size() > most_shown)
                out += fmt::format("<p class=\"soft\">and {} more, in the data below</p>\n",
                                   trials.size() - most_shown);
            out += "</details>\n";
        }
        std::string refused;
        for (const HtmlRow& row : page_.rows)
            if (row.value && !row.standing->passes())
                refused += "<li>" + shown(row.name + ": " + row.standing->refused) + "</li>\n";
        if (!refused.empty())
            out += "<details><summary>Measured, and refused</summary><ul>\n" + refused +
                   "</ul></details>\n";
        return out;
    }

    /// By what was found, not by trial.
    [[nodiscard]] std::string audit() const {
        struct Group {
            std::size_t unsound = 0, suspect = 0;
            const Trial* first = nullptr;
            const Finding* example = nullptr;
        };
        std::map<std::string, Group> groups;
        std::size_t measured = 0;
        std::size_t sound = 0;
        std::size_t unchecked = 0;
        for (const Trial& trial : view_.trials) {
            if (trial.measurement() == nullptr) continue;
            ++measured;
            const Validity& validity = trial.measurement()->validity;
            if (validity.verdict == Verdict::sound || validity.verdict == Verdict::unchecked) {
                ++(validity.verdict == Verdict::sound ? sound : unchecked);
                continue;
            }
            std::set<std::string> seen;
            for (const Finding& finding : validity.findings) {
                if (!seen.insert(finding.id).second) continue;
                Group& group = groups[finding.id];
                (validity.verdict == Verdict::unsound ? group.unsound : group.suspect) += 1;
                if (group.example == nullptr) group.first = &trial, group.example = &finding;
            }
        }
        if (measured == 0) return "";
        std::string out = fmt::format(
            "<p>{} of {} measurements are sound. Unsound ones {}.</p>\n", sound, measured,
            setup_.problem->decision.enforce_audit ? "cannot win"
                                                   : "count all the same, as the study says");
        if (unchecked > 0)
            out += fmt::format(
                "<p>{} could not be checked: they have no figures that could be held against each "
                "other.</p>\n",
                unchecked);
        if (groups.empty()) return out;
        out +=
            "<div class=\"wide\"><table><caption>What was found, by kind</caption><thead><tr><th "
            "scope=\"col\">finding</th><th "
            "scope=\"col\">unsound</th>"
            "<th scope=\"col\">suspect</th><th scope=\"col\" class=\"text\">the "
            "first</th></tr></thead><tbody>\n";
        for (const auto& [id, group] : groups)
            out += fmt::format(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"text\">{}</td></tr>\n", shown(id),
                group.unsound, group.suspect,
                shown(fmt::format("trial {}: {}{}{}{}{}", group.first->id, group.example->left,
                                  group.example->right.empty() ? "" : "; ", group.example->right,
                                  group.example->cause.empty() ? "" : ". ", group.example->cause)));
        return out + "</tbody></table></div>\n";
    }

    [[nodiscard]] std::string noise() const {
        if (view_.search.empty()) return "";
        std::string out = "<p>" + shown("Noise: " + noise_text(view_) + ".") + "</p>\n";
        if (const std::string drift = drift_text(view_.standings); !drift.empty())
            out += "<p>" + shown("Drift: " + drift + ".") + "</p>\n";
        return out + drift_figure(page_);
    }

    [[nodiscard]] std::string certain() const {
        std::vector<std::string> sure;
        std::vector<std::string> unsure;
        std::vector<std::string> next;
        if (result_.conclusion == Conclusion::recommended && result_.default_passes) {
            if (!result_.gain.has_interval())
                unsure.push_back(
                    "Whether the recommended command is better than the default: one measurement "
                    "each, so there is no interval.");
            else if (result_.gain.low > 0)
                sure.push_back(
                    "The recommended command is better than the default here: the 95 % interval "
                    "begins at " +
                    gain_text(result_.gain.low, result_.gain.scale) + ".");
            else
                unsure.push_back(
                    "Whether the recommended command is better than the default: the interval "
                    "holds zero.");
            if (result_.p_best)
                unsure.push_back(fmt::format(
                    "Whether it is the best of what was tried: the probability is {:.0f} %.",
                    100 * std::min(*result_.p_best, 0.99)));
        }
        if (result_.conclusion == Conclusion::keep_default)
            sure.push_back("Nothing that was tried is proven to be worth a change.");
        if (result_.conclusion == Conclusion::inconclusive)
            unsure.push_back("Everything: " + headline_of(view_).reason);
        std::size_t failing = 0;
        for (const HtmlRow& row : page_.rows) failing += row.value ? 0 : 1;
        if (failing > 0)
            sure.push_back(fmt::format("{} configuration{} gave no number here.", failing,
                                       failing == 1 ? "" : "s"));
        if (!result_.tied.empty())
            unsure.push_back(
                fmt::format("The order of the recommended one and {} other{}: at this noise they "
                            "cannot be told apart.",
                            result_.tied.size(), result_.tied.size() == 1 ? "" : "s"));
        const std::vector<std::string> guesses = speculation_notes(view_);
        if (!guesses.empty()) sure.push_back(guesses.front());
        if (setup_.beliefs.size() > 0 &&
            setup_.beliefs[0].fitted_to(view_.search, setup_.problem->decision))
            for (const std::string& doubt : doubts_of_cost_model(file_))
                unsure.push_back("Predictions: " + doubt + ".");
        for (std::string& note : knowledge_notes(view_)) unsure.push_back(std::move(note));
        if (std::string rest = not_tried_text(view_); !rest.empty())
            unsure.push_back(std::move(rest));
        for (const Standing& standing : view_.standings.all())
            if (!standing.other_work.empty())
                unsure.push_back(
                    "What " +
                    difference_text(standing.configuration, result_.default_configuration) +
                    " would give for the same work: " +
                    other_work_text(view_, standing.configuration) + ".");
        for (std::string& note : quality_notes(view_)) unsure.push_back(std::move(note));
        if (view_.standings.replicated() == 0)
            next.emplace_back(
                "Measure again: every configuration was measured once, so the noise is assumed.");
        if (page_.stop_reason.empty() || page_.stop_reason == "trials_spent")
            next.emplace_back(
                "Run on with a larger budget: `autotune run` goes on where it stopped.");
        if (!result_.tied.empty())
            next.emplace_back("Decide between two that are tied: `autotune compare`.");
        if (failing > 0 && failing * 2 >= page_.rows.size())
            next.emplace_back(
                "Remove what fails from the space: half of the configurations or more gave no "
                "number.");
        for (const std::string& note : file_.notes) unsure.push_back(note);
        const auto list = [&](const char* title, const std::vector<std::string>& items) {
            if (items.empty()) return std::string();
            std::string out = std::string("<section><h3>") + title + "</h3><ul>\n";
            for (const std::string& item : items) out += "<li>" + shown(item) + "</li>\n";
            return out + "</ul></section>\n";
        };
        return "<div class=\"three\">\n" + list("Certain", sure) + list("Not certain", unsure) +
               list("To try next", next) + "</div>\n";
    }

    [[nodiscard]] static std::string words() {
        constexpr std::pair<const char*, const char*> all[] = {
            {"default", "The engine as it starts without the flags of this study; trial 0."},
            {"gain",
             "How much better a figure is than the default's: 2 % more throughput, or the same "
             "work in 1/1.02 of the time."},
            {"95 % interval",
             "Were the study repeated many times, 95 of 100 such intervals would hold the true "
             "value."},
            {"TTFT", "Time to first token: from sending a request to its first token."},
            {"TPOT",
             "Time per output token: the mean time between tokens of one answer after the first."},
            {"ITL", "Inter-token latency: each time between two tokens, over all answers."},
            {"p95", "95 of 100 requests are at most as slow."},
            {"limit",
             "A bound that a configuration has to keep; one that breaks it is refused, however "
             "fast it is."},
            {"sound, unchecked, suspect, unsound",
             "What the audit says of a measurement: all figures fit together; there were none to "
             "compare; something disturbed it; it "
             "cannot be true."},
            {"noise", "How much two measurements of the same configuration differ, as a share."},
            {"drift",
             "A change of the machine's speed during the study, seen by measuring the default "
             "again."},
            {"front", "Configurations of which no other is better in both figures."}};
        std::string out = "<details><summary>What the words of this page mean</summary><dl>\n";
        for (const auto& [word, meaning] : all)
            out += fmt::format("<dt>{}</dt><dd class=\"plain\">{}</dd>\n", word, meaning);
        return out + "</dl></details>\n";
    }

    [[nodiscard]] std::string whole() const {
        std::vector<const EmbeddedFile*> scripts{&chart_js, &plane_js, &parallel_js, &charts_js,
                                                 &page_js};
        if (live()) scripts.push_back(&live_js);
        std::string elements;
        for (const EmbeddedFile* script : scripts)
            elements += "<script>" + std::string(script->text) + "</script>\n";
        return filled(
            page_html.text,
            {{"policy", "default-src 'none'; img-src data:; style-src" + allowed({&page_css}) +
                            "; script-src" + allowed(scripts) +
                            (live() ? "; connect-src 'self'" : "")},
             {"title",
              shown(file_.name + (file_.model.empty() ? "" : ": " + file_.model) +
                    (file_.machine.hardware.empty() ? "" : " on " + file_.machine.hardware))},
             {"style", std::string(page_css.text)},
             {"contents", contents_},
             {"live", live_bar()},
             {"content", top_ + body_},
             {"network", live() ? "" : " This file needs no network."},
             {"data", html_data(page_, json_)},
             {"scripts", elements}});
    }
    [[nodiscard]] bool live() const { return !live_version_.empty(); }
    [[nodiscard]] std::string live_bar() const {
        if (!live()) return "";
        return "\n<div id=\"live\" class=\"live\" data-version=\"" + shown(live_version_) +
               "\"><p role=\"status\" id=\"live-trial\">This page follows the study.</p><p "
               "id=\"live-now\"></p></div>\n<noscript><p>Without "
               "JavaScript this page stays as it is: load it again.</p></noscript>";
    }

    const HtmlView& page_;
    const std::vector<AccountPart>& account_;
    const ReportView& view_;
    const StudySetup& setup_;
    const StudyFile& file_;
    const Recommendation& result_;
    const std::string& json_;
    std::string_view live_version_;
    std::string contents_, top_, body_;
};

}  // namespace

std::string html_of(const ReportView& view, std::string_view stop_reason,
                    const nlohmann::ordered_json& effects, const std::vector<AccountPart>& account,
                    const std::string& report_json, std::string_view live_version) {
    const HtmlView page(view, stop_reason, effects);
    return HtmlPage(page, account, report_json, live_version).text();
}

}  // namespace servetune
