// SPDX-License-Identifier: Apache-2.0
#include "study_record.hpp"

#include "base/files.hpp"
#include "base/nesting.hpp"
#include "base/sha256.hpp"
#include "base/token_shapes.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/version.hpp"
#include "study/journal_snapshot.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>

namespace servetune {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

/// A folder that goes again unless it is kept.
class NewFolder {
public:
    explicit NewFolder(fs::path folder) : folder_(std::move(folder)) {
        std::error_code failed;
        was_there_ = fs::is_directory(folder_, failed);
        if (fs::exists(fs::symlink_status(folder_, failed)) &&
            (!was_there_ || !fs::is_empty(folder_, failed)))
            throw UsageError(folder_.string() +
                             " is there already: a record needs a folder that is new or empty");
        if (!was_there_ && !fs::create_directories(folder_, failed))
            throw IoError("cannot make " + folder_.string() + ": " + failed.message());
    }
    ~NewFolder() {
        if (kept_) return;
        std::error_code stays;
        if (!was_there_) fs::remove_all(folder_, stays);
        else
            for (const fs::directory_entry& entry : fs::directory_iterator(folder_, stays))
                fs::remove_all(entry.path(), stays);
    }
    NewFolder(const NewFolder&) = delete;
    NewFolder& operator=(const NewFolder&) = delete;
    void keep() { kept_ = true; }

private:
    fs::path folder_;
    bool was_there_ = false;
    bool kept_ = false;
};

/// Writes the texts of a record.
class RecordWriter {
public:
    RecordWriter(fs::path folder, const Redactor& secrets)
        : folder_(std::move(folder)), secrets_(secrets) {}

    [[nodiscard]] std::string clean(std::string_view text) const {
        return without_token_shapes(secrets_(text));
    }

    void text(const fs::path& path, std::string_view content) const {
        fs::create_directories((folder_ / path).parent_path());
        write_file(folder_ / path, clean(content));
    }

    /// The begin and the end of a log: a start that fails says why in one of them.
    void log(const fs::path& file, const fs::path& path) const {
        constexpr std::uintmax_t begin_bytes = std::uintmax_t{1} << 16U;
        constexpr std::uintmax_t end_bytes = std::uintmax_t{3} << 16U;
        std::error_code unknown;
        if (fs::symlink_status(file, unknown).type() != fs::file_type::regular) return;
        const std::uintmax_t bytes = fs::file_size(file, unknown);
        if (unknown) return;
        if (bytes <= begin_bytes + end_bytes) return text(path, read_file(file));
        std::ifstream stream(file, std::ios::binary);
        std::string begin(begin_bytes, '\0');
        std::string end(end_bytes, '\0');
        stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
        stream.seekg(-static_cast<std::streamoff>(end_bytes), std::ios::end);
        if (!stream.read(end.data(), static_cast<std::streamsize>(end.size())))
            throw IoError("cannot read " + file.string());
        begin.erase(begin.find_last_of('\n') +
                    1);  // whole lines: a secret that is cut in two would not be found
        end.erase(0, end.find('\n') + 1);
        text(path, begin + "[... " + std::to_string(bytes - begin.size() - end.size()) +
                       " bytes are left out ...]\n" + end);
    }

    /// Throws IoError where a file that cannot be edited holds a secret.
    void check(const fs::path& path) const {
        const std::string bytes = read_file(folder_ / path);
        if (secrets_(bytes) != bytes)
            throw IoError(path.string() +
                          " holds a secret that this process knows; it cannot be taken out, and no "
                          "record is written");
    }

private:
    fs::path folder_;
    const Redactor& secrets_;
};

/// A name that a manifest may have.
std::string plain_name(const std::string& name) {
    std::string result;
    for (const char c : name) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        result += plain ? c : '_';
    }
    return result.empty() || result.front() == '.' ? "_" + result : result;
}

/// The files of a study by their names in a record, the study itself under its own.
std::map<fs::path, std::string> named_texts(const std::map<std::string, std::string>& texts) {
    std::map<fs::path, std::string> result;
    const auto main = texts.find(study_of_texts);
    std::set<std::string> names;
    for (const auto& [path, text] : texts) {
        if (path == study_of_texts) continue;
        const bool is_study = main != texts.end() && path == main->second;
        std::string name = is_study ? "study.yaml" : plain_name(fs::path(path).filename().string());
        while (!names.insert(name).second) name = "_" + name;
        result.emplace(fs::path("study") / name, text);
    }
    return result;
}

constexpr std::string_view repeat_of_study = "autotune run FOLDER --directory repeated --no-cache";

void write_logs(const RecordWriter& writer, const fs::path& study_folder) {
    std::error_code gone;
    for (fs::recursive_directory_iterator at(study_folder / "trials", gone), end;
         !gone && at != end; at.increment(gone)) {
        if (at->path().extension() != ".log") continue;
        fs::path path = "logs";
        for (const fs::path& part : at->path().lexically_relative(study_folder / "trials"))
            path /= plain_name(part.string());
        writer.log(at->path(), path);
    }
    writer.log(study_folder / "run.log", "run.log");
}

/// What the figures depend on beside the study, as far as the journal tells.
std::map<std::string, std::string> versions_in(const std::map<std::string, std::string>& definition,
                                               std::span<const Trial> trials) {
    std::map<std::string, std::string> result;
    const auto add = [&](const char* name, const std::string& path) {
        if (const auto found = definition.find(path); found != definition.end())
            result[name] = found->second;
    };
    add("engine", profile_paths + "version");
    add("machine", profile_paths + "machine");
    add("devices", machine_found_path);
    for (const Trial& trial : trials)
        if (trial.environment)
            for (const char* name : {"driver", "kernel"})
                if (const auto found = trial.environment->find(name);
                    found != trial.environment->end())
                    result[name] = found->second;
    return result;
}

/// The same of a result, as `bench --save` writes them.
std::map<std::string, std::string> versions_in_result(std::string_view text) {
    std::map<std::string, std::string> result;
    const auto object = shallow_json<OrderedJson>(text);
    if (!object.is_object()) return result;
    for (const char* name : {"date", "label", "model_id"})
        if (object.contains(name) && object.at(name).is_string())
            result[name] = object.at(name).get<std::string>();
    return result;
}

/// The command that served it; empty: the result does not say.
std::string serving_command_in(std::string_view text) {
    const auto object = shallow_json<OrderedJson>(text);
    if (!object.is_object() || !object.contains("servetune") || !object["servetune"].is_object())
        return "";
    const OrderedJson& ours = object["servetune"];
    return ours.contains("arguments") && ours["arguments"].is_string()
               ? ours["arguments"].get<std::string>()
               : "";
}

std::string lines_of_versions(const std::map<std::string, std::string>& versions) {
    std::string result;
    for (const auto& [name, text] : versions) result += "- " + name + ": " + text + "\n";
    return result;
}

std::string readme_of(const std::string& name, const std::string& verdict,
                      const RecordManifest& manifest, const char* content) {
    const std::string again =
        manifest.repeat.empty()
            ? ""
            : "\nTo measure again, with the same versions:\n\n    " + manifest.repeat + "\n";
    return "Record of " + name + "\n\n" + verdict + "\n\nVersions:\n\n" +
           lines_of_versions(manifest.versions) + again +
           "\nTo check it:\n\n    autotune audit FOLDER\n\n"
           "Each file is compared with its SHA-256 in manifest.json, and what follows from the raw "
           "data is\n"
           "repeated. Hashes show changes; they do not show who made the record. Whoever publishes "
           "it signs\n"
           "the manifest, and keeps the signature beside the folder:\n\n"
           "    ssh-keygen -Y sign -f KEY -n servetune manifest.json\n" +
           content;
}

constexpr const char* content_of_study =
    "\nContent:\n\n"
    "- study.db: the journal; every command reads the study from it, such as 'autotune report "
    "FOLDER'\n"
    "- study/, definition.json: the study's files, and what they come to\n"
    "- requests/: lengths and times of each request of a load test, no texts\n"
    "- logs/, run.log: of engines and of the run, without secrets\n"
    "- report.md, report.json, report.html: the report\n";

/// JSON in one form: keys in order, numbers to nine digits, without sentences and commands, whose
/// words another version may choose otherwise.
nlohmann::json canonical(const nlohmann::json& value) {
    if (value.is_number()) return fmt::format("{:.9g}", value.get<double>());
    if (!value.is_structured()) return value;
    nlohmann::json result = value.is_array() ? nlohmann::json::array() : nlohmann::json::object();
    constexpr std::array<std::string_view, 6> words{"headline", "reason", "cause",
                                                    "command",  "argv",   "environment"};
    for (const auto& [key, child] : value.items())
        if (value.is_array()) result.push_back(canonical(child));
        else if (std::find(words.begin(), words.end(), key) == words.end())
            result[key] = canonical(child);
    return result;
}

/// The SHA-256 of what a report decides, of all that it says.
std::string verdict_sha256(const nlohmann::json& report) {
    nlohmann::json decided;
    for (const char* key :
         {"study", "objective", "verdict", "default", "recommended", "not_distinguishable", "front",
          "closest", "limits", "results", "refused", "audit", "noise"})
        decided[key] = report.contains(key) ? canonical(report.at(key)) : nlohmann::json();
    return sha256_of(decided.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// The trials that the verdict is of: those of the default and of what is recommended.
bool decides(const Trial& trial, const Recommendation& recommendation) {
    return trial.of_search() && trial.measurement() != nullptr &&
           (trial.configuration == recommendation.default_configuration ||
            trial.configuration == recommendation.recommended);
}

/// The head of a record's manifest, by its journal.
RecordManifest manifest_of_study(const StudySetup& setup, std::span<const Trial> trials,
                                 const fs::path& record) {
    RecordManifest result{.kind = "study",
                          .name = setup.file.name,
                          .versions = versions_in(SqliteJournal::definition_of(record), trials),
                          .repeat = std::string(repeat_of_study)};
    result.versions["autotune"] = std::string(library_version);
    return result;
}

/// Whoever audits may have another version of this program.
bool same_versions(std::map<std::string, std::string> a, std::map<std::string, std::string> b) {
    a.erase("autotune");
    b.erase("autotune");
    return a == b;
}

/// The texts of a record that follow from its journal; the README where this version wrote it.
std::map<std::string, std::string> texts_of_journal(const StudySetup& setup,
                                                    std::span<const Trial> trials,
                                                    const fs::path& record,
                                                    const RecordManifest& manifest) {
    std::map<std::string, std::string> result;
    for (const auto& [path, text] : named_texts(SqliteJournal::texts_of(record)))
        result[path.generic_string()] = text;
    result["definition.json"] = OrderedJson(SqliteJournal::definition_of(record))
                                    .dump(1, ' ', false, OrderedJson::error_handler_t::replace) +
                                "\n";
    const Headline headline = headline_of(setup, trials);
    const auto version = manifest.versions.find("autotune");
    if (version != manifest.versions.end() && version->second == library_version)
        result["README.txt"] = readme_of(setup.file.name, headline.title + ". " + headline.reason,
                                         manifest, content_of_study);
    return result;
}

}  // namespace

void write_study_record(const StudySetup& setup, std::span<const Trial> trials,
                        const fs::path& study_folder, const fs::path& output,
                        const Redactor& secrets, std::string_view stop_reason) {
    NewFolder made(output);
    const RecordWriter writer(output, secrets);
    copy_journal(study_folder, output / "study.db", 0644);
    writer.check("study.db");
    RecordManifest manifest = manifest_of_study(setup, trials, output);
    for (const auto& [path, text] : texts_of_journal(setup, trials, output, manifest))
        writer.text(path, text);
    for (const fs::path& file : kept_load_tests(study_folder)) {
        const auto trial = trial_of_kept(file);
        if (!trial || *trial >= trials.size() || trials[*trial].measurement() == nullptr) continue;
        fs::create_directories(output / kept_requests_folder);
        write_load_test(output / kept_requests_folder / file.filename(), read_load_test(file),
                        secrets);
    }
    write_logs(writer, study_folder);
    const Reports reports = all_reports(setup, trials, stop_reason);
    writer.text("report.md", reports.markdown);
    writer.text("report.json", reports.json + "\n");
    writer.text("report.html", reports.html);
    write_manifest(output, manifest);
    made.keep();
}

void write_result_record(const fs::path& result, const fs::path& output, const Redactor& secrets) {
    NewFolder made(output);
    const RecordWriter writer(output, secrets);
    const std::string name = plain_name(result.filename().string());
    writer.text(fs::path("results") / name, read_file(result));
    RecordManifest manifest{.kind = "result", .name = result.stem().string()};
    manifest.versions = versions_in_result(read_file(output / "results" / name));
    manifest.versions["autotune"] = std::string(library_version);
    manifest.repeat = serving_command_in(read_file(output / "results" / name));
    constexpr const char* what =
        "One measured result, not a study: nothing was compared, and there are no raw requests.";
    writer.text("README.txt", readme_of(manifest.name, what, manifest, ""));
    write_manifest(output, manifest);
    made.keep();
}

RecordAudit audit_result_record(const fs::path& record) {
    RecordAudit result;
    const RecordManifest manifest = read_manifest(record);
    std::map<std::string, std::string> versions;
    std::string repeat;
    for (const RecordManifest::File& file : manifest.files)
        if (file.path.starts_with("results/")) {
            const std::string text = read_file(record / file.path);
            versions.merge(versions_in_result(text));
            if (repeat.empty()) repeat = serving_command_in(text);
        }
    if (manifest.repeat != repeat)
        result.wrong.push_back("manifest.json: the result was served by '" + repeat + "', not '" +
                               manifest.repeat + "'");
    if (!same_versions(versions, manifest.versions))
        result.wrong.emplace_back("manifest.json: its versions are not those of the result");
    return result;
}

RecordAudit audit_study_record(StudySetup& setup, std::span<const Trial> trials,
                               const fs::path& record) {
    RecordAudit result;
    const RecordManifest manifest = read_manifest(record);
    const RecordManifest expected = manifest_of_study(setup, trials, record);
    if (std::tie(manifest.name, manifest.repeat) != std::tie(expected.name, expected.repeat) ||
        !same_versions(manifest.versions, expected.versions))
        result.wrong.emplace_back(
            "manifest.json does not say the name, the versions and the command of the journal");
    const auto report = shallow_json<nlohmann::json>(read_file(record / "report.json"));
    if (!report.is_object() ||
        verdict_sha256(report) !=
            verdict_sha256(nlohmann::json::parse(json_report(setup, trials, "", false))))
        result.wrong.emplace_back("report.json does not give the verdict of the journal");
    std::map<std::string, std::string> hashes;
    for (const RecordManifest::File& file : manifest.files) hashes[file.path] = file.sha256;
    for (const auto& [path, text] : texts_of_journal(setup, trials, record, manifest))
        if (hashes[path] != sha256_of(without_token_shapes(text)))
            result.wrong.push_back(path + " does not say what the journal gives");

    const bool by_asking = repeats_by_asking(setup.file);
    std::map<std::uint64_t, std::vector<fs::path>> kept;
    for (const fs::path& file : kept_load_tests(record)) {
        const std::uint64_t trial = trial_of_kept(file).value_or(0);
        if (trial >= trials.size() || trials[trial].measurement() == nullptr)
            result.wrong.push_back(file.filename().string() + " is of a trial that has no figures");
        else kept[trial].push_back(file);
    }
    const bool load_tested = std::holds_alternative<DeployChoice>(setup.file.measuring) ||
                             std::holds_alternative<AttachChoice>(setup.file.measuring);
    result.source = load_tested ? "raw requests"
                    : std::holds_alternative<ReplayChoice>(setup.file.measuring)
                        ? "the study's table"
                    : by_asking ? "the cost model"
                                : "";
    const Recommendation recommendation =
        recommend(*setup.problem, search_history(*setup.problem, trials));
    std::vector<Trial> repeated(trials.begin(), trials.end());
    std::map<std::string, std::vector<std::uint64_t>> reasons;
    for (const Trial& trial : trials) {
        if (trial.measurement() == nullptr) continue;
        ++result.trials;
        RepeatedTrial one;
        const std::string name = "trial " + std::to_string(trial.id);
        try {
            if (by_asking) one = asked_again(setup, trial);
            else {
                std::vector<KeptLoadTest>
                    tests;  // of one trial at a time: all together may be large
                for (const fs::path& file : kept[trial.id]) tests.push_back(read_load_test(file));
                one = repeated_trial(setup, trial, std::move(tests));
            }
        } catch (const Error& error) {
            result.wrong.push_back(name + ": " + error.what());
            continue;
        }
        for (const std::string& differs : one.differs)
            result.wrong.push_back(name + ": " + differs);
        if (!one.why_not.empty()) {
            reasons[one.why_not].push_back(trial.id);
            if (load_tested && decides(trial, recommendation))
                result.missing.push_back(name + ", which decides: " + one.why_not);
            continue;
        }
        ++result.repeated;
        result.figures += one.figures;
        result.requests += one.requests;
        repeated[trial.id].outcome = Outcome(*one.measurement);
    }
    for (const auto& [why, of] : reasons)
        result.not_made.push_back(std::to_string(of.size()) + " not repeated: " + why);
    result.headline = headline_of(setup, repeated).title;
    return result;
}

}  // namespace servetune
