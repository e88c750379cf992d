// SPDX-License-Identifier: Apache-2.0
#include "claimed_devices.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <tuple>

namespace simengine {
namespace {

/// Nothing: all that there are.
std::optional<std::vector<std::string>> visible_devices() {
    const char* list = std::getenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe)
    if (list == nullptr) return std::nullopt;
    std::vector<std::string> names;
    std::istringstream stream(list);
    for (std::string name; std::getline(stream, name, ',');) names.push_back(name);
    return names;
}

}  // namespace

std::string ClaimedDevices::take(const std::filesystem::path& folder, std::size_t count,
                                 Part part) {
    std::vector<std::string> names;
    if (const auto visible = visible_devices()) names = *visible;
    else
        for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
    if (names.size() < count)
        return "ValueError: World size (" + std::to_string(count) +
               ") is larger than the number of available GPUs (" + std::to_string(names.size()) +
               ") in this node.";
    std::string taken;
    for (std::size_t i = 0; i < count; ++i) {
        if (names[i].find('/') != std::string::npos)
            return "CUDA error: invalid device ordinal: " + names[i];
        for (const auto& [wanted, called, whose] :
             {std::tuple(engine, "gpu-", "another engine's"),
              std::tuple(weights, "weights-of-gpu-", "full of a daemon's weights")}) {
            if ((part & wanted) == 0) continue;
            const int file = open((folder / (called + names[i])).c_str(), O_CREAT | O_RDWR,
                                  0666);  // open until the process ends
            if (file < 0) return "CUDA error: no device " + names[i] + " in " + folder.string();
            if (flock(file, LOCK_EX | LOCK_NB) != 0) {
                close(file);
                return "torch.OutOfMemoryError: CUDA out of memory. GPU " + names[i] + " is " +
                       whose + ".";
            }
        }
        taken += (i == 0 ? "" : ",") + names[i];
    }
    if (part != weights)
        std::ofstream(folder / "claims", std::ios::app)
            << count << " of " << names.size() << ": " << taken << "\n";
    return {};
}

}  // namespace simengine
