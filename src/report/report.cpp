// SPDX-License-Identifier: Apache-2.0
#include "servetune/report.hpp"

#include "content.hpp"
#include "report_json.hpp"

namespace servetune {
namespace {

std::string markdown_of(const ReportView& view, std::string_view stop_reason,
                        const Explained& explained) {
    return markdown_of(document_of({view, stop_reason, &explained}), view.setup.file.secrets);
}

}  // namespace

std::string markdown_report(const StudySetup& setup, std::span<const Trial> trials,
                            std::string_view stop_reason) {
    const ReportView view(setup, trials);
    return markdown_of(view, stop_reason, Explained::of(view));
}

std::string json_report(const StudySetup& setup, std::span<const Trial> trials,
                        std::string_view stop_reason, bool with_effects) {
    const ReportView view(setup, trials);
    if (!with_effects) return json_of(view, stop_reason, nullptr);
    const Explained explained = Explained::of(view);
    return json_of(view, stop_reason, &explained);
}

std::string html_report(const StudySetup& setup, std::span<const Trial> trials,
                        std::string_view stop_reason) {
    return live_page(setup, trials, stop_reason, true, "");
}

std::string live_page(const StudySetup& setup, std::span<const Trial> trials,
                      std::string_view stop_reason, bool with_effects, std::string_view version) {
    const ReportView view(setup, trials);
    std::optional<Explained> explained;
    if (with_effects) explained = Explained::of(view);
    const Explained* const models = explained ? &*explained : nullptr;
    return page_of({view, stop_reason, models}, json_of(view, stop_reason, models), version);
}

Reports all_reports(const StudySetup& setup, std::span<const Trial> trials,
                    std::string_view stop_reason) {
    const ReportView view(setup, trials);
    const Explained explained = Explained::of(view);
    Reports result{
        markdown_of(view, stop_reason, explained), json_of(view, stop_reason, &explained), {}};
    result.html = page_of({view, stop_reason, &explained}, result.json);
    return result;
}

}  // namespace servetune
