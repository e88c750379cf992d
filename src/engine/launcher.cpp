// SPDX-License-Identifier: Apache-2.0
#include "launcher.hpp"

#include "base/text.hpp"
#include "host/start_program.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <sys/stat.h>

#include <ctime>
#include <fstream>

namespace servetune {
namespace {

bool same_program(std::string_view a, std::string_view b) {
    a = program_name(a);
    b = program_name(b);
    return a == b || (a.starts_with("python") && b.starts_with("python"));
}

bool begins_at(const std::vector<std::string>& words, std::size_t at,
               const std::vector<std::string>& start) {
    if (start.empty() || at + start.size() > words.size() ||
        !same_program(words[at], start.front()))
        return false;
    return std::equal(start.begin() + 1, start.end(), words.begin() + std::ptrdiff_t(at) + 1);
}

}  // namespace

std::vector<std::string> launcher_words(const Engine& engine) {
    std::vector<std::string> result;
    for (const std::string& word : engine.launch) {
        if (contains(word, '{') || word.starts_with("--")) break;
        result.push_back(word);
    }
    if (!result.empty() && result.back().starts_with('-'))
        result.pop_back();  // the flag that takes the first blank
    return result;
}

Launched launched_at(std::span<const Engine> engines, const std::vector<std::string>& words,
                     std::size_t at) {
    Launched result;
    for (const Engine& engine : engines) {
        const auto consider = [&](const std::vector<std::string>& start) {
            if (start.size() > result.words && begins_at(words, at, start))
                result = {&engine, start.size()};
        };
        consider(launcher_words(engine));
        for (const std::vector<std::string>& start : engine.started_as) consider(start);
    }
    return result;
}

const Engine* engine_of_image(std::span<const Engine> engines, std::string_view word) {
    for (const Engine& engine : engines)
        for (const std::string& image : engine.images) {
            const auto at = word.find(image);
            if (at == npos || (at > 0 && word[at - 1] != '/')) continue;
            const std::size_t behind = at + image.size();
            const bool has_tag = contains(image, ':');
            if (behind == word.size() || word[behind] == '@' ||
                word[behind] == (has_tag ? '-' : ':'))
                return &engine;
        }
    return nullptr;
}
namespace {

namespace fs = std::filesystem;

/// By the name of the folder `NAME-VERSION.dist-info` (Python Packaging User Guide, recording
/// installed projects); of several the greatest, as text. Empty: there is none.
std::string version_of_package(const fs::path& folder, const std::string& package) {
    constexpr std::string_view ending = ".dist-info";
    std::string result;
    std::error_code unknown;
    for (const auto& entry : fs::directory_iterator(folder, unknown)) {
        const std::string name = entry.path().filename().string();
        const auto dash = name.find('-');
        if (dash == npos || !name.ends_with(ending) || lower_case(name.substr(0, dash)) != package)
            continue;
        const auto from = dash + 1;
        if (name.size() > from + ending.size())
            result = std::max(result, name.substr(from, name.size() - from - ending.size()));
    }
    return result;
}

/// `python3 -m MODULE`: the interpreter says nothing of its modules.
bool is_module(const std::vector<std::string>& launch) {
    return launch.size() > 2 && launch[1] == "-m";
}

/// Empty: it is not there.
std::string stamp_of_program(const fs::path& program) {
    struct stat there {};
    std::tm written{};
    if (stat(program.c_str(), &there) != 0 || gmtime_r(&there.st_mtim.tv_sec, &written) == nullptr)
        return "";
    return fmt::format("{} bytes of {:%Y-%m-%d %H:%M:%S} UTC", there.st_size, written);
}

}  // namespace

fs::path interpreter_of(const fs::path& program) {
    std::ifstream file(program, std::ios::binary);
    std::string line;
    if (file.get() != '#' || file.get() != '!' || !std::getline(file, line) || line.size() > 4096)
        return {};
    const std::vector<std::string> words = words_of(line);
    if (words.size() > 1 && fs::path(words[0]).filename() == "env") return find_program(words[1]);
    return words.empty() ? "" : words[0];
}

std::vector<fs::path> package_folders(const fs::path& program) {
    std::vector<fs::path> result;
    std::error_code unknown;
    const fs::path libraries = program.parent_path().parent_path() / "lib";
    for (const auto& entry : fs::directory_iterator(libraries, unknown))
        if (entry.path().filename().string().starts_with("python"))
            for (const char* packages : {"site-packages", "dist-packages"})
                if (fs::is_directory(entry.path() / packages, unknown))
                    result.push_back(entry.path() / packages);
    return result;
}

std::string installed_version(const std::vector<std::string>& launch, const std::string& path) {
    const fs::path program = launch.empty() ? fs::path() : find_program(launch.front(), path);
    if (program.empty()) return "";
    std::string package = lower_case(is_module(launch) ? launch[2].substr(0, launch[2].find('.'))
                                                       : program.filename().string());
    std::replace(package.begin(), package.end(), '-', '_');
    for (const fs::path& place : {program, interpreter_of(program)})
        for (const fs::path& folder : package_folders(place))
            if (const std::string version = version_of_package(folder, package); !version.empty())
                return version;
    return "";
}

std::string version_or_stamp(const std::vector<std::string>& launch, const std::string& path) {
    const std::string version = installed_version(launch, path);
    if (!version.empty() || launch.empty() || is_module(launch)) return version;
    return stamp_of_program(find_program(launch.front(), path));
}

}  // namespace servetune
