// SPDX-License-Identifier: Apache-2.0
#include "chart.hpp"

#include "document.hpp"
#include "servetune/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace servetune {
namespace {

constexpr double width = 720;
constexpr double left_room = 72;
constexpr double right_room = 18;
constexpr double top_room =
    34;  // with the title of the axis above it, which no narrow screen has room for beside it
constexpr double bottom_room = 44;
/// A range below this share of its values is none: it is the rounding of one figure.
constexpr double hardly_any = 1e-9;

std::string svg_head(std::string_view kind, std::string_view title, std::string_view description,
                     double height, const std::string& attributes) {
    return fmt::format(
        "<svg class=\"{}\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}. {}\"{}>\n",
        kind, width, height, html_text(title), html_text(description), attributes);
}

std::string svg_text(double x, double y, std::string_view anchor, std::string_view text,
                     std::string_view kind = "tick", const std::string& attributes = "") {
    return fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\"{}>{}</text>\n", x, y,
        anchor, kind, attributes, html_text(text));
}

/// Around its place: a kind is told by its shape too, not by colour alone.
std::string_view mark_shape(std::string_view kind) {
    if (kind == "recommended") return "M-7 0l7-7 7 7-7 7z";
    if (kind == "usual") return "M-4.5-4.5h9v9h-9z";
    if (kind == "refused") return "M-5 4l5-9 5 9z";
    if (kind == "failed") return "M-4-4l8 8m-8 0l8-8";
    return "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z";
}

/// What the page's script reads of a mark, and its label.
std::string mark_data(const Chart::Mark& mark, std::string_view element) {
    std::string out;
    if (std::isfinite(mark.at.x)) out += fmt::format(" data-x=\"{:.9g}\"", mark.at.x);
    if (std::isfinite(mark.at.y)) out += fmt::format(" data-y=\"{:.9g}\"", mark.at.y);
    if (mark.of) out += fmt::format(" data-of=\"{}\"", *mark.of);
    return out + fmt::format("><title>{}</title></{}>\n", html_text(mark.label), element);
}

}  // namespace

ChartAxis axis_for(std::string label, const std::vector<double>& values, bool from_zero) {
    ChartAxis axis{std::move(label)};
    std::vector<double> finite;
    std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
                 [](double value) { return std::isfinite(value); });
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
    if (!(range > hardly_any * std::max(std::abs(low), std::abs(high))) || !std::isfinite(range))
        return {low, high};
    const double raw = range / double(std::max<std::size_t>(about, 2));
    const double power = std::pow(10, std::floor(std::log10(raw)));
    const double step = std::max(least_step, power * (raw / power < 1.5   ? 1
                                                      : raw / power < 3.5 ? 2
                                                      : raw / power < 7.5 ? 5
                                                                          : 10));
    std::vector<double> result;
    const double first = std::ceil(low / step);
    const std::size_t most = 4 * std::max<std::size_t>(about, 2);  // more than there can be
    for (std::size_t i = 0; i < most; ++i)
        if (const double tick = (first + double(i)) * step; tick <= high + step * 1e-9)
            result.push_back(tick);
    if (result.size() < 2) return {low, high};
    return result;
}

std::string tick_text(double value, double step) {
    const double scale = std::abs(value) >= 1e6 ? 1e6 : 1;
    if (!(std::abs(step) > 0)) step = std::max(std::abs(value), 1.0) / 100;
    const double decimals =
        std::clamp(-std::floor(std::log10(std::abs(step) / scale) + 1e-9), 0.0, 9.0);
    return fmt::format("{:.{}f}{}", value == 0 ? 0 : value / scale, static_cast<int>(decimals),
                       scale > 1 ? " M" : "");
}

Chart::Chart(std::string title, std::string description, ChartAxis x, ChartAxis y, double height)
    : title_(std::move(title)),
      description_(std::move(description)),
      x_(std::move(x)),
      y_(std::move(y)),
      height_(height) {}

double Chart::across(double x) const {
    return left_room + (width - left_room - right_room) * (x - x_.low) / (x_.high - x_.low);
}

double Chart::up(double y) const {
    return height_ - bottom_room -
           (height_ - top_room - bottom_room) * (std::clamp(y, y_.low, y_.high) - y_.low) /
               (y_.high - y_.low);
}

void Chart::mark(const Mark& mark) {
    const std::string place = std::isfinite(mark.at.x) && std::isfinite(mark.at.y)
                                  ? fmt::format("transform=\"translate({:.1f} {:.1f})\"",
                                                across(mark.at.x), up(mark.at.y))
                                  : "display=\"none\"";
    std::string& layer = mark.kind == "recommended" || mark.kind == "usual" ? top_ : marks_;
    layer += fmt::format("<path class=\"mark {}\" {} d=\"{}\"", html_text(mark.kind), place,
                         mark_shape(mark.kind)) +
             mark_data(mark, "path");
}

void Chart::line(const std::vector<Point>& points, std::string_view kind, bool stepped) {
    std::string path;
    std::string figures;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const double x = across(points[i].x);
        const double y = up(points[i].y);
        path += i == 0    ? fmt::format("M{:.1f} {:.1f}", x, y)
                : stepped ? fmt::format("H{:.1f}V{:.1f}", x, y)
                          : fmt::format("L{:.1f} {:.1f}", x, y);
        figures += fmt::format("{}{:.9g} {:.9g}", i == 0 ? "" : ",", points[i].x, points[i].y);
    }
    lines_ += fmt::format("<path class=\"line {}{}\" d=\"{}\" data-points=\"{}\"/>\n",
                          html_text(kind), stepped ? " stepped" : "", path, figures);
}

std::string Chart::ticks() const {
    const double ground = height_ - bottom_room;
    std::string out = "<g class=\"ticks\">";
    const auto y_ticks =
        y_.silent ? std::vector<double>{} : round_ticks(y_.low, y_.high, 5, y_.whole ? 1 : 0);
    for (const double tick : y_ticks) {
        out += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n", left_room,
                           up(tick), width - right_room);
        out +=
            svg_text(left_room - 6, up(tick) + 4, "end", tick_text(tick, y_ticks[1] - y_ticks[0]));
    }
    const auto x_ticks =
        x_.silent ? std::vector<double>{} : round_ticks(x_.low, x_.high, 7, x_.whole ? 1 : 0);
    for (const double tick : x_ticks) {
        out += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}v5\"/>\n", across(tick), ground);
        out +=
            svg_text(across(tick), ground + 18, "middle", tick_text(tick, x_ticks[1] - x_ticks[0]));
    }
    out += "</g>\n";
    for (std::size_t i = 0; i < x_.names.size(); ++i)
        out += svg_text(across(double(i)), ground + 18, "middle", x_.names[i], "tick",
                        fmt::format(" data-x=\"{}\"", i));
    return out;
}

std::string Chart::svg() const {
    const double ground = height_ - bottom_room;
    const auto kind = [](const ChartAxis& axis) {
        return axis.silent ? "none" : axis.whole ? "whole" : "any";
    };
    std::string out =
        svg_head("plane", title_, description_, height_,
                 fmt::format(" data-x=\"{:.9g} {:.9g} {}\" data-y=\"{:.9g} {:.9g} {}\"", x_.low,
                             x_.high, kind(x_), y_.low, y_.high, kind(y_)));
    out += ticks();
    out += fmt::format("<path class=\"axis\" d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\"/>\n", left_room,
                       top_room, ground, width - right_room);
    out +=
        svg_text((left_room + width - right_room) / 2, height_ - 4, "middle", x_.label, "label x");
    out += svg_text(8, 18, "start", y_.label, "label y");
    const std::string frame = fmt::format("{:.1f} {:.1f} {:.1f} {:.1f}", left_room, top_room,
                                          width - left_room - right_room, ground - top_room);
    out += fmt::format(
        "<svg class=\"lines\" aria-hidden=\"true\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\" viewBox=\"{}\">\n",
        left_room, top_room, width - left_room - right_room, ground - top_room, frame);
    return out + lines_ + "</svg>\n" + marks_ + top_ + "</svg>\n";
}

std::string interval_chart(std::string_view title, const std::vector<IntervalRow>& rows) {
    std::vector<double> ends{0};
    constexpr double most = 3;  // an interval that knows nothing would flatten all others
    for (const IntervalRow& row : rows)
        for (const double end : {row.low, row.value, row.high})
            if (std::isfinite(end)) ends.push_back(std::clamp(end, -1.0, most));
    const ChartAxis axis = axis_for("", ends);
    const auto across = [&](double share) {
        return 100 * (std::clamp(share, axis.low, axis.high) - axis.low) / (axis.high - axis.low);
    };
    const auto ticks = round_ticks(axis.low * 100, axis.high * 100, 4);
    std::string grid;
    for (const double tick : ticks)
        grid += fmt::format("<line class=\"grid\" x1=\"{0:.1f}%\" x2=\"{0:.1f}%\" y2=\"24\"/>",
                            across(tick / 100));
    grid +=
        fmt::format("<line class=\"axis\" x1=\"{0:.1f}%\" x2=\"{0:.1f}%\" y2=\"24\"/>", across(0));
    std::string out =
        fmt::format("<table class=\"intervals\"><caption>{}</caption><tbody>\n", html_text(title));
    for (const IntervalRow& row : rows) {
        const bool known = std::isfinite(row.low) && std::isfinite(row.high);
        const std::string line =
            known ? fmt::format(
                        "<line class=\"line\" x1=\"{:.1f}%\" x2=\"{:.1f}%\" y1=\"12\" y2=\"12\"/>",
                        across(row.low), across(row.high))
                  : "";
        out += fmt::format(
            "<tr class=\"{}\"><th scope=\"row\">{}</th><td><svg aria-hidden=\"true\">{}{}<circle "
            "class=\"dot\" cx=\"{:.1f}%\" cy=\"12\" "
            "r=\"5\"/></svg></td><td>{}{}</td></tr>\n",
            html_text(row.kind), html_text(row.label), grid, line, across(row.value),
            percent(row.value),
            known ? fmt::format(" [{}, {}]", percent(row.low), percent(row.high)) : "");
    }
    out += "<tr class=\"scale\" aria-hidden=\"true\"><th></th><td><svg>";
    for (const double tick : ticks)
        out += fmt::format("<text x=\"{:.1f}%\" y=\"14\" text-anchor=\"middle\">{} %</text>",
                           across(tick / 100), tick_text(tick, ticks[1] - ticks[0]));
    return out + "</svg></td><td></td></tr>\n</tbody></table>\n";
}

}  // namespace servetune
