// SPDX-License-Identifier: Apache-2.0
#include "engine_process.hpp"

#include "base/present.hpp"
#include "servetune/error.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <tuple>

namespace simengine {
namespace {

/// The daemon's file stands for its socket: it holds a lock on it as long as it has the weights.
/// There is one for the first device that the process sees.
std::string socket_in(const std::string& folder) {
    const char* visible =
        std::getenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe): there is one thread
    std::string device = visible == nullptr ? "0" : visible;
    device = device.substr(0, device.find(','));
    return folder + "/vllm_weight_cache_gpu" + device + ".sock";
}

/// Which weights these are, as far as the engines compare: what kind, not what numbers.
std::string kind_of_weights(const EngineSetup& setup) {
    const EngineCommand& command = setup.command;
    return fmt::format("{} {} {} {:.0f}", command.model, command.value("--dtype").value_or("auto"),
                       command.value("--quantization").value_or("none"),
                       servetune::present(setup.cost).memory().weights_bytes);
}

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

int hold_weights(const EngineSetup& setup, const Options& options) {
    const auto fails = [](const std::string& why) {
        fmt::print(stderr, "{}\n", why);
        return 1;
    };
    const auto devices = std::size_t(servetune::present(setup.cost).settings().devices());
    if (!options.devices.empty())
        if (const std::string why = claim_devices(options.devices, devices, DevicePart::weights);
            !why.empty())
            return fails(why);
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, nullptr);
    const double seconds = seconds_of_weights(setup) / options.start_scale;
    timespec loads{};
    loads.tv_sec = static_cast<time_t>(seconds);
    loads.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
    if (sigtimedwait(&ends, nullptr, &loads) > 0) return 0;
    const std::string socket = socket_in(setup.command.folder);
    const int file = open(socket.c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600);
    const std::string kind = kind_of_weights(setup);
    if (file < 0 || flock(file, LOCK_EX | LOCK_NB) != 0 ||
        write(file, kind.data(), kind.size()) != static_cast<ssize_t>(kind.size()))
        return fails("OSError: " + socket + ": " + std::generic_category().message(errno));
    fmt::print(stderr,
               "===== Weight cache daemon READY: node 1/1 serving {} local rank(s) x 1 role(s) "
               "in {} =====\n",
               devices, setup.command.folder);
    int ended = 0;
    (void)sigwait(&ends, &ended);
    (void)unlink(socket.c_str());
    return 0;
}

double seconds_of_weights(const EngineSetup& setup) {
    const servetune::CostModel& cost = servetune::present(setup.cost);
    return cost.memory().weights_bytes / cost.target().traits.load_bytes_per_second;
}

bool takes_weights(const EngineSetup& setup) {
    const EngineCommand& command = setup.command;
    if (command.value("--load-format").value_or("auto") != "ipc_cache") return false;
    const auto more = nlohmann::json::parse(
        command.value("--model-loader-extra-config").value_or("{}"), nullptr, false);
    const std::string socket = socket_in(more.is_object() ? more.value("socket_dir", "") : "");
    const int file = open(socket.c_str(), O_RDONLY);
    const bool held = file >= 0 && flock(file, LOCK_SH | LOCK_NB) != 0;
    if (file >= 0) close(file);
    std::string kind;
    std::ifstream stream(socket);
    std::getline(stream, kind);
    if (!held || kind != kind_of_weights(setup))
        throw servetune::IoError("RuntimeError: Weight cache socket " + socket +
                                 (held ? " has other weights: " + kind : " is unavailable"));
    return true;
}

std::string claim_devices(const std::filesystem::path& folder, std::size_t count, DevicePart part) {
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
             {std::tuple(DevicePart::engine, "gpu-", "another engine's"),
              std::tuple(DevicePart::weights, "weights-of-gpu-", "full of a daemon's weights")}) {
            if ((static_cast<unsigned>(part) & static_cast<unsigned>(wanted)) == 0) continue;
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
    if (part != DevicePart::weights)
        std::ofstream(folder / "claims", std::ios::app)
            << count << " of " << names.size() << ": " << taken << "\n";
    return {};
}

}  // namespace simengine
