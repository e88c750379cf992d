// SPDX-License-Identifier: Apache-2.0
#include "effects_report.hpp"

#include "../io/json_values.hpp"
#include "markdown.hpp"
#include "servetune/optimizer/effects.hpp"
#include "servetune/report/report.hpp"

#include <fmt/format.h>

#include <set>

namespace servetune {
namespace {

Effects effects_of(const ReportView& view) {
    return {*view.setup.problem, view.trials, Bayesian(view.setup.bayesian_options()), view.setup.beliefs};
}

std::string range(const CredibleInterval& gain) {
    return fmt::format("{} | {} to {}", percent(gain.value), percent(gain.low), percent(gain.high));
}

std::string effects_section(const Effects& effects, const ReportView& view) {
    if (effects.floor().varied == 0) return "";
    std::string out = "## What the parameters do\n\n";
    if (!effects.floor().enough()) return out + not_said(effects.floor()) + "\n\n";
    if (!effects.learned())
        return out + fmt::format("Nothing is known of {} configurations: the interval of every measured level holds 0.\n\n",
                                 effects.floor().measured);
    out += fmt::format(
        "Over the space as a whole, by the models of {} configurations: {} with one parameter at this level against the average of its "
        "levels, all else "
        "alike (docs/explanation/optimizer.md). The intervals of the list hold all together with 95 %.\n\n"
        "| parameter | level | gain | interval |\n|---|---|---:|---|\n",
        effects.floor().measured, markdown_text(view.setup.problem->objective.leading().metric));
    std::set<std::string> known;
    for (const MainEffect& effect : effects.main())
        if (effect.known()) known.insert(effect.parameter);
    std::string unknown;
    for (const MainEffect& effect : effects.main()) {
        if (known.contains(effect.parameter)) {
            const bool is_default = effect.level == view.setup.problem->space.at(effect.parameter).default_value;
            out += fmt::format("| {} | {}{} | {}{} |\n", markdown_text(effect.parameter), markdown_text(text_of(effect.level)),
                               is_default ? " (default)" : "", range(effect.gain),
                               effect.known()         ? ""
                               : effect.measured == 0 ? ", not measured"
                                                      : ", not known");
        } else if (!unknown.ends_with(markdown_text(effect.parameter)))
            unknown += (unknown.empty() ? "" : ", ") + markdown_text(effect.parameter);
    }
    out += '\n';
    if (!unknown.empty()) out += fmt::format("Not known, the interval of every measured level holds 0: {}.\n\n", unknown);
    bool any = false;
    for (const PairEffect& pair : effects.pairs()) {
        if (!pair.gain.known()) continue;
        if (!any) out += "What two do together beyond what each does alone, and its share of the variance over the space:\n\n";
        any = true;
        out +=
            fmt::format("- {} and {}: {:.0f} %; most at {} and {}: {} ({} to {})\n", markdown_text(pair.parameters[0]),
                        markdown_text(pair.parameters[1]), pair.share * 100, markdown_text(text_of(pair.levels[0])),
                        markdown_text(text_of(pair.levels[1])), percent(pair.gain.value), percent(pair.gain.low), percent(pair.gain.high));
    }
    return out + (any ? "\n" : "No two of them are known to act together.\n\n");
}

nlohmann::ordered_json effects_json(const Effects& effects) {
    const auto gain_of = [](const CredibleInterval& gain) {
        return nlohmann::ordered_json{{"value", gain.value}, {"low", gain.low}, {"high", gain.high}};
    };
    nlohmann::ordered_json result{{"configurations", effects.floor().measured},
                                  {"needed", effects.floor().needed()},
                                  {"learned", effects.learned()},
                                  {"main", nlohmann::ordered_json::array()},
                                  {"interactions", nlohmann::ordered_json::array()}};
    for (const MainEffect& effect : effects.main())
        result["main"].push_back({{"parameter", effect.parameter},
                                  {"level", to_json(effect.level)},
                                  {"gain", gain_of(effect.gain)},
                                  {"measured", effect.measured}});
    for (const PairEffect& pair : effects.pairs())
        result["interactions"].push_back({{"parameters", pair.parameters},
                                          {"share", pair.share},
                                          {"levels", nlohmann::ordered_json::array({to_json(pair.levels[0]), to_json(pair.levels[1])})},
                                          {"gain", gain_of(pair.gain)},
                                          {"together", pair.together}});
    return result;
}

}  // namespace

std::string not_said(const EffectsFloor& floor) {
    return fmt::format("Not said: {} configurations gave a number, and {} parameters need {} before their effects can be told apart.",
                       floor.measured, floor.varied, floor.needed());
}

EffectsReport effects_report(const ReportView& view) {
    const Effects effects = effects_of(view);
    return {effects_section(effects, view), effects_json(effects)};
}

}  // namespace servetune
