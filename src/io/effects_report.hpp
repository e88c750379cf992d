// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report_view.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace servetune {

/// The section "What the parameters do" of the report; empty where the space has nothing to vary.
std::string effects_section(const ReportView& view);

/// The same as docs/json-output.md has it under `effects`.
nlohmann::ordered_json effects_json(const ReportView& view);

}  // namespace servetune
