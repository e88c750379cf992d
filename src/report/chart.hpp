// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/template.hpp"

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

// The files of `src/report/page/` (cmake/embed.cmake).

extern const EmbeddedFile page_html;  ///< the page's frame, with places such as `{{title}}`
extern const EmbeddedFile
    page_css;  ///< light and dark as the reader's system has it, paper, narrow screens
extern const EmbeddedFile chart_js;   ///< pointing, picking and keys in any chart
extern const EmbeddedFile plane_js;   ///< charts of two axes, with zoom
extern const EmbeddedFile charts_js;  ///< the charts of the page
extern const EmbeddedFile page_js;    ///< tables, choices, downloads
extern const EmbeddedFile live_js;    ///< asks a server what happens, on a page that it renews

// Every chart of the report is written here, once, as SVG that needs no script. The page's script
// (page/charts.js) moves what stands here when a person zooms or chooses other axes: `data-`
// attributes hold the figures, classes the meaning. Colours come from page/page.css. All text is
// escaped here.

/// One axis of a chart.
struct ChartAxis {
    std::string label;
    double low = 0;
    double high = 1;
    bool whole = false;                ///< ticks are whole numbers
    bool silent = false;               ///< no ticks: there is nothing to read off
    std::vector<std::string> names{};  ///< of 0, 1, 2 ...: in place of numbers
};

/// The axis that holds these values with some room; `from_zero`: it begins there.
ChartAxis axis_for(std::string label, const std::vector<double>& values, bool from_zero = false);

/// Values at even, round distances: 1, 2 or 5 times a power of ten, `least_step` at least. At least
/// two.
std::vector<double> round_ticks(double low, double high, std::size_t about = 6,
                                double least_step = 0);
/// A tick's number with as many digits as the distance of the ticks asks for.
std::string tick_text(double value, double step);

/// A plane with two axes: marks and lines.
class Chart {
public:
    static constexpr double nowhere = std::numeric_limits<double>::quiet_NaN();

    struct Point {
        double x = 0;
        double y = 0;
    };
    /// A mark `nowhere` is written but not seen: the page's script may give it a place.
    struct Mark {
        Point at;
        std::string
            kind;  ///< class and shape: `passing`, `refused`, `failed`, `usual`, `recommended`
        std::string label;                ///< lines of text, shown when it is pointed at
        std::optional<std::size_t> of{};  ///< place of the configuration in `HtmlView::rows`
    };

    /// `title` and `description` are what a screen reader says.
    Chart(std::string title, std::string description, ChartAxis x, ChartAxis y,
          double height = 300);

    void mark(const Mark& mark);
    /// A line from point to point; `stepped`: flat until the next one.
    void line(const std::vector<Point>& points, std::string_view kind, bool stepped = false);

    [[nodiscard]] std::string svg() const;

private:
    [[nodiscard]] double across(double x) const;
    [[nodiscard]] double up(double y) const;
    [[nodiscard]] std::string ticks() const;

    std::string title_, description_;
    ChartAxis x_, y_;
    double height_;
    std::string lines_{}, marks_{}, top_{};
};

/// A row of a chart of intervals.
struct IntervalRow {
    std::string label;
    double low = 0;  ///< not finite, as `high`: there is no interval, and only the value is drawn
    double value = 0;
    double high = 0;
    std::string kind{};  ///< a class
};
/// Gains as shares, each with its interval, below each other around a line at zero: a table with
/// drawings in it, which is as wide as there is room.
std::string interval_chart(std::string_view title, const std::vector<IntervalRow>& rows);

}  // namespace servetune
