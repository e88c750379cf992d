// SPDX-License-Identifier: Apache-2.0
// The process that stands for an engine which runs elsewhere. A launcher starts it; no person does,
// so it is in no help, manual or completion.
#include "launch_client.hpp"
#include "deploy/kubernetes_client.hpp"
#include "deploy/ray_client.hpp"

#include <array>
#include <utility>

namespace autotune {
namespace {

constexpr std::array<std::pair<std::string_view, int (*)()>, 2> launch_clients{
    {{"kubernetes", servetune::kubernetes_client}, {"ray", servetune::ray_client}}};

}  // namespace

std::optional<int> launch_client(std::span<const char* const> words) {
    if (words.size() != 3 || std::string_view(words[1]) != "launch-client") return std::nullopt;
    for (const auto& [name, client] : launch_clients)
        if (name == words[2]) return client();
    return std::nullopt;
}

}  // namespace autotune
