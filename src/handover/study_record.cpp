// SPDX-License-Identifier: Apache-2.0
#include "study_record.hpp"

#include "base/files.hpp"
#include "base/nesting.hpp"
#include "base/sha256.hpp"
#include "base/token_shapes.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "study/journal_snapshot.hpp"
#include "template_files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <system_error>

namespace servetune {
namespace {

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

    void text(const fs::path& path, std::string_view content) const {
        fs::create_directories((folder_ / path).parent_path());
        write_file(folder_ / path, without_token_shapes(secrets_(content)));
    }

    /// The end of a log: a start that fails says why there.
    void log(const fs::path& file, const fs::path& path) const {
        constexpr std::uintmax_t most_bytes = std::uintmax_t{1} << 18U;
        std::error_code unknown;
        if (fs::symlink_status(file, unknown).type() != fs::file_type::regular) return;
        const std::uintmax_t bytes = fs::file_size(file, unknown);
        if (unknown) return;
        if (bytes <= most_bytes) return text(path, read_file(file));
        std::ifstream stream(file, std::ios::binary);
        std::string end(most_bytes, '\0');
        stream.seekg(-static_cast<std::streamoff>(most_bytes), std::ios::end);
        if (!stream.read(end.data(), std::streamsize(end.size())))
            throw IoError("cannot read " + file.string());
        // Whole lines: a secret that is cut in two would not be found.
        text(path, "[... the beginning is left out ...]\n" + end.substr(end.find('\n') + 1));
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
        else if (!contains(words, key)) result[key] = canonical(child);
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

}  // namespace

void write_study_record(const StudySetup& setup, std::span<const Trial> trials,
                        const fs::path& study_folder, const fs::path& output,
                        const Redactor& secrets, std::string_view stop_reason) {
    NewFolder made(output);
    const RecordWriter writer(output, secrets);
    copy_journal(study_folder, output / "study.db", 0644);
    writer.check("study.db");
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
    writer.text("README.txt", record_readme_in.text);
    write_manifest(output);
    made.keep();
}

void write_result_record(const fs::path& result, const fs::path& output, const Redactor& secrets) {
    NewFolder made(output);
    const RecordWriter writer(output, secrets);
    writer.text(fs::path("results") / plain_name(result.filename().string()), read_file(result));
    writer.text("README.txt", record_readme_in.text);
    write_manifest(output);
    made.keep();
}

RecordAudit audit_study_record(StudySetup& setup, std::span<const Trial> trials,
                               const fs::path& record) {
    RecordAudit result;
    const auto report = shallow_json<nlohmann::json>(read_file(record / "report.json"));
    if (!report.is_object() ||
        verdict_sha256(report) !=
            verdict_sha256(nlohmann::json::parse(json_report(setup, trials, "", false))))
        result.wrong.emplace_back("report.json does not give the verdict of the journal");

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
        if (trial.measurement() == nullptr || trial.purpose == Purpose::stress) continue;
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
