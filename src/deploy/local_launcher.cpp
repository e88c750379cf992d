// SPDX-License-Identifier: Apache-2.0
// The engine as a process of this machine: its command as it is.
#include "hub_tokens.hpp"
#include "servetune/launcher.hpp"

#include <cstdlib>

namespace servetune {
namespace {

class LocalLauncher : public Launcher {
public:
    [[nodiscard]] std::string name() const override { return "local"; }
    [[nodiscard]] std::string trouble(const std::string& /*image*/) const override { return {}; }
    [[nodiscard]] std::string pinned(const std::string& /*image*/) const override { return {}; }

    [[nodiscard]] Launch launch(const LaunchRequest& request) const override {
        Launch result{
            request.command.argv, request.environment, {}, {}, request.command.argv.front()};
        hand_on_hub_tokens(result.environment);
        if (request.gpus.empty()) return result;
        result.environment["CUDA_VISIBLE_DEVICES"] = request.gpus;
        // Numbers are nvidia-smi's; by itself CUDA counts the fastest device first.
        if (std::getenv("CUDA_DEVICE_ORDER") == nullptr)  // NOLINT(concurrency-mt-unsafe)
            result.environment.emplace("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
        return result;
    }
    [[nodiscard]] std::optional<Failure> ended(
        const Launch& /*launch*/, int /*exit_code*/,
        const std::vector<std::string>& /*lines*/) const override {
        return std::nullopt;
    }
    std::string remove(const Launch& /*launch*/) const override { return {}; }
    [[nodiscard]] std::vector<std::string> leftovers(const std::string& /*mark*/) const override {
        return {};
    }
    std::vector<std::string> end_leftovers(const std::string& /*mark*/) const override {
        return {};
    }
    [[nodiscard]] Command shown(const LaunchRequest& request) const override {
        return request.command;
    }
};

}  // namespace

std::shared_ptr<const Launcher> local_launcher() {
    static const auto launcher = std::make_shared<const LocalLauncher>();
    return launcher;
}

}  // namespace servetune
