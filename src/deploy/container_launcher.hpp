// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/run_command.hpp"
#include "servetune/launcher.hpp"

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// What podman and docker have in common; each has a file with what differs. The client of `run`
/// stays in the foreground: its output is the engine's, its exit code the engine's, and a TERM that
/// it gets goes on to the engine. The container is not removed by its end, so that it can be asked
/// how it ended; `remove` does it, and `end_leftovers` where this program was killed first: its
/// label says whose it is.
class ContainerLauncher : public Launcher {
public:
    explicit ContainerLauncher(ContainerOptions options);

    [[nodiscard]] bool in_containers() const final { return true; }
    [[nodiscard]] std::vector<std::string> images() const final { return options_.images; }
    [[nodiscard]] std::string trouble(const std::string& image) const final;
    [[nodiscard]] std::string pinned(const std::string& image) const final;
    [[nodiscard]] Launch launch(const LaunchRequest& request) const final;
    [[nodiscard]] std::optional<Failure> ended(const Launch& launch, int exit_code,
                                               const std::vector<std::string>& lines) const final;
    std::string remove(const Launch& launch) const final;
    [[nodiscard]] std::vector<std::string> leftovers(const std::string& mark) const final;
    std::vector<std::string> end_leftovers(const std::string& mark) const final;
    [[nodiscard]] Command shown(const LaunchRequest& request) const final;

protected:
    /// Words of `run` that give it these devices.
    [[nodiscard]] virtual std::vector<std::string> device_words(
        const std::vector<std::string>& gpus) const = 0;
    /// Words behind `rm` that remove a container at once, in any state, with its anonymous volumes.
    [[nodiscard]] virtual std::vector<std::string> removal_words() const = 0;
    /// Whether these words say that nobody is there who runs containers.
    [[nodiscard]] virtual bool tells_of_no_daemon(std::string_view words) const = 0;

private:
    struct Image {
        std::string id{};       ///< empty: it is not there
        std::string digests{};  ///< as JSON
        bool as_root = false;   ///< its program runs as root, who may write to any volume
        std::string trouble{};
    };
    [[nodiscard]] RanCommand ask(const std::vector<std::string>& words) const;
    [[nodiscard]] Image look_for(const std::string& image) const;
    [[nodiscard]] std::string kept_volume(const Image& image) const;
    [[nodiscard]] std::vector<std::string> words_for_all(const Command& engine) const;
    [[nodiscard]] std::string remove_container(const std::string& name) const;

    const ContainerOptions options_;
    const std::vector<std::string> program_;
    mutable std::mutex mutex_{};
    mutable std::map<std::string, Image>
        known_{};  ///< those that were found: for this program's life they stay what they were
};

/// One of them.
std::shared_ptr<const Launcher> podman_launcher(ContainerOptions options);
std::shared_ptr<const Launcher> docker_launcher(ContainerOptions options);

}  // namespace servetune
