// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "account.hpp"
#include "report_view.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// The page; `effects`, `account` and `report_json` as the other reports have them; `account` is
/// empty where nobody asked for it. `live_version`: of a page that a server renews; empty: a file.
///
/// What is printed is one page of A4 for a colleague: verdict, command, and the sections of the
/// class `brief` (page/page.css).
std::string html_of(const ReportView& view, std::string_view stop_reason,
                    const nlohmann::ordered_json& effects, const std::vector<AccountPart>& account,
                    const std::string& report_json, std::string_view live_version = "");

}  // namespace servetune
