// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace servetune {

/// What draws the charts of the page in a browser. The build makes it from npm's packages
/// (cmake/charts.cmake).
struct ChartLibrary {
    std::string_view name;  ///< empty: there is none, and the page keeps its SVG
    std::string_view version;
    std::string_view why_none;  ///< such as `npm or node was not found`; empty where there is one
    std::string_view script;    ///< the library and our charts, as the content of a script element
    std::string_view licences;  ///< the texts of the licences
};
extern const ChartLibrary chart_library;

}  // namespace servetune
