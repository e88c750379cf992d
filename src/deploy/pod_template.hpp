// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// The user's pod, of which trials are made: node selector, volumes, limits and what else a cluster
/// wants are theirs. What is this program's to say may not stand in it.
struct PodTemplate {
    nlohmann::json metadata = nlohmann::json::object();
    nlohmann::json spec = nlohmann::json::object();
    std::size_t engine = 0;  ///< which of spec.containers
    /// What cannot be in it, each with its path and the reason; empty: nothing. Unless it is empty,
    /// the other members are not to be used.
    std::vector<std::string> wrong{};

    [[nodiscard]] const nlohmann::json& engine_container() const {
        return spec.at("containers").at(engine);
    }
};

/// Begins the names of volumes, labels and annotations that are ours.
inline constexpr std::string_view own_names = "servetune";

/// Of a Pod, a PodTemplate or a PodTemplateSpec as JSON. `devices`: the resource that the layout of
/// a trial says; `has_images`: the study says the images. Throws nothing.
[[nodiscard]] PodTemplate pod_template_of(const std::string& json, const std::string& devices,
                                          bool has_images);

}  // namespace servetune
