// SPDX-License-Identifier: Apache-2.0
// What is docker's own: devices by `--gpus`, and a daemon that may be gone.
#include "container_launcher.hpp"

#include <algorithm>
#include <array>

namespace servetune {
namespace {

class DockerLauncher : public ContainerLauncher {
public:
    using ContainerLauncher::ContainerLauncher;
    [[nodiscard]] std::string name() const override { return "docker"; }

protected:
    /// One word: it is read as a line of CSV, so a list of devices stands in quotes of its own.
    [[nodiscard]] std::vector<std::string> device_words(
        const std::vector<std::string>& gpus) const override {
        if (gpus.empty()) return {};
        std::string list;
        for (const std::string& gpu : gpus) list += (list.empty() ? "" : ",") + gpu;
        return {"--gpus=\"device=" + list + "\""};
    }
    [[nodiscard]] std::vector<std::string> removal_words() const override {
        return {"--force", "--volumes"};
    }
    [[nodiscard]] bool tells_of_no_daemon(std::string_view words) const override {
        // `Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon
        // running?`; newer ones `failed to connect to the docker API at unix:///...`; who loses it
        // says `error during connect`.
        constexpr std::array<std::string_view, 4> known{
            "Cannot connect to the Docker daemon", "failed to connect to the docker API",
            "error during connect", "Is the docker daemon running"};
        return std::any_of(known.begin(), known.end(), [&](std::string_view one) {
            return words.find(one) != std::string_view::npos;
        });
    }
};

}  // namespace

std::shared_ptr<const Launcher> docker_launcher(ContainerOptions options) {
    return std::make_shared<DockerLauncher>(std::move(options));
}

}  // namespace servetune
