// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/study/recommendation_text.hpp"

namespace servetune {

std::string text_of(Doubt doubt) {
    switch (doubt) {
        case Doubt::none: break;
        case Doubt::default_unsound: return "the measurements of the default cannot be believed";
        case Doubt::default_disturbed: return "the measurements of the default were disturbed";
        case Doubt::winner_disturbed:
            return "the measurements of the best configuration were disturbed";
        case Doubt::most_unreliable: return "hardly any result can be relied on";
        case Doubt::not_confirmed:
            return "what looks best was not confirmed; go on with a larger budget";
        case Doubt::never_cold: return "what looks best was never measured from a cold start";
        case Doubt::unequal_work:
            return "what looks best answered requests of other lengths than the default";
    }
    return "";
}

std::string text_of(const Recommendation& result) {
    switch (result.conclusion) {
        case Conclusion::nothing_passes: return "nothing passes";
        case Conclusion::keep_default:
            return "keep the default: nothing measured is worth a change";
        case Conclusion::inconclusive:
            return "inconclusive, keep the default: " + text_of(result.doubt);
        case Conclusion::recommended: break;
    }
    const std::string what = difference_text(result.recommended, result.default_configuration);
    if (!result.default_passes) return what + ": the best that passes; the default does not";
    const Gain& gain = result.gain;
    const auto stated = [&](double value) {
        const double number = gain.scale.stated(value);
        const std::string text =
            gain.scale.ratios() ? percent_text(number, 2) : short_number_text(number);
        return (number < 0 ? "" : "+") + text;
    };
    return what + ": " + stated(gain.value) + " over the default" +
           (gain.has_interval() ? " (95 %: " + stated(gain.low) + " to " + stated(gain.high) + ")"
                                : "");
}

}  // namespace servetune
