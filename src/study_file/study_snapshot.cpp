// SPDX-License-Identifier: Apache-2.0
#include "study_snapshot.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"

#include <cstdlib>

namespace servetune {
namespace {

namespace fs = std::filesystem;

std::string normal_path(const fs::path& file) {
    return fs::absolute(file).lexically_normal().string();
}

}  // namespace

StudyText StudyText::kept_by(const fs::path& journal, std::map<std::string, std::string> texts) {
    const auto* study = entry_in(texts, study_of_texts);
    if (study == nullptr || !texts.contains(*study))
        throw IoError("journal " + journal.string() +
                      " does not keep its study; name the study's YAML file");
    StudyText result(*study);
    result.journal = normal_path(journal);
    result.kept = std::move(texts);
    return result;
}

StudySnapshot::StudySnapshot(StudyText text, const fs::path& shipped)
    : text_(std::move(text)),
      shipped_((fs::path(normal_path(shipped)) / "").string()),
      texts_{{study_of_texts, normal_path(text_.file)}} {}

bool StudySnapshot::is_outside(const fs::path& file) const {
    const char* folder = std::getenv("SERVETUNE_ONLY_IN");  // NOLINT(concurrency-mt-unsafe)
    std::error_code unknown;
    return folder != nullptr && !normal_path(file).starts_with(shipped_) &&
           !fs::weakly_canonical(file, unknown).string().starts_with(std::string(folder) + "/");
}

bool StudySnapshot::ships(const std::string& path) const {
    return path.starts_with(shipped_) && !path.starts_with(shipped_ + "studies/") &&
           !path.starts_with(shipped_ + "published/");
}

std::string StudySnapshot::read(const fs::path& file) {
    constexpr std::size_t most_of_a_text = 1U << 20U;
    const std::string path = normal_path(file);
    const std::scoped_lock lock(mutex_);
    if (const auto* known = entry_in(texts_, path)) return *known;
    const auto* kept = entry_in(text_.kept, path);
    if (kept == nullptr && !text_.journal.empty() && !ships(path))
        throw IoError("journal " + text_.journal.string() + " does not keep " + path);
    std::string text = kept != nullptr ? *kept : read_file(file);
    if (!ships(path) && text.size() <= most_of_a_text) texts_.emplace(path, text);
    return text;
}

bool StudySnapshot::has(const fs::path& file) const {
    std::error_code unknown;
    const std::string path = normal_path(file);
    return text_.kept.contains(path) || ((text_.journal.empty() || ships(path)) &&
                                         !is_outside(file) && fs::exists(file, unknown));
}

std::map<std::string, std::string> StudySnapshot::texts() const {
    const std::scoped_lock lock(mutex_);
    return texts_;
}

std::string StudySnapshot::name_of(const std::string& file) const {
    return !text_.journal.empty() && text_.kept.contains(normal_path(file))
               ? text_.journal.string() + normal_path(file)
               : file;
}

std::string read_text(const fs::path& file, const Snapshot& snapshot) {
    return snapshot ? snapshot->read(file) : read_file(file);
}

bool text_exists(const fs::path& file, const Snapshot& snapshot) {
    std::error_code unknown;
    return snapshot ? snapshot->has(file) : fs::exists(file, unknown);
}

}  // namespace servetune
