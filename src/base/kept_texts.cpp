// SPDX-License-Identifier: Apache-2.0
#include "base/kept_texts.hpp"

#include "files.hpp"
#include "servetune/error.hpp"

#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace servetune {
namespace {

namespace fs = std::filesystem;

struct Kept {
    Texts texts;
    UnsetVariable unset;
};

/// By their paths. Made when it is first asked for: a program may read files before `main`.
struct Journals {
    std::mutex mutex{};
    std::map<std::string, Kept> kept{};
};
Journals& journals() {
    static Journals all;
    return all;
}

thread_local NoteTexts* innermost_notes = nullptr;

std::string normal_path(const fs::path& file) {
    return fs::absolute(file).lexically_normal().string();
}

/// A path below a journal.
struct TextPlace {
    std::string journal;
    std::string path;
    std::optional<std::string> text;  ///< nothing: the journal has no such file
    UnsetVariable unset;
};

std::optional<TextPlace> place_of(const fs::path& file) {
    const std::string path = normal_path(file);
    Journals& all = journals();
    const std::scoped_lock lock(all.mutex);
    for (const auto& [journal, kept] : all.kept) {
        if (!path.starts_with(journal + "/")) continue;
        TextPlace place{journal, path.substr(journal.size()), std::nullopt, kept.unset};
        if (const auto found = kept.texts.find(place.path); found != kept.texts.end())
            place.text = found->second;
        return place;
    }
    return std::nullopt;
}

}  // namespace

fs::path keep_texts(const fs::path& journal, Texts texts, UnsetVariable unset) {
    const std::string root = normal_path(journal);
    const auto study = texts.find(study_of_texts);
    if (study == texts.end() || !texts.contains(study->second))
        throw IoError("journal " + root + " does not keep its study; name the study's YAML file");
    fs::path result = root + study->second;
    Journals& all = journals();
    const std::scoped_lock lock(all.mutex);
    if (const auto known = all.kept.find(root);
        known == all.kept.end() || known->second.texts != texts)
        all.kept.insert_or_assign(root, Kept{std::move(texts), unset});
    return result;
}

bool keeps_unset_variables(const fs::path& file) {
    const auto place = place_of(file);
    return place && place->unset == UnsetVariable::stays;
}

bool is_kept_text(const fs::path& file) { return place_of(file).has_value(); }

std::string read_text(const fs::path& file) {
    const auto place = place_of(file);
    if (place && !place->text)
        throw IoError("journal " + place->journal + " does not keep " + place->path);
    std::string text = place ? *place->text : read_file(file);
    for (const NoteTexts* one = innermost_notes; one != nullptr; one = one->around_)
        one->note(place ? place->path : normal_path(file), text);
    return text;
}

bool text_exists(const fs::path& file) {
    std::error_code unknown;
    const auto place = place_of(file);
    return place ? place->text.has_value() : fs::exists(file, unknown);
}

fs::path on_disk(const fs::path& file) {
    const auto place = place_of(file);
    return place ? fs::path(place->path) : file;
}

fs::path beside(const fs::path& folder, const fs::path& name) {
    if (!name.is_absolute()) return folder / name;
    const auto place = place_of(folder / "file");
    return place ? fs::path(place->journal + name.string()) : name;
}

NoteTexts::NoteTexts(Texts& into, fs::path shipped)
    : into_(into), shipped_(normal_path(shipped)), around_(innermost_notes) {
    innermost_notes = this;
}

NoteTexts::~NoteTexts() { innermost_notes = around_; }

void NoteTexts::note(const std::string& path, const std::string& text) const {
    constexpr std::size_t most_of_a_text = 1U << 20U;
    const auto below = [&](const char* folder) {
        return path.starts_with((shipped_ / folder).string());
    };
    const bool everywhere = below("") && !below("studies/") && !below("published/");
    if (text.size() <= most_of_a_text && !everywhere) into_.insert_or_assign(path, text);
}

}  // namespace servetune
