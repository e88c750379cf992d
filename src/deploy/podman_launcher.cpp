// SPDX-License-Identifier: Apache-2.0
// What is podman's own: devices by the Container Device Interface, and no daemon.
#include "container_launcher.hpp"

namespace servetune {
namespace {

class PodmanLauncher : public ContainerLauncher {
public:
    using ContainerLauncher::ContainerLauncher;
    [[nodiscard]] std::string name() const override { return "podman"; }

protected:
    /// By names of the Container Device Interface, as `nvidia-ctk cdi generate` writes them.
    [[nodiscard]] std::vector<std::string> device_words(
        const std::vector<std::string>& gpus) const override {
        std::vector<std::string> words;
        for (const std::string& gpu : gpus) words.push_back("--device=nvidia.com/gpu=" + gpu);
        return words;
    }
    /// Without waiting for an end by itself: that was over when the container was removed.
    [[nodiscard]] std::vector<std::string> removal_words() const override {
        return {"--force", "--time=0", "--volumes"};
    }
    /// `podman --remote` has one.
    [[nodiscard]] bool tells_of_no_daemon(std::string_view words) const override {
        return words.find("unable to connect to Podman") != std::string_view::npos;
    }
};

}  // namespace

std::shared_ptr<const Launcher> podman_launcher(ContainerOptions options) {
    return std::make_shared<PodmanLauncher>(std::move(options));
}

}  // namespace servetune
