// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace servetune {

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
std::vector<double> round_ticks(double low, double high, std::size_t about = 6, double least_step = 0);
/// A tick's number with as many digits as the distance of the ticks asks for.
std::string tick_text(double value, double step);

/// A drawing in SVG that needs no program to be seen: axes with round ticks, points, lines. Colours
/// come from classes of the page (`html_style.cpp`), so that it is seen in light, in dark and on
/// paper. All labels are escaped here.
class Chart {
public:
    struct Point {
        double x = 0;
        double y = 0;
    };
    /// `title` and `description` are what a screen reader says.
    Chart(std::string title, std::string description, ChartAxis x, ChartAxis y, double width = 720, double height = 300);

    /// `kind`: a class, such as `passing`, `failed`; `label`: shown when it is pointed at. A
    /// `cross` is seen without colours too.
    void point(Point at, std::string_view kind, std::string_view label, bool cross = false);
    /// A line from point to point; `stepped`: flat until the next one.
    void line(const std::vector<Point>& points, std::string_view kind, bool stepped = false);
    /// From low to high at x.
    void interval(double x, double low, double high, std::string_view kind);
    /// From the ground to y.
    void bar(double from_x, double to_x, double y, std::string_view kind, std::string_view label);

    [[nodiscard]] std::string svg() const;

private:
    [[nodiscard]] double across(double x) const;
    [[nodiscard]] double up(double y) const;

    std::string title_, description_;
    ChartAxis x_, y_;
    double width_, height_;
    std::string body_{};
};

/// A row of a chart of intervals.
struct IntervalRow {
    std::string label;
    double low = 0;
    double value = 0;
    double high = 0;
    std::string kind{};  ///< a class
};
/// Gains as shares, each with its interval, below each other around a line at zero: a table with
/// drawings in it, which is as wide as there is room.
std::string interval_chart(std::string_view title, std::string_view description, const std::vector<IntervalRow>& rows);

/// A line across all axes.
struct ParallelLine {
    std::vector<double> places;  ///< on each axis, 0 to 1
    std::string label;
    std::string kind;  ///< a class
    double strength = 1;
};
struct ParallelAxis {
    std::string label;
    std::vector<std::pair<double, std::string>> ticks;  ///< place -> text
};
/// Parallel coordinates (Inselberg 1985), the axes below each other.
std::string parallel_chart(std::string_view title, std::string_view description, const std::vector<ParallelAxis>& axes,
                           const std::vector<ParallelLine>& lines);

}  // namespace servetune
