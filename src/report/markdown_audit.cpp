// SPDX-License-Identifier: Apache-2.0
#include "markdown_page.hpp"
#include "markdown_sections.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace servetune {
namespace {

class AuditSection : private MarkdownPage {
public:
    explicit AuditSection(const ReportView& view) : MarkdownPage(view) {}

    std::string text() {
        struct Suspicion {
            std::size_t count = 0;
            const Trial* first = nullptr;
            const Finding* example = nullptr;
        };
        std::map<std::string, Suspicion> suspicions;
        std::set<std::pair<Configuration, std::string>>
            seen;  // what is found twice of a configuration is said once
        std::set<std::string>
            explained;  // a cause is said once: its numbers vary, its beginning does not
        bool any = false;
        const auto begin = [&] {
            if (!any) line("## Audit ({})\n", file_.audit);
            any = true;
        };
        const auto name_of = [&](const Trial& trial) {
            return difference(trial.configuration, result_.default_configuration) +
                   (trial.workload.empty() ? "" : ", workload " + trial.workload);
        };
        for (const Trial& trial : view_.trials) {
            if (trial.measurement() == nullptr) continue;
            const Validity& validity = trial.measurement()->validity;
            std::string said = trial.workload;
            for (const Finding& finding : validity.findings)
                said += ' ' + finding.id + ' ' + finding.left;
            std::set<std::string> counted;  // two findings of a kind are one measurement
            if (validity.verdict == Verdict::suspect)
                for (const Finding& finding : validity.findings) {
                    if (!counted.insert(finding.id).second) continue;
                    Suspicion& suspicion = suspicions[finding.id];
                    if (suspicion.count++ == 0) suspicion = {1, &trial, &finding};
                }
            if (validity.verdict != Verdict::unsound ||
                !seen.emplace(trial.configuration, said).second)
                continue;
            begin();
            line("- **unsound**: {}", name_of(trial));
            for (const Finding& finding : validity.findings)
                line("  - {}: {}{}{}{}", finding.id, finding.left,
                     finding.right.empty() ? "" : "; ", finding.right,
                     finding.cause.empty() ||
                             !explained.insert(finding.id + finding.cause.substr(0, 12)).second
                         ? ""
                         : ". " + finding.cause);
        }
        for (const auto& [id, suspicion] : suspicions) {
            begin();
            line("- suspect, {} measurement{}: {}; first {}: {}{}{}{}", suspicion.count,
                 suspicion.count == 1 ? "" : "s", id, name_of(*suspicion.first),
                 suspicion.example->left, suspicion.example->right.empty() ? "" : "; ",
                 suspicion.example->right,
                 suspicion.example->cause.empty() ? "" : ". " + suspicion.example->cause);
        }
        if (any) out_ += '\n';
        return std::move(out_);
    }
};

}  // namespace

std::string audit_section(const ReportView& view) { return AuditSection(view).text(); }

}  // namespace servetune
