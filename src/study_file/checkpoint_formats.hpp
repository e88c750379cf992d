// SPDX-License-Identifier: Apache-2.0
// How the weights of a checkpoint are kept, module by module.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace servetune {

/// How weights are kept.
struct WeightsFormat {
    std::string name = "bf16";
    double bits = 16;  ///< with scales
    std::string computes_in = "bf16";
};

/// Which module of a checkpoint is kept how.
class CheckpointFormats {
public:
    /// `of`: under quantization_config, or in hf_quant_config.json.
    CheckpointFormats(const nlohmann::json* of, const std::string& expert_type);

    double block = 0;       ///< parameters along a side of the blocks that have one scale; 0: none
    std::string unknown{};  ///< words of a quantization that nothing here reads

    [[nodiscard]] const WeightsFormat& of(const std::string& module, std::int64_t layer);

private:
    struct Rule {
        WeightsFormat format{};
        bool all = false;
        std::set<std::int64_t> layers{};
        std::map<std::string, bool> hits{};
    };

    /// `model.layers.12.self_attn.q_proj`, `*.mlp.gate`, `re:.*self_attn.*`
    void add(std::string pattern, const WeightsFormat& format);

    WeightsFormat default_{};
    std::map<std::pair<std::string, std::string>, Rule> rules_{};
};

}  // namespace servetune
