// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "account.hpp"

#include <nlohmann/json.hpp>

namespace servetune {

// Objects of docs/reference/json-output.md.

/// A value, or null.
template <class Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}
/// Of a text: null where it is empty.
nlohmann::ordered_json text_or_null(std::string_view text);
/// A gain as it is stated. An interval that is not known is null.
nlohmann::ordered_json gain_json(const Gain& gain);
/// What takes fitting the models: `effects` and `explanation`, of the report and of `explain`.
nlohmann::ordered_json json_of(const Explained& explained, const ReportView& view);
/// The report; `explained`: null: not asked for.
std::string json_of(const ReportView& view, std::string_view stop_reason,
                    const Explained* explained);

}  // namespace servetune
