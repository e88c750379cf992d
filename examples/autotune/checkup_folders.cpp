// SPDX-License-Identifier: Apache-2.0
#include "checkup.hpp"

#include "base/cache_folder.hpp"
#include "deploy/cached_models.hpp"
#include "deploy/checkpoint_files.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "study/study_cache.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace autotune {

using namespace servetune;
using State = Checkup::State;
namespace fs = std::filesystem;

namespace {

constexpr double bytes_of_mib = 1UL << 20UL;
constexpr double gib_bytes = 1UL << 30UL;

bool variable_is_set(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
    return value != nullptr && *value != '\0';
}

/// The folder, or the nearest one above it that is there.
fs::path nearest_there(fs::path folder) {
    std::error_code unknown;
    while (!folder.empty() && folder != folder.root_path() && !fs::is_directory(folder, unknown))
        folder = folder.parent_path();
    return folder.empty() ? fs::path("/") : folder;
}

/// Bytes that this user may still write there; nothing where that is not told.
std::optional<double> free_bytes(const fs::path& folder) {
    struct statvfs disk {};
    if (statvfs(folder.c_str(), &disk) != 0) return std::nullopt;
    return static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
}

std::string free_text(const std::optional<double>& bytes) {
    return bytes ? fixed_text(*bytes / gib_bytes, 1) + " GiB free" : "free space not told";
}

/// Why nothing can be written there; empty: it can.
std::string why_not_writable(const fs::path& folder) {
    return access(folder.c_str(), W_OK | X_OK) == 0 ? "" : std::generic_category().message(errno);
}

/// The file system of a folder that other machines have too, by its number in Linux' statfs(2) and
/// linux/magic.h; empty: it is none of these.
std::string network_system(const fs::path& folder) {
    constexpr std::array<std::pair<std::uint32_t, const char*>, 8> known{{{0x6969, "NFS"},
                                                                          {0xFE534D42, "SMB"},
                                                                          {0xFF534D42, "CIFS"},
                                                                          {0x01021997, "9p"},
                                                                          {0x0BD00BD0, "Lustre"},
                                                                          {0x00C36400, "Ceph"},
                                                                          {0x5346414F, "AFS"},
                                                                          {0x47504653, "GPFS"}}};
    struct statfs system {};
    if (statfs(folder.c_str(), &system) != 0) return {};
    const auto found = std::find_if(known.begin(), known.end(), [&](const auto& one) {
        return one.first == static_cast<std::uint32_t>(system.f_type);
    });
    return found == known.end() ? "" : found->second;
}

/// Where `run` writes journal, logs and report.
Checkup this_folder() {
    std::error_code unknown;
    const fs::path folder = fs::current_path(unknown);
    const auto bytes = free_bytes(folder);
    const std::string found = folder.string() + ", " + free_text(bytes);
    const std::string other = "go to another folder, or give one to `run` with --directory";
    if (const std::string why = why_not_writable(folder); unknown || !why.empty())
        return {"this folder", State::stops,
                found + ": cannot be written: " + (unknown ? unknown.message() : why), other};
    // A log has at most 16 MiB a trial.
    constexpr double a_journal = 16 * bytes_of_mib, with_logs = gib_bytes;
    if (bytes.value_or(with_logs) < a_journal)
        return {"this folder", State::stops, found + ": a study would not fit", other};
    // SQLite, "Write-Ahead Logging", 2.: all processes must be on one machine.
    if (const std::string shared = network_system(folder); !shared.empty())
        return {"this folder", State::worth_knowing,
                found + ", on " + shared +
                    ": a journal can only be read on the machine that writes it, and needs locks "
                    "that work",
                "a folder of a local disk: --directory"};
    if (bytes.value_or(with_logs) < with_logs)
        return {"this folder", State::worth_knowing,
                found + ": the logs of a long study may not fit", other};
    return {"this folder", State::fine, found};
}

Checkup files_for_a_while() {
    std::error_code trouble;
    const fs::path folder = fs::temp_directory_path(trouble);
    const std::string why = trouble ? trouble.message() : why_not_writable(folder);
    if (why.empty())
        return {"temporary files", State::fine,
                folder.string() + ", " + free_text(free_bytes(folder))};
    return {"temporary files", State::worth_knowing,
            "cannot be written (" + why + "): journals that may not be written cannot be read",
            "set TMPDIR to a folder that can be written"};
}

Checkup study_cache() {
    const fs::path folder = StudyCache::users();
    const std::string remedy = "set SERVETUNE_CACHE to a folder that can be written";
    if (folder.empty())
        return {"study cache", State::worth_knowing,
                "there is no home: finished studies and engines' help are not kept", remedy};
    if (const std::string why = why_not_writable(nearest_there(folder)); !why.empty())
        return {"study cache", State::worth_knowing,
                folder.string() + " cannot be written (" + why + "): finished studies are not kept",
                remedy};
    std::error_code none;
    const auto files =
        std::count_if(fs::directory_iterator(folder, none), fs::directory_iterator(),
                      [](const auto& entry) { return entry.path().extension() == ".db"; });
    return {"study cache", State::fine, fmt::format("{}, {} studies", folder.string(), files)};
}

Checkup model_cache(const Catalogue& catalogue) {
    const fs::path folder = hub_cache_folder();
    const auto bytes = free_bytes(nearest_there(folder));
    std::vector<std::string> files;
    for (const Engine& engine : catalogue.engines())
        files.insert(files.end(), engine.model_files.begin(), engine.model_files.end());
    const std::string found =
        fmt::format("{}, {}, {} here and in other caches", folder.string(), free_text(bytes),
                    counted_text(cached_models(files).size(), "model"));
    const std::string why = why_not_writable(nearest_there(folder));
    const std::string remedy = "set HF_HOME to a folder of a large disk that can be written";
    if (!why.empty())
        return {"model cache", State::worth_knowing, found + "; it cannot be written (" + why + ")",
                remedy};
    constexpr double a_model = 20 * gib_bytes;  // 8e9 parameters of two bytes, and room
    if (bytes.value_or(a_model) < a_model)
        return {"model cache", State::worth_knowing,
                found + ": less than a model of 8e9 parameters needs", remedy};
    return {"model cache", State::fine, found};
}

/// Whether there is a token of the hub; its value is not read.
Checkup hub_token() {
    const std::string untried = "; the hub was not asked";
    for (const char* offline : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"})
        if (variable_is_set(offline))
            return {"hub", State::worth_knowing,
                    std::string(offline) + " is set: engines fetch no model",
                    "unset it to fetch models"};
    std::error_code none;
    const char* named = std::getenv("HF_TOKEN_PATH");  // NOLINT(concurrency-mt-unsafe)
    const fs::path file = named != nullptr ? fs::path(named) : hub_home_folder() / "token";
    for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
        if (variable_is_set(name))
            return {"hub", State::fine,
                    std::string("a token in ") + name +
                        ": gated models work where its account has access" + untried};
    if (fs::is_regular_file(file, none))
        return {"hub", State::fine,
                "a token in " + file.string() + ": gated models work where its account has access" +
                    untried};
    return {"hub", State::worth_knowing,
            "no token: gated models (Llama, Gemma) cannot be fetched" + untried,
            "hf auth login, or set HF_TOKEN"};
}

}  // namespace

std::vector<Checkup> checkups_of_folders(const Catalogue& catalogue) {
    return {this_folder(), files_for_a_while(), study_cache(), model_cache(catalogue), hub_token()};
}

}  // namespace autotune
