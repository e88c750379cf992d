// SPDX-License-Identifier: Apache-2.0
#include "chart.hpp"

#include "html_text.hpp"
#include "servetune/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace servetune {
namespace {

constexpr double left_room = 88;
constexpr double right_room = 14;
constexpr double top_room = 34;  // with the title of the axis above it, which no narrow screen has room for beside it
constexpr double bottom_room = 44;
/// A range below this share of its values is none: it is the rounding of one figure.
constexpr double hardly_any = 1e-9;

std::string svg_head(std::string_view title, std::string_view description, double width, double height) {
    return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}. {}\">\n", width, height, html_text(title),
                       html_text(description));
}

std::string svg_text(double x, double y, std::string_view anchor, std::string_view text, std::string_view kind = "tick") {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y, anchor, kind, html_text(text));
}

/// From its middle: a kind is told by its shape too, not by colour alone.
std::string_view mark_shape(std::string_view kind) {
    if (kind == "recommended") return "m-7 0l7 -7 7 7 -7 7z";
    if (kind == "usual") return "m-4.5 -4.5h9v9h-9z";
    if (kind == "refused") return "m-5 4l5 -9 5 9z";
    return "m-4 0a4 4 0 1 0 8 0 4 4 0 1 0 -8 0z";
}

std::string label_cut(std::string_view text, std::size_t most) {
    if (text.size() <= most) return std::string(text);
    std::size_t end = most - 1;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    return std::string(text.substr(0, end)) + "…";
}

}  // namespace

ChartAxis axis_for(std::string label, const std::vector<double>& values, bool from_zero) {
    ChartAxis axis{std::move(label)};
    std::vector<double> finite;
    std::copy_if(values.begin(), values.end(), std::back_inserter(finite), [](double value) { return std::isfinite(value); });
    if (finite.empty()) return axis;
    const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
    axis.low = from_zero ? std::min(0.0, *low) : *low;
    axis.high = *high;
    double room = 0.05 * (axis.high - axis.low);
    if (!(room > 0.05 * hardly_any * std::max(std::abs(axis.low), std::abs(axis.high))))
        room = axis.high == 0 ? 1 : 0.05 * std::abs(axis.high);
    axis.high += room;
    if (!from_zero) axis.low -= room;
    return axis;
}

std::vector<double> round_ticks(double low, double high, std::size_t about, double least_step) {
    const double range = high - low;
    if (!(range > hardly_any * std::max(std::abs(low), std::abs(high))) || !std::isfinite(range)) return {low, high};
    const double raw = range / static_cast<double>(std::max<std::size_t>(about, 2));
    const double power = std::pow(10, std::floor(std::log10(raw)));
    const double step = std::max(least_step, power * (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10));
    std::vector<double> result;
    const double first = std::ceil(low / step);
    const std::size_t most = 4 * std::max<std::size_t>(about, 2);  // more than there can be
    for (std::size_t i = 0; i < most; ++i)
        if (const double tick = (first + static_cast<double>(i)) * step; tick <= high + step * 1e-9) result.push_back(tick);
    if (result.size() < 2) return {low, high};
    return result;
}

std::string tick_text(double value, double step) {
    const double scale = std::abs(value) >= 1e6 ? 1e6 : 1;
    if (!(std::abs(step) > 0)) step = std::max(std::abs(value), 1.0) / 100;
    const double decimals = std::clamp(-std::floor(std::log10(std::abs(step) / scale) + 1e-9), 0.0, 9.0);
    return fmt::format("{:.{}f}{}", value == 0 ? 0 : value / scale, static_cast<int>(decimals), scale > 1 ? " M" : "");
}

Chart::Chart(std::string title, std::string description, ChartAxis x, ChartAxis y, double width, double height)
    : title_(std::move(title)), description_(std::move(description)), x_(std::move(x)), y_(std::move(y)), width_(width), height_(height) {}

double Chart::across(double x) const { return left_room + (width_ - left_room - right_room) * (x - x_.low) / (x_.high - x_.low); }

double Chart::up(double y) const {
    return height_ - bottom_room - (height_ - top_room - bottom_room) * (std::clamp(y, y_.low, y_.high) - y_.low) / (y_.high - y_.low);
}

void Chart::point(Point at, std::string_view kind, std::string_view label, bool cross) {
    const double x = across(at.x);
    const double y = up(at.y);
    if (cross)
        body_ += fmt::format("<path class=\"mark {}\" d=\"M{:.1f} {:.1f}l8 8m-8 0l8 -8\"><title>{}</title></path>\n", html_text(kind),
                             x - 4, y - 4, html_text(label));
    else
        body_ += fmt::format("<path class=\"mark {}\" d=\"M{:.1f} {:.1f}{}\"><title>{}</title></path>\n", html_text(kind), x, y,
                             mark_shape(kind), html_text(label));
}

void Chart::line(const std::vector<Point>& points, std::string_view kind, bool stepped) {
    if (points.empty()) return;
    std::string path;
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (i == 0) path += fmt::format("M{:.1f} {:.1f}", across(points[i].x), up(points[i].y));
        else if (stepped) path += fmt::format("H{:.1f}V{:.1f}", across(points[i].x), up(points[i].y));
        else path += fmt::format("L{:.1f} {:.1f}", across(points[i].x), up(points[i].y));
    }
    body_ += fmt::format("<path class=\"line {}\" d=\"{}\"/>\n", html_text(kind), path);
}

void Chart::interval(double x, double low, double high, std::string_view kind) {
    body_ += fmt::format("<path class=\"line {}\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", html_text(kind), across(x), up(low), up(high));
}

void Chart::bar(double from_x, double to_x, double y, std::string_view kind, std::string_view label) {
    const double top = up(y);
    body_ += fmt::format("<rect class=\"bar {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{}</title></rect>\n",
                         html_text(kind), across(from_x), top, std::max(0.5, across(to_x) - across(from_x)),
                         std::max(0.0, up(y_.low) - top), html_text(label));
}

std::string Chart::svg() const {
    std::string out = svg_head(title_, description_, width_, height_);
    const double ground = height_ - bottom_room;
    const auto y_ticks = y_.silent ? std::vector<double>{} : round_ticks(y_.low, y_.high, 5, y_.whole ? 1 : 0);
    for (const double tick : y_ticks) {
        out += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", left_room, up(tick), width_ - right_room);
        out += svg_text(left_room - 6, up(tick) + 4, "end", tick_text(tick, y_ticks[1] - y_ticks[0]));
    }
    const auto x_ticks = x_.silent ? std::vector<double>{} : round_ticks(x_.low, x_.high, 7, x_.whole ? 1 : 0);
    for (const double tick : x_ticks) {
        out += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>\n", across(tick), ground, ground + 5);
        out += svg_text(across(tick), ground + 18, "middle", tick_text(tick, x_ticks[1] - x_ticks[0]));
    }
    for (std::size_t i = 0; i < x_.names.size(); ++i) out += svg_text(across(static_cast<double>(i)), ground + 18, "middle", x_.names[i]);
    out += fmt::format("<path class=\"axis\" d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\"/>\n", left_room, top_room, ground, width_ - right_room);
    out += svg_text((left_room + width_ - right_room) / 2, height_ - 4, "middle", x_.label, "label");
    out += svg_text(8, 18, "start", y_.label, "label");
    return out + body_ + "</svg>\n";
}

std::string interval_chart(std::string_view title, std::string_view description, const std::vector<IntervalRow>& rows) {
    constexpr double width = 300;
    std::vector<double> ends{0};
    constexpr double most = 3;  // an interval that knows nothing would flatten all others
    for (const IntervalRow& row : rows)
        for (const double end : {row.low, row.value, row.high}) ends.push_back(std::clamp(end, -1.0, most));
    const ChartAxis axis = axis_for("", ends);
    const auto across = [&](double share) { return width * (std::clamp(share, axis.low, axis.high) - axis.low) / (axis.high - axis.low); };
    const auto ticks = round_ticks(axis.low * 100, axis.high * 100, 4);
    std::string grid;
    for (const double tick : ticks) grid += fmt::format("<path class=\"grid\" d=\"M{:.1f} 0V24\"/>", across(tick / 100));
    grid += fmt::format("<path class=\"axis\" d=\"M{:.1f} 0V24\"/>", across(0));
    std::string out =
        fmt::format("<table class=\"intervals\"><caption>{}. {}</caption><tbody>\n", html_text(title), html_text(description));
    for (const IntervalRow& row : rows)
        out += fmt::format(
            "<tr class=\"{}\"><th scope=\"row\">{}</th><td><svg viewBox=\"0 0 300 24\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
            "{}<path class=\"line\" d=\"M{:.1f} 12H{:.1f}\"/><path class=\"dot\" d=\"M{:.1f} 12h.01\"/></svg></td>"
            "<td>{} [{}, {}]</td></tr>\n",
            html_text(row.kind), html_text(row.label), grid, across(row.low), across(row.high), across(row.value), percent(row.value),
            percent(row.low), percent(row.high));
    out += "<tr class=\"scale\" aria-hidden=\"true\"><th></th><td>";
    for (const double tick : ticks)
        out +=
            fmt::format("<span style=\"left:{:.1f}%\">{} %</span>", across(tick / 100) / width * 100, tick_text(tick, ticks[1] - ticks[0]));
    return out + "</td><td></td></tr>\n</tbody></table>\n";
}

std::string parallel_chart(std::string_view title, std::string_view description, const std::vector<ParallelAxis>& axes,
                           const std::vector<ParallelLine>& lines) {
    constexpr double width = 720;
    constexpr double sides = 40;
    constexpr double first = 40;
    constexpr double step = 84;  // an axis with its title above it and its values below it, also in the letters of a narrow screen
    constexpr double letter = 11;
    const double height = first + step * static_cast<double>(axes.size()) - 30;
    const auto down = [&](std::size_t i) { return first + step * static_cast<double>(i); };
    const auto across = [&](double place) { return sides + (width - 2 * sides) * place; };
    std::string out = svg_head(title, description, width, height);
    for (const ParallelLine& line : lines) {
        std::string path;
        for (std::size_t i = 0; i < line.places.size(); ++i)
            path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", across(line.places[i]), down(i));
        out += fmt::format("<path class=\"line thread {}\" style=\"opacity:{:.2f}\" d=\"{}\"><title>{}</title></path>\n",
                           html_text(line.kind), line.strength, path, html_text(line.label));
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
        out += fmt::format("<path class=\"axis\" d=\"M{0:.1f} {1:.1f}H{2:.1f}\"/>\n", sides, down(i), width - sides);
        out += svg_text(8, down(i) - 14, "start", label_cut(axes[i].label, 60), "label halo");
        double free = 0;      // where the next label may begin
        double last = width;  // where the one at the end begins
        const auto extent = [&](const std::string& text) { return letter * static_cast<double>(std::min<std::size_t>(text.size(), 16)); };
        if (!axes[i].ticks.empty()) last -= extent(axes[i].ticks.back().second) / 2 + sides;
        for (std::size_t k = 0; k < axes[i].ticks.size(); ++k) {
            const auto& [place, text] = axes[i].ticks[k];
            const double half = extent(text) / 2;
            const double x = std::clamp(across(place), half, std::max(half, width - half));
            const bool ends = k == 0 || k + 1 == axes[i].ticks.size();
            if (!ends && (x - half < free || x + half > last)) continue;
            out += fmt::format("<path class=\"axis\" d=\"M{:.1f} {:.1f}v5\"/>\n", across(place), down(i));
            out += svg_text(x, down(i) + 24, "middle", label_cut(text, 16), "tick halo");
            free = x + half + letter;
        }
    }
    return out + "</svg>\n";
}

}  // namespace servetune
