// SPDX-License-Identifier: Apache-2.0
#include "power_tool.hpp"

#include "base/nesting.hpp"
#include "base/text.hpp"
#include "kept_output.hpp"
#include "run_command.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"
#include "start_program.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>
#include <utility>

namespace servetune {
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
    if (!at_once && begin == std::string::npos) return Json(Json::value_t::discarded);
    return shallow_json<Json>(std::string_view(text).substr(at_once ? 0 : begin + 1));
}

/// `VDD_IN 4319mW/4319mW`: now / on average since it runs.
std::optional<double> rail_watts(std::string_view words) {
    const auto end = words.find("mW");
    if (end == std::string_view::npos) return std::nullopt;
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

std::optional<DeviceWatts> read_rocm_smi(const std::string& text) {
    const Json all = json_in(text);
    if (!all.is_object()) return std::nullopt;
    DeviceWatts result;
    for (const auto& [name, card] : all.items()) {
        constexpr std::string_view prefix = "card";
        if (!name.starts_with(prefix) || name.size() == prefix.size() || !card.is_object())
            continue;
        auto& watts = result[name.substr(prefix.size())];
        for (const char* key :
             {"Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)"})
            if (!watts && card.contains(key)) watts = watts_in(card[key]);
    }
    return result.empty() ? std::nullopt : std::optional(std::move(result));
}

/// The whole module, as the board's power of a card is: its input where that is told (VDD_IN; VIN
/// of a Thor), else the rails that make it up (of an AGX Orin VDD_GPU_SOC, VDD_CPU_CV and
/// VIN_SYS_5V0). VDDQ... is a part of the last.
std::optional<DeviceWatts> read_tegrastats(const std::string& text) {
    const auto end = text.rfind('\n');
    if (end == std::string::npos) return std::nullopt;
    const auto before = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    std::istringstream words(text.substr(begin, end - begin));
    std::map<std::string, double> rails;
    std::string name;
    for (std::string word; words >> word; name = word)
        if (name.starts_with('V'))
            if (const auto watts = rail_watts(word)) rails[name] = *watts;
    for (const char* input : {"VDD_IN", "VIN"})
        if (const auto found = rails.find(input); found != rails.end())
            return DeviceWatts{{"0", found->second}};
    if (!rails.contains("VIN_SYS_5V0")) return std::nullopt;
    double sum = 0;
    for (const auto& [rail, watts] : rails) sum += rail.starts_with("VDDQ") ? 0 : watts;
    return DeviceWatts{{"0", sum}};
}

std::optional<PowerTool> PowerTool::find(const PowerPrograms& programs) {
    for (const PowerTool& tool : {
             PowerTool("amd-smi", find_program(programs.amd_smi), {"metric", "--power", "--json"},
                       read_amd_smi, false),
             PowerTool("rocm-smi", find_program(programs.rocm_smi), {"--showpower", "--json"},
                       read_rocm_smi, false),
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
