// SPDX-License-Identifier: Apache-2.0
#include "effects_report.hpp"

#include "markdown.hpp"
#include "search/effects.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/report.hpp"
#include "study/json_values.hpp"

#include <fmt/format.h>

#include <set>

namespace servetune {
namespace {

Effects effects_of(const ReportView& view) {
    return {*view.setup.problem, view.trials, Bayesian(view.setup.bayesian_options()),
            view.setup.beliefs};
}

std::string range(const CredibleInterval& gain, const FigureScale& scale) {
    return fmt::format("{} | {} to {}", gain_text(gain.value, scale), gain_text(gain.low, scale),
                       gain_text(gain.high, scale));
}

std::string refused_levels_text(const Effects& effects) {
    std::string out;
    for (const MainEffect& effect : effects.main())
        if (!effect.refused.empty())
            out += fmt::format("- {} = {}: {}\n", markdown_text(effect.parameter),
                               markdown_text(text_of(effect.level)), markdown_text(effect.refused));
    return out.empty()
               ? ""
               : "No configuration with one of these levels passed, so none has a gain:\n\n" + out +
                     "\n";
}

std::string effects_section(const Effects& effects, const ReportView& view) {
    if (effects.floor().varied == 0) return "";
    std::string out = "## What the parameters do\n\n";
    if (!effects.floor().enough()) return out + not_said(effects.floor()) + "\n\n";
    const std::string refused = refused_levels_text(effects);
    if (!effects.learned())
        return out +
               fmt::format(
                   "{} configurations were measured, and none of the effects is proven: every 95 % "
                   "interval includes 0.\n\n",
                   effects.floor().measured) +
               refused;
    out += fmt::format(
        "The models learned from {} configurations what each level of a parameter does to {}. "
        "\"gain\" compares the level with the "
        "average over all levels of the same parameter that were not refused, while everything "
        "else stays as it is "
        "(docs/explanation/optimizer.md). With a probability of 95 % all intervals of the table "
        "are right at once.\n\n"
        "| parameter | level | gain | interval |\n|---|---|---:|---|\n",
        effects.floor().measured, markdown_text(view.setup.problem->objective.leading().metric));
    std::set<std::string> known;
    for (const MainEffect& effect : effects.main())
        if (effect.known()) known.insert(effect.parameter);
    std::string unknown;
    for (const MainEffect& effect : effects.main()) {
        if (!effect.refused.empty()) continue;
        if (known.contains(effect.parameter)) {
            const bool is_default =
                effect.level == view.setup.problem->space.at(effect.parameter).default_value;
            out += fmt::format("| {} | {}{} | {}{} |\n", markdown_text(effect.parameter),
                               markdown_text(text_of(effect.level)), is_default ? " (default)" : "",
                               range(effect.gain, view.standings.scale()),
                               effect.known()         ? ""
                               : effect.measured == 0 ? " (not measured at this level)"
                                                      : " (not proven: includes 0)");
        } else if (!unknown.ends_with(markdown_text(effect.parameter)))
            unknown += (unknown.empty() ? "" : ", ") + markdown_text(effect.parameter);
    }
    out += '\n';
    for (const Parameter& parameter : view.setup.problem->space.parameters())
        if (const std::size_t more = effects.left_out(parameter);
            more > 0 && known.contains(parameter.name))
            out += fmt::format("Not in the table: {} of {}.\n\n", counted_text(more, "more level"),
                               markdown_text(parameter.name));
    out += refused;
    if (!unknown.empty())
        out += fmt::format(
            "No effect is proven, as the interval of every measured level includes 0: {}.\n\n",
            unknown);
    bool any = false;
    for (const PairEffect& pair : effects.pairs()) {
        if (!pair.gain.known()) continue;
        if (!any)
            out +=
                "Some parameters do more or less together than the sum of what each does alone. "
                "How much of all differences in the "
                "space comes from that, and where it is largest:\n\n";
        any = true;
        out += fmt::format(
            "- {} and {}: {:.0f} % of the differences; largest at {} and {}: {} (95 % interval {} "
            "to {})\n",
            markdown_text(pair.parameters[0]), markdown_text(pair.parameters[1]), pair.share * 100,
            markdown_text(text_of(pair.levels[0])), markdown_text(text_of(pair.levels[1])),
            gain_text(pair.gain.value, view.standings.scale()),
            gain_text(pair.gain.low, view.standings.scale()),
            gain_text(pair.gain.high, view.standings.scale()));
    }
    return out + (any ? "\n"
                      : "No pair of parameters is known to do more or less together than each does "
                        "alone.\n\n");
}

nlohmann::ordered_json effects_json(const Effects& effects, const SearchSpace& space,
                                    const FigureScale& scale) {
    const auto gain_of = [&](const CredibleInterval& gain) {
        return nlohmann::ordered_json{{"value", scale.stated(gain.value)},
                                      {"low", scale.stated(gain.low)},
                                      {"high", scale.stated(gain.high)}};
    };
    nlohmann::ordered_json result{{"configurations", effects.floor().measured},
                                  {"needed", effects.floor().needed()},
                                  {"learned", effects.learned()},
                                  {"main", nlohmann::ordered_json::array()},
                                  {"left_out", nlohmann::ordered_json::object()},
                                  {"interactions", nlohmann::ordered_json::array()}};
    for (const Parameter& parameter : space.parameters())
        if (const std::size_t more = effects.left_out(parameter);
            more > 0 && parameter.level_count() > 1 && !effects.main().empty())
            result["left_out"][parameter.name] = more;
    for (const MainEffect& effect : effects.main())
        result["main"].push_back(
            {{"parameter", effect.parameter},
             {"level", to_json(effect.level)},
             {"gain", effect.refused.empty() ? gain_of(effect.gain) : nlohmann::ordered_json()},
             {"measured", effect.measured},
             {"refused", effect.refused.empty() ? nlohmann::ordered_json()
                                                : nlohmann::ordered_json(effect.refused)}});
    for (const PairEffect& pair : effects.pairs())
        result["interactions"].push_back(
            {{"parameters", pair.parameters},
             {"share", pair.share},
             {"levels",
              nlohmann::ordered_json::array({to_json(pair.levels[0]), to_json(pair.levels[1])})},
             {"gain", gain_of(pair.gain)},
             {"together", pair.together}});
    return result;
}

}  // namespace

std::string not_said(const EffectsFloor& floor) {
    return fmt::format("Not known yet: {} measured, {} needed to tell the effects of {} apart.",
                       counted_text(floor.measured, "configuration"), floor.needed(),
                       counted_text(floor.varied, "parameter"));
}

EffectsReport effects_report(const ReportView& view) {
    const Effects effects = effects_of(view);
    return {effects_section(effects, view),
            effects_json(effects, view.setup.problem->space, view.standings.scale())};
}

}  // namespace servetune
