// SPDX-License-Identifier: Apache-2.0
#pragma once

// A parameter's domain in words. Included by parameter.hpp.
#include "servetune/parameter.hpp"

namespace servetune {

inline std::string Parameter::domain_text() const {
    struct {
        static std::string scale(Scale scale) {
            return scale == Scale::linear ? "" : scale == Scale::log ? " (log)" : " (log2)";
        }
        std::string operator()(BoolDomain) const { return "true or false"; }
        std::string operator()(TextDomain) const { return "any text"; }
        std::string operator()(const IntegerDomain& range) const {
            return "integer " + std::to_string(range.low) + ".." + std::to_string(range.high) +
                   (range.step == 1 ? "" : " by " + std::to_string(range.step)) +
                   scale(range.scale);
        }
        std::string operator()(const RealDomain& range) const {
            return "real " + text_of(range.low) + ".." + text_of(range.high) + scale(range.scale);
        }
        std::string operator()(const ChoiceDomain& choice) const {
            std::string result = choice.values.size() == 1 ? "" : "one of ";
            for (std::size_t i = 0; i < choice.values.size(); ++i)
                result += (i == 0 ? "" : ", ") + text_of(choice.values[i]);
            return result;
        }
    } visitor;
    return std::visit(visitor, domain) + (offers_unset ? ", or " + std::string(unset_text) : "");
}

}  // namespace servetune
