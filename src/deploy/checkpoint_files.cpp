// SPDX-License-Identifier: Apache-2.0
#include "checkpoint_files.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

namespace servetune {
namespace {

namespace fs = std::filesystem;

std::string variable(const std::string& name,
                     const std::map<std::string, std::string>& environment) {
    if (const auto found = environment.find(name); found != environment.end()) return found->second;
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nobody sets it
    return value == nullptr ? "" : value;
}

/// `Qwen/Qwen3-8B` -> models--Qwen--Qwen3-8B, as huggingface_hub lays out its cache.
fs::path folder_of_hub_model(const std::string& model,
                             const std::map<std::string, std::string>& environment) {
    std::string name = "models--" + model;
    if (const auto slash = name.find('/'); slash != std::string::npos) name.replace(slash, 1, "--");
    return hub_cache_folder(environment) / name;
}

/// A line of a file: what changes when it is written or replaced.
std::string line_of_file(const fs::path& file) {
    struct stat now {};
    if (stat(file.c_str(), &now) != 0) return file.string() + ": not there\n";
    return file.string() + ": " + std::to_string(now.st_dev) + " " + std::to_string(now.st_ino) +
           " " + std::to_string(now.st_size) + " " + std::to_string(now.st_mtim.tv_sec) + "." +
           std::to_string(now.st_mtim.tv_nsec) + " " + std::to_string(now.st_ctim.tv_sec) + "." +
           std::to_string(now.st_ctim.tv_nsec) + "\n";
}

}  // namespace

fs::path hub_cache_folder(const std::map<std::string, std::string>& environment) {
    if (const std::string cache = variable("HF_HUB_CACHE", environment); !cache.empty())
        return cache;
    if (const std::string cache = variable("HUGGINGFACE_HUB_CACHE", environment); !cache.empty())
        return cache;
    return hub_home_folder(environment) / "hub";
}

fs::path hub_home_folder(const std::map<std::string, std::string>& environment) {
    if (const std::string home = variable("HF_HOME", environment); !home.empty()) return home;
    if (const std::string cache = variable("XDG_CACHE_HOME", environment); !cache.empty())
        return fs::path(cache) / "huggingface";
    return fs::path(variable("HOME", environment)) / ".cache/huggingface";
}

std::optional<Fingerprint> checkpoint_files(const std::string& model,
                                            const std::map<std::string, std::string>& environment) {
    std::error_code trouble;
    fs::path place = model;
    // A relative one would be looked for in the trial's folder by the engine: it is a name.
    if (!place.is_absolute()) place = folder_of_hub_model(model, environment);
    if (!fs::exists(place, trouble)) return std::nullopt;
    constexpr auto follow = fs::directory_options::skip_permission_denied |
                            fs::directory_options::follow_directory_symlink;
    constexpr std::size_t most_files = 100'000;  // links may go in circles
    std::set<std::string> lines;  // in an order of their own: a folder's is not always the same
    if (!fs::is_directory(place, trouble)) lines.insert(line_of_file(place));
    else
        for (fs::recursive_directory_iterator at(place, follow, trouble), end;
             !trouble && at != end; at.increment(trouble)) {
            std::error_code unreadable;
            if (!at->is_directory(unreadable)) lines.insert(line_of_file(at->path()));
            if (lines.size() > most_files) return std::nullopt;
        }
    if (trouble || lines.empty()) return std::nullopt;
    std::string all;
    for (const std::string& line : lines) all += line;
    return fingerprint_of(all);
}

}  // namespace servetune
