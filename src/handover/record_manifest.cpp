// SPDX-License-Identifier: Apache-2.0
#include "study_record.hpp"

#include "base/files.hpp"
#include "base/nesting.hpp"
#include "base/sha256.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <set>
#include <string_view>
#include <system_error>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::uintmax_t largest_manifest = std::uintmax_t{1} << 22U;
constexpr std::uintmax_t largest_file = std::uintmax_t{1} << 30U;
constexpr std::uintmax_t largest_record = std::uintmax_t{1} << 32U;
constexpr std::size_t most_files = 20'000;
constexpr std::size_t longest_path = 200;

/// What is wrong with the path of a file; empty: nothing.
std::string wrong_with_path(const std::string& path) {
    constexpr std::string_view others = "._-+/";
    const bool plain = all_of(path, [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               contains(others, c);
    });
    if (path.empty() || path.size() > longest_path)
        return "a path of 1 to " + std::to_string(longest_path) + " characters wanted";
    if (!plain) return "only letters, digits and . _ - + / are allowed in a path";
    const std::string whole = "/" + path + "/";
    for (const char* leads_away : {"//", "/./", "/../"})
        if (contains(whole, leads_away)) return "it is not a path within the record";
    return "";
}

bool is_sha256(const std::string& text) {
    return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// Everything below a folder that is no folder, by path, with its kind; no link is followed.
std::map<std::string, fs::file_type> entries_of(const fs::path& folder) {
    std::map<std::string, fs::file_type> result;
    std::size_t entries = 0;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
        const fs::file_type type = entry.symlink_status().type();
        if (type != fs::file_type::directory)
            result.emplace(entry.path().lexically_relative(folder).generic_string(), type);
        if (++entries > 2 * most_files)
            throw ParseError(folder.string() + ": more than " + std::to_string(2 * most_files) +
                             " files and folders are no record");
    }
    return result;
}

}  // namespace

bool is_record(const fs::path& folder) {
    std::error_code unknown;
    return fs::is_directory(folder, unknown) &&
           fs::exists(fs::symlink_status(folder / manifest_name, unknown));
}

bool RecordManifest::of_study() const {
    return any_of(files, [](const File& file) { return file.path == "study.db"; });
}

void write_manifest(const fs::path& folder) {
    OrderedJson object{{"servetune_record", 1}, {"files", OrderedJson::array()}};
    for (const auto& [path, type] : entries_of(folder))
        if (path != manifest_name)
            object["files"].push_back({{"path", path},
                                       {"bytes", fs::file_size(folder / path)},
                                       {"sha256", sha256_of_file(folder / path)}});
    write_file(folder / manifest_name,
               object.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
}

RecordManifest read_manifest(const fs::path& folder) {
    const fs::path file = folder / manifest_name;
    std::error_code unknown;
    if (fs::symlink_status(file, unknown).type() != fs::file_type::regular)
        throw ParseError(file.string() + " is no file of its own");
    if (fs::file_size(file, unknown) > largest_manifest || unknown)
        throw ParseError(file.string() + " has more than " + std::to_string(largest_manifest) +
                         " bytes: it is not read");
    RecordManifest result;
    try {
        const auto object = OrderedJson::parse(read_file(file), RefuseDeepAndTwice());
        if (object.at("servetune_record").get<int>() != 1)
            throw ParseError("a record of a later version");
        std::set<std::string> seen;
        for (const OrderedJson& one : object.at("files")) {
            RecordManifest::File& listed = result.files.emplace_back();
            one.at("path").get_to(listed.path);
            one.at("bytes").get_to(listed.bytes);
            one.at("sha256").get_to(listed.sha256);
            if (const std::string wrong = wrong_with_path(listed.path); !wrong.empty())
                throw ParseError("it names '" + listed.path + "': " + wrong);
            if (listed.path == manifest_name || !seen.insert(listed.path).second)
                throw ParseError("it names '" + listed.path + "' twice, or itself");
            if (!is_sha256(listed.sha256))
                throw ParseError("'" + listed.path + "' has no SHA-256 of 64 digits");
        }
        if (result.files.size() > most_files)
            throw ParseError("more than " + std::to_string(most_files) + " files");
    } catch (const std::exception& error) {
        throw ParseError(file.string() + " is no manifest of a record: " + error.what());
    }
    return result;
}

std::vector<std::string> tampered_files(const fs::path& folder, const RecordManifest& manifest) {
    std::vector<std::string> result;
    const std::map<std::string, fs::file_type> here = entries_of(folder);
    std::set<std::string> listed{manifest_name};
    for (const RecordManifest::File& file : manifest.files) listed.insert(file.path);
    for (const auto& [path, type] : here) {
        if (type == fs::file_type::symlink)
            result.push_back(path + " is a symbolic link: a record has none");
        else if (type != fs::file_type::regular)
            result.push_back(path + " is neither a file nor a folder");
        else if (!listed.contains(path))
            result.push_back(path + " is not in the manifest: it was added");
    }
    std::uintmax_t together = 0;
    for (const RecordManifest::File& file : manifest.files) {
        const auto* found = entry_in(here, file.path);
        if (found == nullptr)
            result.push_back(file.path + " is in the manifest and not here: it was removed");
        else if (*found == fs::file_type::regular) {
            const std::uintmax_t bytes = fs::file_size(folder / file.path);
            together += bytes;
            if (bytes > largest_file)
                result.push_back(file.path + " has " + std::to_string(bytes) +
                                 " bytes: more than 1 GiB is not read");
            else if (bytes != file.bytes)
                result.push_back(file.path + " was changed: it has " + std::to_string(bytes) +
                                 " bytes, the manifest says " + std::to_string(file.bytes));
        }
    }
    if (together > largest_record)
        result.push_back("its files have more than 4 GiB together: they are not read");
    if (!result.empty()) return result;
    for (const RecordManifest::File& file : manifest.files)
        if (const std::string sum = sha256_of_file(folder / file.path); sum != file.sha256)
            result.push_back(file.path + " was changed: its SHA-256 is " + sum +
                             ", the manifest says " + file.sha256);
    return result;
}

}  // namespace servetune
