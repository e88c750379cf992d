// SPDX-License-Identifier: Apache-2.0
#include "launch_clients.hpp"

#include "base/text.hpp"
#include "host/kept_output.hpp"
#include "host/start_program.hpp"
#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/error.hpp"
#include "servetune/launcher.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <system_error>

namespace servetune {
namespace {

/// The engine as a process of this machine: its command as it is.
class LocalLauncher : public Launcher {
public:
    [[nodiscard]] std::string name() const override { return "local"; }
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
};

}  // namespace

void hand_on_hub_tokens(std::map<std::string, std::string>& environment) {
    for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
        if (const char* token =
                std::getenv(name))  // NOLINT(concurrency-mt-unsafe): nothing sets it
            environment.emplace(name, token);
}

std::shared_ptr<const Launcher> local_launcher() {
    static const auto launcher = std::make_shared<const LocalLauncher>();
    return launcher;
}

std::string label_of(const std::string& mark) { return fingerprint_of(mark).text(); }

/// A pod of a Job of Kubernetes has another name when it is made anew, `JOB-xxxxx` of these
/// letters (k8s.io/apimachinery, pkg/util/rand/rand.go), and its study is the same.
std::string label_here_of(const std::string& mark) {
    std::array<char, 256> buffer{};
    (void)gethostname(buffer.data(), buffer.size() - 1);
    std::string host = buffer.data();
    constexpr std::size_t random_letters = 5;
    const auto dash = host.rfind('-');
    if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr &&  // NOLINT(concurrency-mt-unsafe)
        dash != npos && host.size() - dash - 1 == random_letters &&
        host.find_first_not_of("bcdfghjklmnpqrstvwxz2456789", dash + 1) == npos)
        host.erase(dash);
    return label_of(mark + "@" + host);
}

std::string new_launch_name(const std::string& label) {
    static const std::string random = [] {
        std::random_device device;
        return fingerprint_of(std::to_string(device()) + " " + std::to_string(device()))
            .text()
            .substr(0, 8);
    }();
    static std::atomic<int> made = 0;
    return "servetune-" + label + "-" + random + "-" + std::to_string(++made);
}

std::string with_place(std::string word, const std::map<std::string, std::string>& files,
                       std::string_view folder) {
    for (const auto& [name, content] : files) {
        const bool whole = word == name;
        if (!whole && !word.ends_with("=" + name)) continue;
        word.insert(word.size() - name.size(), std::string(folder) + "/");
        break;
    }
    return word;
}

RanCommand ask_client(std::vector<std::string> words, const std::string& purpose) {
    const auto file = find_program(words.front());
    if (file.empty())
        throw IoError("there is no program '" + words.front() + "' in $PATH to " + purpose +
                      " with");
    words.front() = file.string();
    constexpr std::size_t output_bytes = 1UL << 20UL;
    return run_command(words, std::chrono::seconds(60), output_bytes);
}

std::string complaint_in(const RanCommand& command) {
    if (command.end == RanCommand::End::out_of_time) return "it did not answer in time";
    std::string last = "exit code " + std::to_string(command.exit_code);
    for (const std::string& line : lines_of(command.output))
        if (!trimmed(line).empty() && !line.starts_with("WARN") && !contains(line, "level=warning"))
            last = line;
    return last.substr(0, 500);
}

Ended end_launched(const Launcher& launcher, const Launch& launch, Process& process,
                   std::chrono::milliseconds patience) {
    const auto begin = std::chrono::steady_clock::now();
    std::string not_asked;
    try {
        // The other side has the same patience and then some work to do.
        if (process.running() && launcher.ask_to_end(launch, process))
            (void)process.wait(patience + std::chrono::seconds(3));
    } catch (const IoError& error) {
        not_asked = std::string("it could not be asked to end: ") + error.what() + "\n";
    }
    Ended result = process.end(patience);
    result.report += not_asked;
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
}

}  // namespace servetune
