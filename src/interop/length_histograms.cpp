// SPDX-License-Identifier: Apache-2.0
#include "length_histograms.hpp"

#include "log_stream.hpp"

#include "base/nesting.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

namespace servetune {
namespace {

using RangeAnswer = nlohmann::json;

constexpr std::size_t most_range_bytes = std::size_t{256} << 20U;
constexpr std::size_t beginning_bytes = 4096;
constexpr double most_drawn_tokens =
    1U << 24U;  ///< of a prompt or an answer; the longest contexts have 10 million
constexpr double most_counted = 1e15;  ///< requests

/// All lines of a file as one text, as far as it is wanted.
std::string text_of_file(const std::filesystem::path& file, std::size_t most, bool all) {
    LogStream stream(file);
    std::string text, line;
    while (text.size() < most && stream.next(line)) (text += line) += '\n';
    if (all && (text.size() >= most || stream.too_long() > 0))
        throw ParseError(file.string() + ": an answer of a Prometheus server of at most " +
                         std::to_string(most >> 20U) + " MiB wanted, lines of at most " +
                         std::to_string(LogStream::most_record_bytes >> 20U) +
                         "; ask with a longer step");
    return text;
}

std::optional<double> bound_of(const std::string& text) {
    if (text == "+Inf" || text == "Inf") return std::numeric_limits<double>::infinity();
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
    return number;
}

bool says_one_of(const std::string& name, std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

}  // namespace

bool LengthHistograms::is_one(const std::filesystem::path& file) {
    const std::string text = text_of_file(file, beginning_bytes, false);
    const std::string_view beginning = std::string_view(text).substr(0, beginning_bytes);
    return beginning.starts_with('{') && beginning.find("\"resultType\"") != std::string_view::npos;
}

void LengthHistograms::add(const std::filesystem::path& file) {
    const auto wanted = [&](const std::string& what) {
        return ParseError(file.string() + ": " + what);
    };
    const auto answer = shallow_json<RangeAnswer>(text_of_file(file, most_range_bytes, true));
    const RangeAnswer series =
        answer.is_object() && answer.contains("data") && answer["data"].is_object()
            ? answer["data"].value("result", RangeAnswer())
            : RangeAnswer();
    if (!series.is_array())
        throw wanted(
            "the answer of a Prometheus server to /api/v1/query_range wanted, with a `result` of "
            "kind matrix");
    std::size_t used = 0;
    for (const RangeAnswer& one : series) {
        if (!one.is_object() || !one.contains("metric") || !one["metric"].is_object() ||
            !one.contains("values") || !one["values"].is_array())
            continue;
        const auto label = [&](const char* name) {
            const auto found = one["metric"].find(name);
            return found != one["metric"].end() && found->is_string() ? found->get<std::string>()
                                                                      : std::string();
        };
        const std::string name = label("__name__");
        const auto bound = bound_of(label("le"));
        if (!bound || !name.ends_with("_bucket") ||
            says_one_of(name, {"uncached", "cached_", "max_", "params"}))
            continue;
        const bool input = says_one_of(name, {"prompt_tokens", "input_tokens"});
        if (!input &&
            !says_one_of(name, {"generation_tokens", "completion_tokens", "output_tokens"}))
            continue;
        auto& counts = (input ? inputs_ : outputs_)[*bound];
        std::optional<std::pair<double, double>> before;  // time, count
        for (const RangeAnswer& value : one["values"]) {
            if (!value.is_array() || value.size() != 2 || !value[0].is_number() ||
                !value[1].is_string())
                continue;
            const double time = value[0].get<double>();
            const auto count = bound_of(value[1].get<std::string>());
            if (!count || !(*count >= 0 && *count < most_counted)) continue;
            if (before && time > before->first) {
                counts[time] += *count >= before->second ? *count - before->second : *count;
                steps_[time] = time - before->first;
                ++used;
            }
            before = {time, *count};
        }
    }
    if (used == 0)
        throw wanted(
            "buckets of the lengths of prompts or answers at two times or more wanted: ask "
            "/api/v1/query_range for the counters "
            "themselves, "
            "{__name__=~\".*(prompt|generation)_tokens.*_bucket\"}, for rate() drops their names");
}

void LengthHistograms::restrict_to(double from, double to) {
    const bool any = std::any_of(steps_.begin(), steps_.end(), [&](const auto& step) {
        return step.first > from && step.first <= to;
    });
    if (any) std::tie(from_, to_) = std::pair(from, to);
}

std::int64_t LengthHistograms::draw(const Histogram& histogram, Rng& rng) const {
    const auto within = [&](const std::map<double, double>& counts) {
        double sum = 0;
        for (const auto& [time, count] : counts)
            if (time > from_ && time <= to_) sum += count;
        return sum;
    };
    const double all = within(histogram.rbegin()->second);
    const double wanted = rng.uniform() * all;
    double lower = 0;
    double below = 0;
    for (const auto& [upper, counts] : histogram) {
        const double up_to = std::max(below, within(counts));
        if (up_to > wanted || upper == histogram.rbegin()->first) {
            const double share = up_to > below ? (wanted - below) / (up_to - below) : 0;
            const double low = std::clamp(lower + 1, 1.0, most_drawn_tokens);
            const double high =
                std::isinf(upper)
                    ? low
                    : std::max(
                          low,
                          std::min(
                              upper,
                              most_drawn_tokens));  // how far above the last bound is not known
            return std::max<std::int64_t>(
                1, std::llround(low * std::pow(high / low, std::clamp(share, 0.0, 1.0))));
        }
        lower = upper;
        below = up_to;
    }
    return 1;
}

std::map<double, std::pair<double, double>> LengthHistograms::arrivals() const {
    std::map<double, std::pair<double, double>> result;
    const Histogram& counted = inputs_.empty() ? outputs_ : inputs_;
    for (const auto& [time, count] : counted.rbegin()->second)
        result[time] = {steps_.at(time), count};
    return result;
}

}  // namespace servetune
