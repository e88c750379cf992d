// SPDX-License-Identifier: Apache-2.0
#include "cached_models.hpp"

#include "base/files.hpp"
#include "base/nesting.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <set>
#include <system_error>

namespace servetune {
namespace {

namespace fs = std::filesystem;
using CacheClock = std::chrono::steady_clock;

constexpr const char* gguf = ".gguf";

std::string variable(const std::string& name,
                     const std::map<std::string, std::string>& environment) {
    if (const auto* found = entry_in(environment, name)) return *found;
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

/// What a search may still look at.
class Allowance {
public:
    explicit Allowance(CacheSearch bounds)
        : entries_(bounds.entries), until_(CacheClock::now() + bounds.time) {}

    /// What is in a folder, by name; as much of it as is allowed.
    std::vector<fs::path> in(const fs::path& folder) {
        std::vector<fs::path> result;
        std::error_code trouble;
        for (fs::directory_iterator at(folder, trouble), end; !trouble && at != end && take();
             at.increment(trouble))
            result.push_back(at->path());
        sort(result);
        return result;
    }

private:
    bool take() {
        if (entries_ == 0 || CacheClock::now() > until_) return false;
        --entries_;
        return true;
    }

    std::size_t entries_;
    CacheClock::time_point until_;
};

/// Whether a file is there and, behind all links, below `root` (itself without links).
bool is_file_within(const fs::path& file, const fs::path& root) {
    std::error_code trouble;
    const fs::path real = fs::canonical(file, trouble);
    if (trouble || !fs::is_regular_file(real, trouble)) return false;
    return std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
}

/// The first bytes of a file within `root`; empty: there is none.
std::string small_text(const fs::path& file, const fs::path& root) {
    constexpr std::size_t most = 8UL
                                 << 20UL;  // a config.json has some KiB, one of mixed types 3 MiB
    if (!is_file_within(file, root)) return {};
    std::ifstream stream(file, std::ios::binary);
    std::string text(most, '\0');
    stream.read(text.data(), std::streamsize(most));
    text.resize(std::size_t(std::max<std::streamsize>(stream.gcount(), 0)));
    return text;
}

/// Whether a config.json is of a model that writes text, by the names that Transformers gives to
/// its classes.
bool writes_text(const std::string& config) {
    constexpr std::array<std::string_view, 3> endings{"ForCausalLM", "ForConditionalGeneration",
                                                      "LMHeadModel"};
    const auto object = shallow_json<nlohmann::json>(plain_json(config));
    if (!object.is_object()) return false;
    const auto classes = object.find("architectures");
    if (classes == object.end() || !classes->is_array()) return false;
    return any_of(*classes, [&](const nlohmann::json& one) {
        return one.is_string() && any_of(endings, [&](std::string_view ending) {
                   return one.get_ref<const std::string&>().ends_with(ending);
               });
    });
}

}  // namespace

std::optional<std::pair<std::string, std::size_t>> part_of_model(const std::string& stem) {
    const auto of = stem.rfind("-of-");
    const auto number = of == std::string::npos ? of : stem.rfind('-', of - 1);
    if (of == std::string::npos || of == 0 || number == std::string::npos) return std::nullopt;
    const std::string count = stem.substr(of + 4);
    const std::string own = stem.substr(number + 1, of - number - 1);
    const auto digits = [](const std::string& text) {
        return !text.empty() && text.size() < 7 &&
               text.find_first_not_of("0123456789") == std::string::npos;
    };
    if (!digits(count) || !digits(own)) return std::nullopt;
    return std::pair(stem.substr(0, number), std::size_t(std::stoul(count)));
}

namespace {

/// The files of a kind that are whole: of one in parts the first part, where all are there.
std::vector<fs::path> whole_files(const std::vector<fs::path>& files, const std::string& ending,
                                  const fs::path& root) {
    std::vector<fs::path> result;
    std::map<std::pair<std::string, std::size_t>, std::vector<fs::path>> parts;
    for (const fs::path& file : files) {
        if (file.extension() != ending || !is_file_within(file, root)) continue;
        if (const auto part = part_of_model(file.stem().string())) parts[*part].push_back(file);
        else result.push_back(file);
    }
    for (const auto& [part, all] : parts)
        if (all.size() == part.second) result.push_back(all.front());
    return result;
}

/// Others have only what reads pictures (`mmproj-...`, llama.cpp's docs/multimodal.md).
bool is_language_model(const fs::path& file) {
    return !contains(file.filename().string(), "mmproj");
}

/// Newest first, by the time at which `of` was written.
template <class Of>
void newest_first(std::vector<CachedModel>& models, const Of& of) {
    std::map<std::string, fs::file_time_type> times;
    for (const CachedModel& model : models) {
        std::error_code unknown;
        const auto time = fs::last_write_time(of(model), unknown);
        times[model.name] = unknown ? fs::file_time_type::min() : time;
    }
    stable_sort(models, [&](const CachedModel& a, const CachedModel& b) {
        return times[a.name] > times[b.name];
    });
}

/// The folder of a pattern, with `$NAME` and `~` at its start filled in; nothing where the variable
/// is not set.
std::optional<fs::path> folder_of_pattern(const fs::path& pattern) {
    const std::string folder = pattern.parent_path().string();
    if (folder.empty()) return ".";
    if (folder.front() != '$') {
        try {
            return with_home(folder);
        } catch (const IoError&) {
            return std::nullopt;
        }
    }
    const auto slash = folder.find('/');
    const fs::path value = variable(folder.substr(1, slash - 1), {});
    if (value.empty()) return std::nullopt;
    return slash == std::string::npos ? value : value / folder.substr(slash + 1);
}

/// The files of a folder itself that a pattern names.
std::vector<CachedModel> files_of(const fs::path& pattern, Allowance& allowance) {
    std::vector<CachedModel> result;
    std::error_code trouble;
    const auto folder = folder_of_pattern(pattern);
    const fs::path root = folder ? fs::canonical(*folder, trouble) : fs::path();
    if (!folder || trouble) return result;
    const std::string ending = pattern.extension().string();
    for (const fs::path& file : whole_files(allowance.in(root), ending, root))
        if (is_language_model(file))
            result.push_back({file.string(), "in " + root.string(), ending});
    newest_first(result, [](const CachedModel& model) { return model.name; });
    return result;
}

/// The folder of a hub model's files: the snapshot of `refs/main`, else of its first reference.
fs::path snapshot_in(const fs::path& model, const fs::path& root, Allowance& allowance) {
    std::vector<fs::path> references{model / "refs/main"};
    for (fs::path& other : allowance.in(model / "refs")) references.push_back(std::move(other));
    for (const fs::path& reference : references) {
        std::string commit = small_text(reference, root);
        while (!commit.empty() && commit.back() == '\n') commit.pop_back();
        if (commit.empty() || commit.find_first_not_of("0123456789abcdef") != std::string::npos)
            continue;
        return model / "snapshots" / commit;
    }
    return {};
}

/// huggingface_hub, "Understand caching": models--ORG--NAME/{refs,snapshots,blobs}.
std::vector<CachedModel> models_of_hub(Allowance& allowance) {
    constexpr const char* where = "the hub's cache";
    std::vector<CachedModel> result;
    std::error_code trouble;
    const fs::path root = fs::canonical(hub_cache_folder(), trouble);
    if (trouble) return result;
    std::map<std::string, fs::path> snapshots;
    for (const fs::path& folder : allowance.in(root)) {
        constexpr std::string_view before = "models--";
        std::string name = folder.filename().string();
        if (!name.starts_with(before)) continue;
        name.erase(0, before.size());
        if (const auto dashes = name.find("--"); dashes != std::string::npos)
            name.replace(dashes, 2, "/");
        const fs::path snapshot = snapshot_in(folder, root, allowance);
        if (snapshot.empty()) continue;
        const std::vector<fs::path> files = allowance.in(snapshot);
        const bool weights = !whole_files(files, ".safetensors", root).empty() ||
                             !whole_files(files, ".bin", root).empty();
        if (weights && writes_text(small_text(snapshot / "config.json", root))) {
            result.push_back({name, where});
            snapshots[name] = snapshot;
            continue;
        }
        for (const fs::path& file : whole_files(files, gguf, root)) {
            if (!is_language_model(file)) continue;
            result.push_back({file.string(), where, gguf});
            snapshots[file.string()] = snapshot;
        }
    }
    newest_first(result, [&](const CachedModel& model) { return snapshots[model.name]; });
    return result;
}

}  // namespace

std::vector<CachedModel> cached_models(const std::vector<std::string>& files, CacheSearch bounds) {
    Allowance allowance(bounds);
    std::vector<CachedModel> result;
    const auto add = [&](std::vector<CachedModel> more) {
        for (CachedModel& one : more)  // two patterns may name one folder
            if (none_of(result, [&](const CachedModel& other) { return other.name == one.name; }))
                result.push_back(std::move(one));
    };
    for (const std::string& pattern : files) add(files_of(pattern, allowance));
    add(models_of_hub(allowance));
    return result;
}

fs::path hub_snapshot(const std::string& model) {
    Allowance allowance({});
    std::error_code trouble;
    const fs::path root = fs::canonical(hub_cache_folder(), trouble);
    return trouble ? fs::path() : snapshot_in(folder_of_hub_model(model, {}), root, allowance);
}

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
