// SPDX-License-Identifier: Apache-2.0
#include "nvidia_smi.hpp"

#include "base/text.hpp"
#include "base/waiting.hpp"
#include "kept_output.hpp"
#include "run_command.hpp"
#include "servetune/detail/host/machine_watch.hpp"
#include "servetune/error.hpp"
#include "start_program.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <thread>

namespace servetune {
namespace {

using CsvFields = std::vector<std::string_view>;

CsvFields fields_of(std::string_view line) {
    CsvFields result;
    for (std::size_t end = 0; end != npos; line.remove_prefix(std::min(line.size(), end + 1))) {
        end = line.find(',');
        result.push_back(trimmed(line.substr(0, end)));
    }
    return result;
}

template <class Number, class... Base>
std::optional<Number> number_from(std::string_view text, Base... base) {
    Number value{};
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, base...);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// A bit mask, `0x0000000000000004`.
std::optional<std::uint64_t> mask(std::string_view text) {
    if (!text.starts_with("0x")) return std::nullopt;
    return number_from<std::uint64_t>(text.substr(2), 16);
}

std::optional<GpuState> gpu_of(const CsvFields& fields) {
    if (fields.size() != 9) return std::nullopt;
    const auto index = number_from<int>(fields[0]);
    if (!index || fields[1].empty()) return std::nullopt;
    const auto real = [&](std::size_t at) { return number_from<double>(fields[at]); };
    return GpuState{*index,  std::string(fields[1]), real(2), real(3), real(4), real(5), real(6),
                    real(7), mask(fields[8])};
}

std::optional<GpuProcess> process_of(const CsvFields& fields) {
    if (fields.size() != 3) return std::nullopt;
    const auto id = number_from<int>(fields[0]);
    if (!id) return std::nullopt;
    return GpuProcess{*id, std::string(fields[1]), number_from<double>(fields[2])};
}

/// A name has no comma.
std::optional<Device> device_of(const CsvFields& fields) {
    if (fields.size() < 4 || fields.size() > 5 || fields[1].empty() || fields[2].empty())
        return std::nullopt;
    const auto index = number_from<int>(fields[0]);
    if (!index) return std::nullopt;
    const bool tells_driver = fields.size() == 5 && !fields[4].starts_with('[');
    return Device{*index, std::string(fields[1]), std::string(fields[2]),
                  number_from<std::uint64_t>(fields[3]).value_or(0) << 20U,
                  std::string(tells_driver ? fields[4] : "")};
}

/// As nvidia-smi says it when a GPU does not answer any more: `Unable to determine the device
/// handle for GPU 0000:02:00.0: GPU is lost. Reboot the system to recover this GPU`, or `...:
/// Unknown Error`; after the driver has let go of the last one `No devices were found`.
bool tells_of_a_loss(std::string_view line) {
    static constexpr std::array<std::string_view, 3> words{
        "GPU is lost", "Unable to determine the device handle", "No devices were found"};
    return any_of(words, [&](std::string_view one) { return contains(line, one); });
}

RanCommand ran(const std::vector<std::string>& argv, std::chrono::milliseconds within) {
    constexpr std::size_t output_bytes =
        1UL << 20UL;  // a line is 100 bytes, a process has at most one a GPU
    return run_command(argv, within, output_bytes);
}

template <class Row>
SmiAnswer<Row> read_rows(const RanCommand& command,
                         std::optional<Row> (*row_of)(const CsvFields&)) {
    SmiAnswer<Row> answer;
    if (command.end == RanCommand::End::out_of_time)
        answer.trouble = {SmiTrouble::Kind::out_of_time, "it did not answer in time"};
    else if (command.end == RanCommand::End::too_much_output)
        answer.trouble = {SmiTrouble::Kind::failed, "it said too much"};
    if (answer.trouble.kind != SmiTrouble::Kind::none) return answer;
    std::string other;
    for (const std::string& line : lines_of(command.output)) {
        if (tells_of_a_loss(line)) answer.trouble = {SmiTrouble::Kind::lost, line};
        else if (const auto row = row_of(fields_of(line))) answer.rows.push_back(*row);
        else if (other.empty()) other = line.substr(0, 200);
    }
    const bool complains = command.exit_code != 0 || !other.empty();
    if (answer.trouble.kind == SmiTrouble::Kind::none && answer.rows.empty() && complains)
        answer.trouble = {SmiTrouble::Kind::failed,
                          (other.empty() ? std::string() : "'" + other + "', ") + "exit code " +
                              std::to_string(command.exit_code)};
    return answer;
}

/// One --query-... at a time.
template <class Row>
SmiAnswer<Row> asked(const std::filesystem::path& file, std::chrono::milliseconds within,
                     const std::string& question, std::optional<Row> (*row_of)(const CsvFields&)) {
    try {
        return read_rows(ran({file.string(), question, "--format=csv,noheader,nounits"}, within),
                         row_of);
    } catch (const IoError& error) {
        return {{}, {SmiTrouble::Kind::failed, error.what()}};
    }
}

}  // namespace

NvidiaSmi::NvidiaSmi(const std::string& program, std::chrono::milliseconds within)
    : file_(find_program(program)), within_(within) {}

SmiAnswer<GpuState> NvidiaSmi::gpus() {
    // nvidia-smi --help-query-gpu; drivers up to 525 call clocks_event_reasons
    // clocks_throttle_reasons (NVML references R525 and R550). All have power.draw;
    // power.draw.average and power.draw.instant, which newer ones have beside it, are absent in
    // older ones, and the average on a GA100.
    const auto ask = [&] {
        return asked(file_, within_,
                     std::string("--query-gpu=index,uuid,memory.used,memory.total,clocks.sm,"
                                 "clocks.max.sm,temperature.gpu,power.draw,") +
                         (old_name_ ? "clocks_throttle_reasons" : "clocks_event_reasons") +
                         ".active",
                     gpu_of);
    };
    SmiAnswer<GpuState> answer = ask();
    if (old_name_ ||
        !contains(answer.trouble.words, "\"clocks_event_reasons.active\" is not a valid field"))
        return answer;
    old_name_ = true;
    return ask();
}

SmiAnswer<GpuProcess> NvidiaSmi::processes() {
    return asked(file_, within_, "--query-compute-apps=pid,gpu_uuid,used_memory", process_of);
}

SmiAnswer<Device> NvidiaSmi::devices() {
    return asked(file_, within_, "--query-gpu=index,uuid,name,memory.total,driver_version",
                 device_of);
}

std::string text_of_reasons(std::uint64_t reasons) {
    static constexpr std::array<std::pair<GpuSlowdown, const char*>, 4> names{
        {{hw_slowdown, "HW slowdown"},
         {sw_thermal, "SW thermal slowdown"},
         {hw_thermal, "HW thermal slowdown"},
         {hw_power_brake, "HW power brake slowdown"}}};
    std::string text;
    for (const auto& [bit, name] : names)
        if ((reasons & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
}

std::optional<std::vector<std::string>> named_gpus(const std::string& text) {
    std::string list = text;
    if (list.empty()) {
        const char* own = std::getenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe)
        if (own == nullptr) return std::nullopt;
        list = own;
    }
    std::vector<std::string> names;
    for (const std::string_view name : fields_of(list))
        if (!name.empty()) names.emplace_back(name);
    return names;
}

std::string wrong_with_gpu_list(const std::string& text) {
    constexpr const char* wanted =
        "GPUs by number or UUID, with commas between, such as \"0,1\", wanted, got '";
    const std::vector<std::string_view> names = fields_of(text);
    std::set<std::string> seen;
    for (const std::string_view name : names) {
        const auto number = number_from<int>(name);
        const bool uuid = name.starts_with("GPU-") || name.starts_with("MIG-");
        const std::string said = names.size() > 1 ? "' in '" + text : "";
        if (number ? *number < 0 || name.front() == '-' : !uuid)
            return wanted + std::string(name) + said + "'";
        if (!seen.insert(number ? std::to_string(*number) : std::string(name)).second)
            return "the GPU " + std::string(name) + " is listed twice in '" + text + "'";
    }
    return "";
}

std::vector<GpuState> only_named(const std::optional<std::vector<std::string>>& names,
                                 std::vector<GpuState> gpus) {
    if (!names) return gpus;
    std::vector<GpuState> result;
    for (std::string name : *names) {
        // A part of a GPU, MIG-GPU-<uuid>/1/0, is watched with the whole of it; newer names of
        // parts do not tell whose they are.
        if (name.starts_with("MIG-GPU-")) name = name.substr(4, name.find('/') - 4);
        const auto index = number_from<int>(std::string_view(name));
        const auto found = find_if(gpus, [&](const GpuState& gpu) {
            return index ? gpu.index == *index
                         : name.starts_with("GPU-") && gpu.uuid.starts_with(name);
        });
        if (found == gpus.end()) break;
        result.push_back(*found);
    }
    return result;
}

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

std::uint64_t bytes_of(double mib) {
    return std::uint64_t(std::llround(std::max(mib, 0.0) * (1 << 20)));
}

std::vector<GpuMemoryUse> memory_of(const std::string& named, std::vector<GpuState> gpus) {
    std::vector<GpuMemoryUse> result;
    for (const GpuState& gpu : only_named(named_gpus(named), std::move(gpus)))
        if (gpu.used_mib)
            result.push_back({gpu.index, gpu.uuid, bytes_of(*gpu.used_mib),
                              bytes_of(gpu.total_mib.value_or(0))});
    sort(result, [](const GpuMemoryUse& a, const GpuMemoryUse& b) { return a.index < b.index; });
    return result;
}

}  // namespace

std::string mib_text(std::uint64_t bytes) { return std::to_string(bytes >> 20U) + " MiB"; }

GpuMemory::GpuMemory(std::string gpus, std::string nvidia_smi,
                     std::chrono::milliseconds answers_within)
    : gpus_(std::move(gpus)), nvidia_smi_(std::move(nvidia_smi)), answers_within_(answers_within) {}

std::vector<GpuMemoryUse> GpuMemory::used() const {
    NvidiaSmi smi(nvidia_smi_, answers_within_);
    return smi.present() ? memory_of(gpus_, smi.gpus().rows) : std::vector<GpuMemoryUse>{};
}

std::string GpuMemory::wait_until_free(const std::vector<GpuMemoryUse>& before,
                                       std::chrono::milliseconds patience) const {
    if (before.empty()) return {};
    NvidiaSmi smi(nvidia_smi_, answers_within_);
    if (!smi.present()) return {};
    const auto deadline = Clock::now() + patience;
    for (std::chrono::milliseconds pause = 50ms;; pause = std::min(2 * pause, 1000ms)) {
        const auto answer = smi.gpus();
        if (answer.rows.empty())
            return "cannot tell whether the GPUs' memory is free: nvidia-smi: " +
                   answer.trouble.words + "\n";
        std::string report;
        for (const GpuMemoryUse& now : memory_of(gpus_, answer.rows))
            for (const GpuMemoryUse& then : before)
                if (then.uuid == now.uuid && now.used_bytes > then.used_bytes + slack_bytes)
                    report += "GPU " + std::to_string(now.index) + ": " + mib_text(now.used_bytes) +
                              " of its memory are still in use after " +
                              seconds_text(std::chrono::duration<double>(patience).count()) + ", " +
                              mib_text(then.used_bytes) + " were before the start\n";
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        if (report.empty() || left <= 0ms) return report;
        std::this_thread::sleep_for(std::min(pause, left));
    }
}

}  // namespace servetune
