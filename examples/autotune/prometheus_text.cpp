// SPDX-License-Identifier: Apache-2.0
#include "prometheus_text.hpp"

#include "output.hpp"

#include "servetune/detail/base/printable.hpp"

#include <fmt/format.h>

#include <cmath>

namespace autotune {

using namespace servetune;

namespace {

std::string plain_number(double value) {
    return std::isfinite(value) ? fmt::format("{:.10g}", value) : value > 0 ? "+Inf" : "NaN";
}

}  // namespace

PrometheusText::PrometheusText(const std::string& study)
    : study_("study=\"" + label(study) + "\"") {}

void PrometheusText::family(const char* name, const char* type, const char* help) {
    text_ += fmt::format("# HELP servetune_{0} {1}\n# TYPE servetune_{0} {2}\n", name, help, type);
}

void PrometheusText::sample(const char* name, const std::string& labels, double value) {
    text_ += fmt::format("servetune_{}{{{}{}}} {}\n", name, study_,
                         labels.empty() ? "" : "," + labels, plain_number(value));
}

std::string PrometheusText::label(const std::string& value) {
    std::string result;
    for (const char c : printable_line(secrets()(value))) {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result;
}

}  // namespace autotune
