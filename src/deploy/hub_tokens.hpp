// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <map>
#include <string>

namespace servetune {

/// Adds the tokens of the hub that models are fetched from, where this process has them and
/// `environment` does not: the only secrets that an engine gets unless its study names them, as it
/// cannot fetch a gated model without. Source: huggingface_hub's reference, "Environment
/// variables", HF_TOKEN and its earlier name.
inline void hand_on_hub_tokens(std::map<std::string, std::string>& environment) {
    for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
        if (const char* token = std::getenv(name))
            environment.emplace(name, token);  // NOLINT(concurrency-mt-unsafe): nothing sets it
}

}  // namespace servetune
