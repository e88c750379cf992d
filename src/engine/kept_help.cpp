// SPDX-License-Identifier: Apache-2.0
#include "kept_help.hpp"

#include "base/cache_folder.hpp"
#include "base/files.hpp"
#include "installed_version.hpp"
#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace servetune {
namespace {

namespace fs = std::filesystem;

/// Path, size and modification time. Links are followed: a new version may be a new link.
void add_state(const fs::path& path, std::string& to) {
    std::error_code unknown;
    const fs::path real = fs::canonical(path, unknown);
    const auto written = fs::last_write_time(path, unknown);
    const auto size = fs::is_regular_file(path, unknown) ? fs::file_size(path, unknown) : 0;
    to += fmt::format("{} {} {} {}\n", path.string(), real.string(), size,
                      written.time_since_epoch().count());
}

/// The folders of a Python environment get a new time when a package is installed, upgraded or
/// removed.
void add_packages(const fs::path& program, std::string& to) {
    for (const fs::path& folder : package_folders(program)) add_state(folder, to);
}

}  // namespace

fs::path KeptHelp::users() {
    const fs::path folder = cache_folder();
    return folder.empty() ? folder : folder / "help";
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
    } catch (
        const std::exception&) {  // a full disk, a home that cannot be written: it is asked again
    }
}

}  // namespace servetune
