// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// What decides which kernels a chip runs. `ampere` is sm_80 and sm_86, `blackwell` sm_100 and
/// sm_103, `blackwell-rtx` sm_120 and sm_121.
inline constexpr std::array<std::string_view, 9> architectures{
    "turing", "ampere", "ada", "hopper", "blackwell", "blackwell-rtx", "thor", "cdna3", "cdna4"};

/// What one accelerator can do at most, as its vendor states it: bounds that no measurement passes,
/// never predictions. Read from search_spaces/hardware/*.yaml.
struct HardwareSpec {
    std::string name;                 ///< its file's: `h100-sxm`
    std::vector<std::string> also{};  ///< other names: of data sheets, of nvidia-smi
    std::string architecture{};       ///< one of `architectures`
    double memory_bytes = 0;
    double memory_bandwidth_bytes_per_second = 0;
    std::map<std::string, double, std::less<>>
        flops_per_second{};      ///< type -> dense matrix operations: fp16 bf16 fp8 int8 fp4
    bool shared_memory = false;  ///< with the CPU, which then takes its share of the bandwidth
    std::optional<double> link_bytes_per_second{};  ///< to its neighbours, both directions together
    std::optional<std::int64_t>
        devices_per_node{};  ///< that the link joins; nothing: as many as are asked for
    std::string source{};
    /// keys of figures that were seen neither in its maker's data sheet nor in a copy of it
    std::vector<std::string> unverified{};

    /// For people; empty where all figures were seen there.
    [[nodiscard]] std::string note_of_unverified() const;

    /// Operations per second in a number type; where the chip has none of it, those of the next
    /// wider type that it has, as kernels then compute in it (fp4 -> fp8 -> bf16); fp8 with scales
    /// of blocks (fp8_block) and mxfp4 that is multiplied in fp8 (mxfp4_fp8) have those of
    /// fp8. Nothing when
    /// none is known. fp32 that no file lists has half of bf16's, the most that matrix units give
    /// it (TF32 on an A100: 156 of 312); without TF32 it is slower.
    [[nodiscard]] std::optional<double> flops(std::string_view type) const {
        if (type == "fp32" && !flops_per_second.contains(type)) {
            const auto narrow = flops("bf16");
            return narrow ? std::optional(*narrow / 2) : std::nullopt;
        }
        for (std::string_view wanted = type == "fp8_block" || type == "mxfp4_fp8" ? "fp8" : type;
             !wanted.empty(); wanted = wanted == "fp4"                        ? "fp8"
                                       : wanted == "bf16" || wanted == "fp16" ? ""
                                                                              : "bf16")
            if (const auto found = flops_per_second.find(wanted); found != flops_per_second.end())
                return found->second;
        return std::nullopt;
    }
};

/// The one accelerator that a text mentions ("one NVIDIA H100 SXM", a whole document); nothing when
/// it mentions none or several. At each place the longest known name counts, whatever its case; a
/// name that goes on with a variant (H100 NVL) is another chip.
std::optional<HardwareSpec> hardware_in(std::string_view text,
                                        const std::vector<HardwareSpec>& known);

}  // namespace servetune
