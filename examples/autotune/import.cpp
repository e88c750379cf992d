// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "output.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "results/import.hpp"
#include "results/plain_table.hpp"
#include "results/traffic.hpp"
#include "results/workloads.hpp"
#include "results/written_study.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/error.hpp"
#include "servetune/result_file.hpp"
#include "study_file/yaml.hpp"
#include "study_file/yaml_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace autotune {

using namespace servetune;

namespace {

/// `result 3`, `results 1 and 2`, `12 results from 0 to 17`.
std::string which_results(const std::vector<std::size_t>& which) {
    return which.size() < 4
               ? numbered("result", which)
               : fmt::format("{} results from {} to {}", which.size(), which.front(), which.back());
}

/// What was not read: with its values where one result has it, else the names for all results that
/// have the same.
void put_unread(const std::vector<PublishedResult>& results) {
    std::map<std::vector<std::string>, std::vector<std::size_t>> alike;  // labels -> results
    for (std::size_t i = 0; i < results.size(); ++i) {
        std::vector<std::string> labels;
        for (const auto& [label, value] : results[i].unread) labels.push_back(label);
        if (!labels.empty()) alike[labels].push_back(i);
    }
    for (const auto& [labels, which] : alike) {
        std::vector<std::string> shown = labels;
        if (which.size() == 1)
            for (std::string& label : shown)
                label += ": " + results[which.front()].unread.at(label);
        std::vector<std::size_t> numbers;
        for (const std::size_t i : which) numbers.push_back(results[i].index);
        put(stderr, "  {}: not used: '{}'{}\n", which_results(numbers), fmt::join(shown, "', '"),
            which.size() == 1 ? "" : " (values: --json)");
    }
}

/// The table goes beside the study, and nothing that is there is replaced.
void write_replayed_study(const PlainTable& plain, const std::filesystem::path& file,
                          const std::filesystem::path& source, const Catalogue& catalogue) {
    std::filesystem::path table = file.parent_path() / (file.stem().string() + ".csv");
    std::error_code unknown;
    if (std::filesystem::equivalent(table, source, unknown)) table.replace_extension(".table.csv");
    const std::string study = study_of(plain, file.stem().string(), table.filename().string());
    NewFile new_study(file);
    NewFile new_table(table);
    new_table.write(plain.csv);
    new_study.write(study);
    (void)set_up(load_study(file, catalogue));  // what is left behind can be run
    new_study.keep();
    new_table.keep();
    put(stderr, "  {} and {} are written: {}\n", file.string(), table.string(),
        Command{{"autotune", "run", file.string()}}.text());
}

int import_table(const ImportArguments& arguments, const Catalogue& catalogue) {
    if (arguments.study || !arguments.settings.empty() || !arguments.workload.empty() ||
        !arguments.command.empty() || arguments.json)
        throw UsageError(
            "--objective reads a table of configurations; of the other options it takes "
            "--parameter, --output and "
            "--write-study");
    if (arguments.documents.size() != 1)
        throw UsageError("--objective: one table wanted, got " +
                         std::to_string(arguments.documents.size()));
    const std::filesystem::path& file = arguments.documents.front();
    const PlainTable plain = read_plain_table(read_file(file), file.string(),
                                              {arguments.objective, arguments.parameters});
    for (const std::string& remark : plain.remarks) put(stderr, "  {}\n", remark);
    if (arguments.output) write_file(*arguments.output, plain.csv);
    if (arguments.write_study) write_replayed_study(plain, *arguments.write_study, file, catalogue);
    else if (!arguments.output) put(stdout, "{}", plain.csv);
    return done;
}

/// The trace goes beside the workload, and nothing that is there is replaced.
int import_traffic(const ImportArguments& arguments) {
    if (arguments.study || arguments.write_study || arguments.output ||
        !arguments.command.empty() || !arguments.objective.empty())
        throw UsageError(
            "--write-workload reads logs; of the other options it takes --window and --json");
    constexpr double default_window_seconds = 600;  // a trial of some minutes
    const std::filesystem::path& file = *arguments.write_workload;
    if (!names_yaml_file(file.string()))
        throw UsageError("--write-workload: a file ending in .yaml wanted, got " + file.string());
    const double window_seconds = arguments.window_seconds.value_or(default_window_seconds);
    if (window_seconds < 1)
        throw UsageError("--window: a second or more wanted, got " + seconds_text(window_seconds));
    std::filesystem::path trace = file;
    trace.replace_extension(".jsonl");
    NewFile new_workload(file);
    NewFile new_trace(trace);
    const Traffic traffic = read_traffic(arguments.documents, window_seconds);
    new_trace.write(traffic.trace_text());
    new_workload.write(traffic.workload_text(file.stem().string(), trace.filename().string()));
    Workload workload = Catalogue::standard().workload(
        Yaml::parse(nlohmann::json(file.string()).dump(), "--write-workload"));
    workload.requests = 1;
    (void)plan_requests(workload);  // what is left behind can be sent
    new_workload.keep();
    new_trace.keep();
    const std::vector<std::string> lines = traffic.lines();
    if (arguments.json)
        put_json({{"workload", file.string()},
                  {"trace", trace.string()},
                  {"requests", traffic.requests.size()},
                  {"seconds", traffic.window_seconds},
                  {"shared_prefix_share", traffic.shared},
                  {"conversations", traffic.conversations},
                  {"remarks", lines}});
    else
        for (const std::string& line : lines) put(stdout, "{}\n", line);
    put(stderr, "{} and {} are written; `use: {}` in a study sends this traffic\n", file.string(),
        trace.string(), file.string());
    return done;
}

}  // namespace

int import_document(const ImportArguments& arguments) {
    if (arguments.write_workload) return import_traffic(arguments);
    const Catalogue catalogue = Catalogue::standard();
    if (!arguments.objective.empty()) return import_table(arguments, catalogue);
    std::optional<StudyFile> study;
    std::vector<Engine> engines;
    if (arguments.study) {
        study = load_study(*arguments.study, catalogue);
        engines = study->composition->engines();
    } else engines = catalogue.engines();

    if (arguments.study && arguments.write_study)
        throw SpaceError("--study and --write-study: one of them");
    ResultSource source;
    std::vector<PublishedResult>& results = source.results;
    std::vector<std::string> unreadable;
    bool all_were_read = true;
    for (const std::filesystem::path& document : arguments.documents) {
        bool may_be_table = false;
        try {
            const std::string content = read_file(document);
            may_be_table = looks_like_table(content);
            for (PublishedResult& result :
                 read_results(utf8_text(content, document.string()), document.string(), engines)) {
                result.index = results.size();  // over all documents
                results.push_back(std::move(result));
                source.files.push_back(document.string());
            }
        } catch (const Error& error) {  // the others are read all the same
            all_were_read = all_were_read && dynamic_cast<const IoError*>(&error) == nullptr;
            unreadable.emplace_back(error.what());
            put(stderr, "autotune: {}\n", error.what());
            if (may_be_table)
                put(stderr,
                    "a table of configurations and what was measured: --objective COLUMN\n");
        }
    }
    if (results.empty()) return all_were_read ? without_results : usage_error;
    if (!arguments.command.empty()) give_command(results, arguments.command, engines);
    Imported imported;
    std::vector<std::string> remarks;
    if (arguments.write_study) {
        StudyRequest request{arguments.workload, {}};
        for (const std::string& text : arguments.settings)
            request.facts.push_back(GivenFact::parse(text));
        WrittenStudy written = write_study(source, request, *arguments.write_study, catalogue);
        imported = std::move(written.imported);
        remarks = std::move(written.remarks);
        remarks.push_back(fmt::format(
            "{} and {} are written: {}", arguments.write_study->string(), written.table.string(),
            Command{{"autotune", "run", arguments.write_study->string()}}.text()));
    } else if (study) imported = import_for_study(results, *study);
    else imported = {csv_of(results), results.size()};

    const auto emit = [](const std::optional<std::filesystem::path>& file, const std::string& csv) {
        if (file) write_file(*file, csv);
        else put(stdout, "{}", csv);
    };
    const bool prints = !arguments.json && !arguments.write_study;
    if (prints || arguments.output) emit(arguments.output, imported.csv);
    if (arguments.json) {
        nlohmann::ordered_json object{{"blocks", results.size()},
                                      {"rows", imported.rows},
                                      {"unplaced", nlohmann::ordered_json::array()},
                                      {"unread", nlohmann::ordered_json::array()},
                                      {"without_results", unreadable},
                                      {"remarks", remarks}};
        for (const Unplaced& unplaced : imported.unplaced)
            object["unplaced"].push_back(
                {{"block", unplaced.result.index}, {"reason", unplaced.reason}});
        for (const PublishedResult& result : results)
            for (const auto& [label, value] : result.unread)
                object["unread"].push_back(
                    {{"block", result.index}, {"label", label}, {"value", value}});
        put_json(object);
    } else {
        const std::string name = arguments.documents.size() == 1
                                     ? arguments.documents.front().string()
                                     : fmt::format("{} documents", arguments.documents.size());
        put(stderr, "{}: {}, {}\n", name, counted_text(results.size(), "result"),
            counted_text(imported.rows, "row"));
        if (!study && !arguments.write_study) {
            std::map<std::string, std::vector<std::size_t>> unknown;  // why -> results
            for (const PublishedResult& result : results)
                if (std::string why = why_no_command(result); !why.empty())
                    unknown[why].push_back(result.index);
            for (const auto& [why, which] : unknown)
                put(stderr, "  {}: {} (say it with --command, or with --write-study and --set)\n",
                    which_results(which), why);
        }
        for (const Unplaced& unplaced : imported.unplaced)
            put(stderr, "  result {} is no row: {}\n", unplaced.result.index, unplaced.reason);
        put_unread(results);
        for (const std::string& remark : remarks) put(stderr, "  {}\n", remark);
    }
    // Nothing may be lost silently. A study that is made of the results says which it left out.
    if (!arguments.write_study && !imported.unplaced.empty()) return answer_is_no;
    return unreadable.empty() ? done : all_were_read ? without_results : usage_error;
}

}  // namespace autotune
