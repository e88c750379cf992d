// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report_view.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace servetune {

/// The page; `effects` and `report_json` as the other reports have them. `live_version`: of a page
/// that a server renews; empty: a file.
std::string html_of(const ReportView& view, std::string_view stop_reason, const nlohmann::ordered_json& effects,
                    const std::string& report_json, std::string_view live_version = "");

}  // namespace servetune
