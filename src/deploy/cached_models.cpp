// SPDX-License-Identifier: Apache-2.0
#include "cached_models.hpp"

#include "base/files.hpp"
#include "base/nesting.hpp"
#include "checkpoint_files.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

namespace servetune {
namespace {

namespace fs = std::filesystem;
using CacheClock = std::chrono::steady_clock;

constexpr const char* gguf = ".gguf";

fs::path folder_variable(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
    return fs::path(value == nullptr ? "" : value);
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
        std::sort(result.begin(), result.end());
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
    constexpr std::size_t most = 256UL << 10UL;  // a config.json has some KiB
    if (!is_file_within(file, root)) return {};
    std::ifstream stream(file, std::ios::binary);
    std::string text(most, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(most));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
    return text;
}

/// Whether a config.json is of a model that writes text, by the names that Transformers gives to
/// its classes.
bool writes_text(const std::string& config) {
    constexpr std::array<std::string_view, 3> endings{"ForCausalLM", "ForConditionalGeneration",
                                                      "LMHeadModel"};
    const auto object = shallow_json<nlohmann::json>(config);
    if (!object.is_object()) return false;
    const auto classes = object.find("architectures");
    if (classes == object.end() || !classes->is_array()) return false;
    return std::any_of(classes->begin(), classes->end(), [&](const nlohmann::json& one) {
        return one.is_string() &&
               std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) {
                   return one.get_ref<const std::string&>().ends_with(ending);
               });
    });
}

/// Of `model-00001-of-00004.safetensors` how many there are to be, and the name without its number.
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
    return std::pair(stem.substr(0, number), static_cast<std::size_t>(std::stoul(count)));
}

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
    return file.filename().string().find("mmproj") == std::string::npos;
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
    std::stable_sort(models.begin(), models.end(), [&](const CachedModel& a, const CachedModel& b) {
        return times[a.name] > times[b.name];
    });
}

void add_all(std::vector<CachedModel>& to, std::vector<CachedModel> more) {
    for (CachedModel& one : more) to.push_back(std::move(one));
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
    const fs::path value = folder_variable(folder.substr(1, slash - 1).c_str());
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

/// ModelScope's cache: models/ORG/NAME below its folder, in older versions ORG/NAME.
std::vector<CachedModel> models_of_modelscope(Allowance& allowance) {
    std::vector<CachedModel> result;
    fs::path home = folder_variable("MODELSCOPE_CACHE");
    if (home.empty()) home = folder_variable("HOME") / ".cache/modelscope";
    for (const char* below : {"hub/models", "models", "hub"}) {
        std::error_code trouble;
        const fs::path root = fs::canonical(home / below, trouble);
        if (trouble) continue;
        for (const fs::path& organization : allowance.in(root)) {
            if (fs::is_symlink(organization, trouble) || organization.filename() == "models")
                continue;
            for (const fs::path& folder : allowance.in(organization)) {
                if (fs::is_symlink(folder, trouble))
                    continue;  // the name with dots; the folder has ___ for each
                const bool weights =
                    !whole_files(allowance.in(folder), ".safetensors", root).empty();
                if (weights && writes_text(small_text(folder / "config.json", root)))
                    result.push_back({folder.string(), "ModelScope's cache"});
            }
        }
    }
    newest_first(result, [](const CachedModel& model) { return model.name; });
    return result;
}

/// The file with the weights that a manifest of Ollama names: blobs/sha256-...; empty: none is
/// there.
fs::path weights_of_manifest(const std::string& text, const fs::path& root) {
    const auto manifest = shallow_json<nlohmann::json>(text);
    const auto layers = manifest.is_object() ? manifest.find("layers") : manifest.end();
    if (!manifest.is_object() || layers == manifest.end() || !layers->is_array()) return {};
    for (const nlohmann::json& layer : *layers) {
        if (!layer.is_object() ||
            layer.value("mediaType", nlohmann::json()) != "application/vnd.ollama.image.model")
            continue;
        const nlohmann::json digest = layer.value("digest", nlohmann::json());
        if (!digest.is_string()) continue;
        std::string name = digest.get<std::string>();
        if (const auto colon = name.find(':'); colon != std::string::npos) name[colon] = '-';
        if (name.find('/') != std::string::npos) continue;
        if (const fs::path file = root / "blobs" / name; is_file_within(file, root)) return file;
    }
    return {};
}

/// Ollama's models: manifests/HOST/NAMESPACE/NAME/TAG and blobs (its server/manifest.go).
std::vector<CachedModel> models_of_ollama(Allowance& allowance) {
    std::vector<CachedModel> result;
    fs::path home = folder_variable("OLLAMA_MODELS");
    if (home.empty()) home = folder_variable("HOME") / ".ollama/models";
    std::error_code trouble;
    const fs::path root = fs::canonical(home, trouble);
    if (trouble) return result;
    for (const fs::path& host : allowance.in(root / "manifests"))
        for (const fs::path& space : allowance.in(host))
            for (const fs::path& name : allowance.in(space))
                for (const fs::path& tag : allowance.in(name))
                    if (const fs::path file = weights_of_manifest(small_text(tag, root), root);
                        !file.empty())
                        result.push_back(
                            {file.string(),
                             "Ollama: " + name.filename().string() + ":" + tag.filename().string(),
                             gguf});
    newest_first(result, [](const CachedModel& model) { return model.name; });
    return result;
}

}  // namespace

std::vector<CachedModel> cached_models(const std::vector<std::string>& files, CacheSearch bounds) {
    Allowance allowance(bounds);
    std::vector<CachedModel> result;
    for (const std::string& pattern : files) add_all(result, files_of(pattern, allowance));
    for (const auto& look : {models_of_hub, models_of_modelscope, models_of_ollama})
        add_all(result, look(allowance));
    std::vector<CachedModel> once;  // two patterns may name one folder
    for (CachedModel& one : result)
        if (std::none_of(once.begin(), once.end(),
                         [&](const CachedModel& other) { return other.name == one.name; }))
            once.push_back(std::move(one));
    return once;
}

}  // namespace servetune
