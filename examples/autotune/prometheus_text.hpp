// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace autotune {

/// Metrics of ours as Prometheus reads them: every name begins with `servetune_`, every sample has
/// the label `study`.
class PrometheusText {
public:
    explicit PrometheusText(const std::string& study);

    void family(const char* name, const char* type, const char* help);
    /// `labels`: further ones, as they are written; empty: none.
    void sample(const char* name, const std::string& labels, double value);
    [[nodiscard]] std::string text() && { return std::move(text_); }

    /// The value of a label: without secrets and control characters, escaped.
    static std::string label(const std::string& value);

private:
    std::string study_, text_;
};

}  // namespace autotune
