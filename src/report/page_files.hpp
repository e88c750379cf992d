// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/template.hpp"

namespace servetune {

// The files of `src/report/page/` (cmake/embed.cmake).

extern const EmbeddedFile page_html;  ///< the page's frame, with places such as `{{title}}`
extern const EmbeddedFile
    page_css;  ///< light and dark as the reader's system has it, paper, narrow screens
extern const EmbeddedFile chart_js;     ///< pointing, picking and keys in any chart
extern const EmbeddedFile plane_js;     ///< charts of two axes, with zoom
extern const EmbeddedFile parallel_js;  ///< parallel coordinates, with brushes
extern const EmbeddedFile charts_js;    ///< the charts of the page
extern const EmbeddedFile page_js;      ///< tables, choices, downloads
extern const EmbeddedFile live_js;      ///< follows a server's events, on a page that it renews

}  // namespace servetune
