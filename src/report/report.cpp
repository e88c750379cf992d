// SPDX-License-Identifier: Apache-2.0
#include "servetune/report.hpp"

#include "chart.hpp"
#include "content.hpp"
#include "report_json.hpp"
#include "servetune/detail/base/redactor.hpp"

namespace servetune {
namespace {

/// A study and what was found of it by fitting models, where that is asked for.
struct ExplainedStudy {
    ExplainedStudy(const StudySetup& setup, std::span<const Trial> trials,
                   std::string_view stop_reason, bool with_effects)
        : view(setup, trials), ended(stop_reason) {
        if (with_effects) explained = Explained::of(view);
    }
    [[nodiscard]] const Explained* models() const { return explained ? &*explained : nullptr; }
    [[nodiscard]] std::string markdown() const {
        return markdown_of(document_of({view, ended, models()}), view.setup.file.secrets);
    }
    [[nodiscard]] std::string json() const { return json_of(view, ended, models()); }
    [[nodiscard]] std::string html(const std::string& json, std::string_view version) const {
        return page_of({view, ended, models()}, json, version);
    }

    const ReportView view;
    std::string_view ended;
    std::optional<Explained> explained{};
};

}  // namespace

std::string markdown_report(const StudySetup& setup, std::span<const Trial> trials,
                            std::string_view stop_reason, bool with_effects) {
    return ExplainedStudy(setup, trials, stop_reason, with_effects).markdown();
}

std::string json_report(const StudySetup& setup, std::span<const Trial> trials,
                        std::string_view stop_reason, bool with_effects) {
    return ExplainedStudy(setup, trials, stop_reason, with_effects).json();
}

std::string html_report(const StudySetup& setup, std::span<const Trial> trials,
                        std::string_view stop_reason, bool with_effects,
                        std::string_view live_version) {
    const ExplainedStudy study(setup, trials, stop_reason, with_effects);
    return study.html(study.json(), live_version);
}

Reports all_reports(const StudySetup& setup, std::span<const Trial> trials,
                    std::string_view stop_reason) {
    const ExplainedStudy study(setup, trials, stop_reason, true);
    Reports result{study.markdown(), study.json(), {}};
    result.html = study.html(result.json, "");
    return result;
}

namespace {

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

}  // namespace

std::string page_of(const Content& content, const std::string& report_json,
                    std::string_view live_version) {
    const bool live = !live_version.empty();
    const Document document = document_of(content);
    std::vector<const EmbeddedFile*> scripts{&chart_js, &plane_js, &charts_js, &page_js};
    if (live) scripts.push_back(&live_js);
    std::string elements;
    for (const EmbeddedFile* script : scripts)
        elements += "<script>" + std::string(script->text) + "</script>\n";
    TemplateValues values;
    values.texts = {
        {"policy", "default-src 'none'; img-src data:; style-src" + allowed({&page_css}) +
                       "; script-src" + allowed(scripts) + (live ? "; connect-src 'self'" : "")},
        {"title", html_text(content.clean(document.title))},
        {"style", std::string(page_css.text)},
        {"live", html_text(live_version)},
        {"commands", content.view.setup.file.has_commands() ? "yes" : ""},
        {"content", html_of(document, content.view.setup.file.secrets)},
        {"data", html_data(content, report_json)},
        {"scripts", elements}};
    return fill_template(page_html.text, values);
}

}  // namespace servetune
