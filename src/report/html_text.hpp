// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/objective.hpp"

#include <string>
#include <string_view>

namespace servetune {

/// Any text as text of an HTML page, in an element or in an attribute: nothing in it is markup, and
/// what a terminal or a reader could act on stands as `\u001b` (detail/base/printable.hpp).
std::string html_text(std::string_view text);

/// JSON as the content of a script element: no `<` in it can end the element.
std::string html_json(std::string_view json);

/// `TTFT p95 (ms)`: what people call a metric, with the unit that `plain_figure_text` shows it in.
/// A workload behind `@` stays.
std::string metric_title(std::string_view metric);

/// Whether less of a metric is better: as the objective says of its goals and limits, else as far
/// as its name tells.
bool less_is_better(const Objective& objective, std::string_view metric);

}  // namespace servetune
