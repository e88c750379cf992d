// SPDX-License-Identifier: Apache-2.0
#include "kept_help.hpp"

#include "base/files.hpp"
#include "host/start_program.hpp"
#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace servetune {
namespace {

namespace fs = std::filesystem;

/// Path, size and modification time. Links are followed: a new version may be a new link.
void add_state(const fs::path& path, std::string& to) {
    std::error_code unknown;
    const fs::path real = fs::canonical(path, unknown);
    const auto written = fs::last_write_time(path, unknown);
    const auto size = fs::is_regular_file(path, unknown) ? fs::file_size(path, unknown) : 0;
    to += fmt::format("{} {} {} {}\n", path.string(), real.string(), size, written.time_since_epoch().count());
}

/// The program that `#!` of a script names, with what it is to run; empty: it is no script.
fs::path interpreter_of(const fs::path& program) {
    std::ifstream file(program, std::ios::binary);
    std::string line;
    if (file.get() != '#' || file.get() != '!' || !std::getline(file, line) || line.size() > 4096) return {};
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (std::string second; fs::path(first).filename() == "env" && words >> second) return find_program(second);
    return first;
}

/// The folders of a Python environment get a new time when a package is installed, upgraded or
/// removed.
void add_packages(const fs::path& program, std::string& to) {
    std::error_code unknown;
    const fs::path libraries = program.parent_path().parent_path() / "lib";
    for (const auto& entry : fs::directory_iterator(libraries, unknown))
        if (entry.path().filename().string().starts_with("python"))
            for (const char* packages : {"site-packages", "dist-packages"}) add_state(entry.path() / packages, to);
}

}  // namespace

fs::path KeptHelp::users() {
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return fs::path(value == nullptr ? "" : value);
    };
    const fs::path caches = variable("XDG_CACHE_HOME");
    if (caches.is_absolute()) return caches / "servetune/help";
    const fs::path home = variable("HOME");
    return home.is_absolute() ? home / ".cache/servetune/help" : fs::path();
}

fs::path KeptHelp::file_of(const std::vector<std::string>& argv) const {
    std::string state;
    for (const std::string& word : argv) state += word + '\n';
    for (const fs::path& program : {fs::path(argv.front()), interpreter_of(argv.front())}) {
        if (program.empty()) continue;
        add_state(program, state);
        add_packages(program, state);
    }
    for (const char* name : {"PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME"})
        if (const char* value = std::getenv(name)) {
            state += fmt::format("{}={}\n", name, value);
            if (fs::path(value).is_absolute()) add_state(value, state);
        }
    return folder_ / (fingerprint_of(state).text() + ".txt");
}

std::optional<std::string> KeptHelp::find(const std::vector<std::string>& argv) const {
    if (folder_.empty()) return std::nullopt;
    try {
        const fs::path file = file_of(argv);
        std::error_code unknown;
        if (!fs::is_regular_file(file, unknown)) return std::nullopt;
        return read_file(file);
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

void KeptHelp::keep(const std::vector<std::string>& argv, const std::string& text) const {
    if (folder_.empty()) return;
    try {
        fs::create_directories(folder_);
        write_file(file_of(argv), text);
    } catch (const std::exception&) {  // a full disk, a home that cannot be written: it is asked again
    }
}

}  // namespace servetune
