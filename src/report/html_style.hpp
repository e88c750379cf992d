// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace servetune {

/// The style sheet of the page: light and dark as the reader's system has it, paper, narrow
/// screens.
extern const std::string_view html_style;
/// The program of the page: sorting, choosing axes, highlighting, downloads. Without it everything
/// is seen all the same.
extern const std::string_view html_script;
/// Behind that, of a page that a server renews: it follows the server's events.
extern const std::string_view html_live_script;

}  // namespace servetune
