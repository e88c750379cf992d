// SPDX-License-Identifier: Apache-2.0
// Fields are those of the API reference of Kubernetes 1.31, where `podFailurePolicy` became stable.
#include "cluster_files.hpp"

#include "first_study.hpp"
#include "output.hpp"
#include "templates.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "base/variable_name.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/error.hpp"
#include "servetune/study_file.hpp"
#include "servetune/version.hpp"
#include "study_file/yaml.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace autotune {

using namespace servetune;

namespace {

namespace fs = std::filesystem;

/// Name and content.
using ClusterFiles = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view manifest_file = "servetune.yaml";
constexpr std::string_view first_line =
    "# Written by `autotune init --as kubernetes`";  // whoever finds it may replace the file

/// A text as the value of a key of a ConfigMap, line by line where it has nothing odd.
std::string block_text(const std::string& text) {
    const bool plain = !text.empty() && text.back() == '\n' && !text.ends_with("\n\n") &&
                       text.find_first_of("\r\t") == std::string::npos &&
                       std::none_of(text.begin(), text.end(), [](unsigned char c) {
                           return (c < ' ' && c != '\n') || c >= 0x7F;
                       });
    if (!plain) return " " + yaml_quoted(text);
    std::string result = " |2";
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        result += end == at ? "\n" : "\n    " + text.substr(at, end - at);
        at = end + 1;
    }
    return result;
}

/// The image of the run in an earlier manifest; empty: there is none.
std::string image_in(const std::string& manifest) {
    constexpr std::string_view key = "\n          image: ";
    const std::size_t at = manifest.rfind(key);  // the study's own pod stands before
    if (at == std::string::npos) return "";
    const std::size_t begin = at + key.size();
    return Yaml::parse(manifest.substr(begin, manifest.find('\n', begin) - begin),
                       std::string(manifest_file))
        .text();
}

/// Whether a name stands in a text as a word.
bool says_file(const std::string& text, const std::string& name) {
    const auto inside = [&](std::size_t at) {
        const auto c = static_cast<unsigned char>(text[at]);
        return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
    };
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
        if ((at == 0 || !inside(at - 1)) &&
            (at + name.size() == text.size() || !inside(at + name.size())))
            return true;
    return false;
}

}  // namespace

std::string cluster_name(const std::string& study) {
    constexpr std::size_t most =
        52;  // of 63 of a label: the Job's pods have a dash and five letters more, "-models" is the longest ending
    std::string result = "servetune-";
    for (const char c : study) {
        const bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        result += fits ? c : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : '-';
    }
    result = result.substr(0, most);
    while (result.ends_with('-')) result.pop_back();
    return result;
}

std::string pod_template_text(const std::string& name, const std::string& engine,
                              const std::string& image, const std::string& model) {
    const bool is_path = model.starts_with('/');
    return filled_yaml(pod_yaml_in,
                       {{{"name", name},
                         {"engine", engine},
                         {"image", image},
                         {"hub", is_path ? "/tmp" : "/models"},
                         {"mounted", is_path ? fs::path(model).parent_path().string() : "/models"},
                         {"is_path", is_path ? "yes" : ""}}});
}

namespace {

/// The study's file first, then those in its folder that it names, itself or through them.
ClusterFiles files_of_study(const fs::path& study) {
    constexpr std::size_t most_bytes = 1 << 20;  // of a ConfigMap (its reference)
    const fs::path folder = study.has_parent_path() ? study.parent_path() : fs::path(".");
    std::vector<fs::path> others;
    std::error_code unreadable;
    for (fs::directory_iterator at(folder, unreadable), end; !unreadable && at != end;
         at.increment(unreadable))
        if (std::error_code unknown; at->is_regular_file(unknown) &&
                                     at->path().filename() != study.filename() &&
                                     at->path().filename() != manifest_file)
            others.push_back(at->path());
    std::sort(others.begin(), others.end());
    ClusterFiles result{{study.filename().string(), read_file(study)}};
    for (std::size_t i = 0; i < result.size(); ++i)
        for (fs::path& other : others)
            if (!other.empty() && says_file(result[i].second, other.filename().string())) {
                result.emplace_back(other.filename().string(), read_file(other));
                other.clear();
            }
    std::size_t bytes = 0;
    for (const auto& [file, content] : result) {
        bytes += content.size();
        if (content.find('\0') != std::string::npos)
            throw UsageError(file +
                             " is no text, and goes into no ConfigMap: put it on a volume, and say "
                             "its path there");
        (void)utf8_text(content, file);
        if (file.find_first_not_of(
                "-._abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") !=
            std::string::npos)
            throw UsageError(
                "a ConfigMap takes letters, digits, '-', '_' and '.' in a file's name, and got '" +
                file + "': rename it");
    }
    if (bytes > most_bytes)
        throw UsageError(
            fmt::format("the study and the files that it names have {} bytes, and a ConfigMap "
                        "holds {}: put the largest on a "
                        "volume, and say its path there",
                        bytes, most_bytes));
    return result;
}

/// A ConfigMap shows its content to everybody who may look at the namespace.
void refuse_secrets(const ClusterFiles& files, const StudyFile& study) {
    const auto* deploy = std::get_if<DeployChoice>(&study.measuring);
    fs::path token;
    if (deploy != nullptr && deploy->wrapped)
        for (const std::string& named : deploy->wrapped->setting("token_file"))
            token = fs::path(named).filename();
    for (const auto& [file, content] : files)
        if (file == token ||
            (file != files.front().first && names_secret(fs::path(file).stem().string())) ||
            study.secrets(content) != content || secrets()(content) != content)
            throw UsageError(file +
                             " has a secret, and a ConfigMap hides none: put it into the Secret " +
                             cluster_name(study.name) +
                             ", and let the study take it from there (`${NAME}`, `token_env`)");
}

std::string manifest_of(const std::string& study, const std::string& image,
                        const ClusterFiles& files) {
    const std::string name = cluster_name(study);
    const std::string& config = files.front().first;
    const auto pod = [&](const char* container, const char* requests, const std::string& command) {
        return filled_yaml(autotune_pod_yaml_in, {{{"name", name},
                                                   {"container", container},
                                                   {"image", image},
                                                   {"requests", requests},
                                                   {"command", command}}});
    };
    TemplateValues values{
        {{"study", study},
         {"config", config},
         {"name", name},
         {"run", pod("autotune", "{cpu: \"1\", memory: 512Mi}",
                     "autotune, run, " + yaml_text("/study/" + config) +
                         ", --directory, /servetune/study, --view, \"127.0.0.1:8420\"")},
         {"page", pod("page", "{cpu: 100m, memory: 128Mi}",
                      "autotune, view, /servetune/study, --address, \"127.0.0.1:8420\"")},
         {"has_models", ""}}};
    for (const auto& [file, content] : files) {
        values.lists["files"].push_back({{{"file", file}, {"content", content}}});
        if (says_file(content, name + "-models")) values.texts["has_models"] = "yes";
    }
    return filled_yaml(servetune_yaml_in, values, {{"block", block_text}});
}

}  // namespace

std::string earlier_manifest(const fs::path& study, bool force) {
    const fs::path manifest = study.parent_path() / manifest_file;
    std::error_code unknown;
    if (!fs::exists(fs::symlink_status(manifest, unknown))) return "";
    const std::string text = fs::is_regular_file(manifest, unknown) ? read_file(manifest) : "";
    if (!text.starts_with(first_line)) {
        if (!force)
            throw UsageError(manifest.string() +
                             " is there already, and is not of this command; move it, or --force");
        return "";
    }
    if (text.find("\n# Change " + study.filename().string() + " ") == std::string::npos)
        throw UsageError(manifest.string() +
                         " runs another study of this folder: put each study into a folder of its "
                         "own (--output), or " +
                         "remove that file");
    return text;
}

void write_cluster_manifest(const fs::path& study, const std::string& image, bool force) {
    const fs::path manifest = study.parent_path() / manifest_file;
    const std::string before = earlier_manifest(study, force);
    const ClusterFiles files = files_of_study(study);
    std::string runs = image.empty() ? image_in(before) : image;
    if (runs.empty()) runs = "servetune:" + std::string(library_version);
    std::string now;
    // As the pod has them: alone.
    const OwnFolder alone(temporary_files() / "servetune-");
    for (const auto& [file, content] : files) write_file(alone.path() / file, content);
    const fs::path copy = alone.path() / study.filename();
    try {
        const StudySetup setup = set_up(load_study(copy, Catalogue::standard()));
        if (setup.file.starts_processes() && !setup.file.processes().launcher)
            throw UsageError(
                "its engines would start in the pod of autotune, whose image has none; say "
                "`evaluator: {deploy: {kubernetes: {template: pod.yaml}}}`");
        refuse_secrets(files, setup.file);
        now = manifest_of(setup.file.name, runs, files);
    } catch (const Error& error) {
        throw UsageError(
            manifest.string() + " was not written: " + study.string() +
            " cannot run in a cluster as it is: " + with_path(error.what(), copy, study));
    }
    const fs::path old = manifest.string() + ".old";
    const bool replaces = !before.empty() && before != now;
    if (replaces) write_file(old, before);  // a person may have changed it
    write_file(manifest, now);
    if (replaces) put(stdout, "what {} was is {} now\n", manifest.string(), old.string());
    std::vector<std::string> with;
    for (const auto& [file, content] : files) with.push_back(file);
    put(stdout, "wrote {} (with {})\nnext: {}, then {}\n", manifest.string(), fmt::join(with, ", "),
        Command{{"autotune", "validate", study.string()}}.text(),
        Command{{"kubectl", "apply", "-f", manifest.string()}}.text());
}

}  // namespace autotune
