// SPDX-License-Identifier: Apache-2.0
#include "base/nesting.hpp"
#include "base/text.hpp"
#include "kept_output.hpp"
#include "power_tool.hpp"
#include "run_command.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/host/machine_watch.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"
#include "start_program.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace servetune {
namespace {

constexpr std::string_view mean_power = "power_mean_watts";
constexpr std::string_view peak_power = "power_peak_watts";

/// Tokens a second -> joules per token.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> energies{{
    {"output_tokens_per_second", "joules_per_output_token"},
    {"total_tokens_per_second", "joules_per_total_token"},
}};

constexpr std::size_t fewest_samples = 5;
constexpr double least_covered = 0.8;
constexpr double reach =
    0.75;  ///< of a sample, in median distances: half of one and a half, for samples that come late

double median_distance(std::span<const PowerSample> samples) {
    std::vector<double> distances;
    for (std::size_t i = 1; i < samples.size(); ++i)
        distances.push_back(samples[i].at_seconds - samples[i - 1].at_seconds);
    const auto middle = distances.begin() + std::ptrdiff_t(distances.size() / 2);
    std::nth_element(distances.begin(), middle, distances.end());
    return *middle;
}

double error_of_mean(std::span<const PowerSample> samples) {
    const auto n = double(samples.size());
    double mean = 0;
    for (const PowerSample& one : samples) mean += one.watts / n;
    double squares = 0;
    double products = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        squares += (samples[i].watts - mean) * (samples[i].watts - mean);
        if (i > 0) products += (samples[i].watts - mean) * (samples[i - 1].watts - mean);
    }
    if (!(squares > 0)) return 0;
    const double r = std::clamp(products / squares, 0.0, 1.0);
    const double independent = std::max(n * (1 - r) / (1 + r), 1.0);
    return std::sqrt(squares / (n - 1) / independent);
}

}  // namespace

std::variant<PowerUse, std::string> power_between(std::span<const PowerSample> samples,
                                                  double begin_seconds, double end_seconds) {
    const auto first =
        find_if(samples, [&](const PowerSample& one) { return one.at_seconds >= begin_seconds; });
    const auto last = std::find_if(
        first, samples.end(), [&](const PowerSample& one) { return one.at_seconds > end_seconds; });
    const std::span<const PowerSample> inside(first, last);
    const double seconds = end_seconds - begin_seconds;
    const std::string told =
        std::to_string(inside.size()) + " samples of the power in " + fixed_text(seconds, 1) + " s";
    if (inside.size() < fewest_samples)
        return told + ", " + std::to_string(fewest_samples) + " wanted";
    const double most = reach * median_distance(inside);
    double covered = 0;
    double joules = 0;
    PowerUse result;
    for (std::size_t i = 0; i < inside.size(); ++i) {
        const double at = inside[i].at_seconds;
        const double before = i == 0 ? at - begin_seconds : (at - inside[i - 1].at_seconds) / 2;
        const double after =
            i + 1 == inside.size() ? end_seconds - at : (inside[i + 1].at_seconds - at) / 2;
        const double stands_for = std::min(before, most) + std::min(after, most);
        covered += stands_for;
        joules += stands_for * inside[i].watts;
        result.peak_watts = std::max(result.peak_watts, inside[i].watts);
    }
    if (covered < least_covered * seconds)
        return told + " cover " + percent_text(covered / seconds, 0) + " of it, " +
               percent_text(least_covered, 0) + " wanted";
    result.mean_watts = std::min(joules / covered, result.peak_watts);  // sums are rounded
    result.standard_error_watts = error_of_mean(inside);
    result.samples = inside.size();
    return result;
}

void add_power(Metrics& metrics, const PowerUse& power) {
    metrics[std::string(mean_power)] = {power.mean_watts, power.standard_error_watts};
    metrics[std::string(peak_power)] = {power.peak_watts};
    if (!(power.mean_watts > 0)) return;
    for (const auto& [rate, energy] : energies) {
        const auto* tokens = entry_in(metrics, rate);
        if (tokens == nullptr || !(tokens->value > 0)) continue;
        const double joules = power.mean_watts / tokens->value;
        const double of_power = power.standard_error_watts / power.mean_watts;
        const double of_rate = tokens->standard_error.value_or(0) / tokens->value;
        metrics[std::string(energy)] = {joules, joules * std::hypot(of_power, of_rate)};
    }
}

std::vector<std::string> power_metrics() {
    std::vector<std::string> result{std::string(mean_power), std::string(peak_power)};
    for (const auto& [rate, energy] : energies) result.emplace_back(energy);
    return result;
}

bool is_power_metric(std::string_view metric) {
    const std::vector<std::string> all = power_metrics();
    return contains(all, MetricKey::of(metric).name);
}

namespace {

using Json = nlohmann::json;

/// 214, "214.0", "214.0 W", {"value": 214, "unit": "W"}; nothing for "N/A" and what is negative.
std::optional<double> watts_in(const Json& value) {
    if (value.is_object()) return value.contains("value") ? watts_in(value["value"]) : std::nullopt;
    std::optional<double> watts;
    if (value.is_number()) watts = value.get<double>();
    else if (value.is_string()) {
        std::string_view text = trimmed(value.get_ref<const std::string&>());
        if (text.ends_with('W')) text = trimmed(text.substr(0, text.size() - 1));
        watts = real_of(text);
    }
    return watts && *watts >= 0 ? watts : std::nullopt;
}

/// Programs print warnings before their JSON.
Json json_in(const std::string& text) {
    const auto begin = std::min(text.find("\n{"), text.find("\n["));
    const bool at_once = !text.empty() && (text.front() == '{' || text.front() == '[');
    if (!at_once && begin == npos) return Json(Json::value_t::discarded);
    return shallow_json<Json>(std::string_view(text).substr(at_once ? 0 : begin + 1));
}

/// `VDD_IN 4319mW/4319mW`: now / on average since it runs.
std::optional<double> rail_watts(std::string_view words) {
    const auto end = words.find("mW");
    if (end == npos) return std::nullopt;
    const auto milliwatts = real_of(words.substr(0, end));
    return milliwatts && *milliwatts >= 0 ? std::optional(*milliwatts / 1000) : std::nullopt;
}

}  // namespace

std::optional<DeviceWatts> read_amd_smi(const std::string& text) {
    Json all = json_in(text);
    if (all.is_object() && all.contains("gpu_data")) all = Json(all["gpu_data"]);
    if (!all.is_array()) return std::nullopt;
    DeviceWatts result;
    for (const Json& gpu : all) {
        if (!gpu.is_object() || !gpu.contains("gpu") || !gpu["gpu"].is_number_integer()) continue;
        auto& watts = result[std::to_string(gpu["gpu"].get<long long>())];
        const auto power = gpu.find("power");
        if (power != gpu.end() && power->is_object() && power->contains("socket_power"))
            watts = watts_in((*power)["socket_power"]);
    }
    return result.empty() ? std::nullopt : std::optional(std::move(result));
}

/// The whole module, as the board's power of a card is: its input where that is told (VDD_IN; VIN
/// of a Thor), else the rails that make it up (of an AGX Orin VDD_GPU_SOC, VDD_CPU_CV and
/// VIN_SYS_5V0). VDDQ... is a part of the last.
std::optional<DeviceWatts> read_tegrastats(const std::string& text) {
    const auto end = text.rfind('\n');
    if (end == npos) return std::nullopt;
    const auto before = end == 0 ? npos : text.rfind('\n', end - 1);
    const std::size_t begin = before == npos ? 0 : before + 1;
    std::map<std::string, double> rails;
    std::string name;
    for (const std::string& word : words_of(text.substr(begin, end - begin))) {
        if (name.starts_with('V'))
            if (const auto watts = rail_watts(word)) rails[name] = *watts;
        name = word;
    }
    for (const char* input : {"VDD_IN", "VIN"})
        if (const auto* found = entry_in(rails, input)) return DeviceWatts{{"0", *found}};
    if (!rails.contains("VIN_SYS_5V0")) return std::nullopt;
    double sum = 0;
    for (const auto& [rail, watts] : rails) sum += rail.starts_with("VDDQ") ? 0 : watts;
    return DeviceWatts{{"0", sum}};
}

std::optional<PowerTool> PowerTool::find(const PowerPrograms& programs) {
    for (const PowerTool& tool : {
             PowerTool("amd-smi", find_program(programs.amd_smi), {"metric", "--power", "--json"},
                       read_amd_smi, false),
             PowerTool("tegrastats", find_program(programs.tegrastats), {"--interval", "200"},
                       read_tegrastats, true),
         })
        if (!tool.file_.empty()) return tool;
    return std::nullopt;
}

std::optional<DeviceWatts> PowerTool::read(std::chrono::milliseconds within) {
    constexpr std::size_t output_bytes = 1UL << 20UL;
    constexpr std::chrono::milliseconds two_lines(600);
    std::vector<std::string> argv{file_.string()};
    argv.insert(argv.end(), words_.begin(), words_.end());
    try {
        const RanCommand command =
            run_command(argv, never_ends_ ? std::min(within, two_lines) : within, output_bytes);
        const bool in_time = never_ends_ || command.end == RanCommand::End::exited;
        if (auto watts = in_time ? reader_(command.output) : std::nullopt) return watts;
        const std::vector<std::string> lines = lines_of(command.output);
        trouble_ = !in_time        ? "it did not answer in time"
                   : lines.empty() ? "exit code " + std::to_string(command.exit_code)
                                   : "'" + lines.front().substr(0, 200) + "' tells no power";
    } catch (const IoError& error) {
        trouble_ = error.what();
    }
    return std::nullopt;
}

}  // namespace servetune
