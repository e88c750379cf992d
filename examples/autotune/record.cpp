// SPDX-License-Identifier: Apache-2.0
// Records: a study as a folder that others check and repeat.
#include "record.hpp"

#include "output.hpp"

#include "base/files.hpp"
#include "handover/study_record.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "servetune/result_file.hpp"
#include "study_file/secrets.hpp"

#include <nlohmann/json.hpp>

#include <system_error>

namespace autotune {

namespace {

/// Whether a file is a benchmark's result, and no study.
bool is_result(const fs::path& file) {
    const std::string ending = file.extension().string();
    std::error_code unknown;
    return fs::is_regular_file(file, unknown) &&
           (ending == ".json" || ending == ".jsonl" || ending == ".csv" || ending == ".md");
}

Redactor all_secrets(const Redactor& of_study) {
    Redactor result = secrets();
    result.add(of_study);
    result.add(secrets_of_environment());
    return result;
}

std::vector<std::string> words_of_record(const RecordAudit& found) {
    std::vector<std::string> lines;
    if (found.source.empty())
        lines.push_back(fmt::format(
            "{} with figures; a program of the user's measured them: they cannot be repeated here",
            counted_text(found.trials, "trial")));
    else
        lines.push_back(fmt::format(
            "{} of {} repeated from {}: {}{}", found.repeated, counted_text(found.trials, "trial"),
            found.source, counted_text(found.figures, "figure"),
            found.requests > 0 ? " of " + counted_text(found.requests, "request") : ""));
    for (const std::string& line : found.not_made) lines.push_back(line);
    if (!found.headline.empty()) lines.push_back("verdict, repeated: " + found.headline);
    return lines;
}

/// What a folder holds, once its hashes are right.
RecordAudit found_in(const fs::path& folder, const RecordManifest& manifest) {
    if (!manifest.of_study()) return {};
    StudyArguments arguments;
    arguments.study = folder;
    StudyFile file = arguments.load_to_read();
    if (auto* replay = std::get_if<ReplayChoice>(&file.measuring)) replay->delay_seconds = 0;
    StudySetup setup = set_up(std::move(file));
    const std::vector<Trial> trials = SqliteJournal::read(folder).trials();
    return audit_study_record(setup, trials, folder);
}

}  // namespace

void write_record_of(const StudySetup& setup, const fs::path& journal, const fs::path& folder) {
    const std::vector<Trial> trials = read_journal(setup, journal).trials();
    write_study_record(setup, trials, journal, folder, all_secrets(setup.file.secrets),
                       ended_because(setup, trials, journal));
}

int export_record(const ExportArguments& arguments) {
    if (is_result(arguments.study)) {
        const Catalogue catalogue = Catalogue::standard();
        (void)read_results(read_file(arguments.study), arguments.study.string(),
                           catalogue.engines());  // throws where it is none
        write_result_record(arguments.study, *arguments.output, all_secrets({}));
    } else {
        const StudySetup setup = set_up(arguments.load_to_read());
        write_record_of(setup, arguments.folder_to_read(setup.file), *arguments.output);
    }
    const RecordManifest manifest = read_manifest(*arguments.output);
    std::uintmax_t bytes = 0;
    for (const RecordManifest::File& file : manifest.files) bytes += file.bytes;
    put(stdout, "{}: {}, {} KiB; 'autotune audit {}' checks it\n", arguments.output->string(),
        counted_text(manifest.files.size(), "file"), (bytes + 1023) >> 10U,
        arguments.output->string());
    return done;
}

RecordVerdict audit_record(const fs::path& folder, OrderedJson* json) {
    RecordAudit found;
    RecordManifest manifest;
    std::vector<std::string> tampered;
    try {
        manifest = read_manifest(folder);
        tampered = tampered_files(folder, manifest);
        if (tampered.empty()) found = found_in(folder, manifest);
    } catch (const std::exception& error) {  // whatever a stranger wrote into it
        tampered.emplace_back(error.what());
    }
    const bool differs = !tampered.empty() || !found.wrong.empty();
    const RecordVerdict verdict = differs                 ? RecordVerdict::differs
                                  : found.missing.empty() ? RecordVerdict::agrees
                                                          : RecordVerdict::undecided;
    const char* word = differs ? "refused" : found.missing.empty() ? "agrees" : "undecided";
    if (json != nullptr) {
        json->push_back({{"file", folder.string()},
                         {"record", word},
                         {"hashes", tampered.empty()},
                         {"trials", found.trials},
                         {"repeated", found.repeated},
                         {"figures", found.figures},
                         {"requests", found.requests},
                         {"headline", found.headline},
                         {"tampered", tampered},
                         {"differs", found.wrong},
                         {"missing", found.missing}});
        return verdict;
    }
    put(stdout, "{}: {}\n", folder.string(), word);
    put_each(stdout, "  ", tampered);
    if (!tampered.empty()) return verdict;
    put(stdout, "  {} as the manifest says\n", counted_text(manifest.files.size(), "file"));
    if (manifest.of_study()) put_each(stdout, "  ", words_of_record(found));
    constexpr std::size_t most_lines = 20;
    for (std::size_t i = 0; i < found.wrong.size() && i < most_lines; ++i)
        put(stdout, "  differs: {}\n", found.wrong[i]);
    if (found.wrong.size() > most_lines)
        put(stdout, "  and {} more differ\n", found.wrong.size() - most_lines);
    put_each(stdout, "  missing: ", found.missing);
    return verdict;
}

}  // namespace autotune
