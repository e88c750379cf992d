// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "output.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "results/import.hpp"
#include "results/plain_table.hpp"
#include "results/traffic.hpp"
#include "results/workloads.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/error.hpp"
#include "servetune/result_file.hpp"
#include "study_file/readers.hpp"
#include "study_file/yaml_text.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>

namespace autotune {

namespace {

/// The table goes beside the study, and nothing that is there is replaced.
void write_replayed_study(const PlainTable& plain, const fs::path& file, const fs::path& source,
                          const Catalogue& catalogue) {
    fs::path table = file.parent_path() / (file.stem().string() + ".csv");
    std::error_code unknown;
    if (fs::equivalent(table, source, unknown)) table.replace_extension(".table.csv");
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
    if (arguments.documents.size() != 1 || arguments.json)
        throw UsageError("--objective: one table wanted, of which CSV is made (no --json)");
    const fs::path& file = arguments.documents.front();
    const PlainTable plain = read_plain_table(read_file(file), file.string(),
                                              {arguments.objective, arguments.parameters});
    put_each(stderr, "  ", plain.remarks);
    if (arguments.output) write_file(*arguments.output, plain.csv);
    if (arguments.write_study) write_replayed_study(plain, *arguments.write_study, file, catalogue);
    else if (!arguments.output) put_text(stdout, plain.csv);
    return done;
}

/// The trace goes beside the workload, and nothing that is there is replaced.
int import_traffic(const ImportArguments& arguments) {
    constexpr double default_window_seconds = 600;  // a trial of some minutes
    const fs::path& file = *arguments.write_workload;
    if (!names_yaml_file(file.string()))
        throw UsageError("--write-workload: a file ending in .yaml wanted, got " + file.string());
    const double window_seconds = arguments.window_seconds.value_or(default_window_seconds);
    if (window_seconds < 1)
        throw UsageError("--window: a second or more wanted, got " + seconds_text(window_seconds));
    fs::path trace = file;
    trace.replace_extension(".jsonl");
    NewFile new_workload(file);
    NewFile new_trace(trace);
    const Traffic traffic = read_traffic(arguments.documents, window_seconds);
    new_trace.write(traffic.trace_text());
    new_workload.write(traffic.workload_text(file.stem().string(), trace.filename().string()));
    Workload workload =
        workload_in(Catalogue::standard(),
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
    else put_each(stdout, "", lines);
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

    std::vector<PublishedResult> results;
    std::vector<std::string> unreadable;
    bool all_were_read = true;
    for (const fs::path& document : arguments.documents) {
        try {
            const std::string content = read_file(document);
            for (PublishedResult& result :
                 read_results(utf8_text(content, document.string()), document.string(), engines)) {
                result.index = results.size();  // over all documents
                results.push_back(std::move(result));
            }
        } catch (const Error& error) {  // the others are read all the same
            all_were_read = all_were_read && dynamic_cast<const IoError*>(&error) == nullptr;
            unreadable.emplace_back(error.what());
            put_text(stderr, "autotune: " + unreadable.back());
            if (document.extension() == ".csv" || document.extension() == ".tsv")
                put(stderr,
                    "a table of configurations and what was measured: --objective COLUMN\n");
        }
    }
    if (results.empty()) return all_were_read ? without_results : usage_error;
    if (!arguments.command.empty()) give_command(results, arguments.command, engines);
    Imported imported;
    if (study) imported = import_for_study(results, *study);
    else imported = {csv_of(results), results.size()};

    if (arguments.output) write_file(*arguments.output, imported.csv);
    else if (!arguments.json) put_text(stdout, imported.csv);
    if (arguments.json) {
        nlohmann::ordered_json object{{"blocks", results.size()},
                                      {"rows", imported.rows},
                                      {"unplaced", nlohmann::ordered_json::array()},
                                      {"unread", nlohmann::ordered_json::array()},
                                      {"without_results", unreadable}};
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
        if (!study) {
            std::map<std::string, std::size_t> unknown;  // why -> results
            for (const PublishedResult& result : results)
                if (std::string why = why_no_command(result); !why.empty()) ++unknown[why];
            for (const auto& [why, count] : unknown)
                put(stderr, "  {}: {} (say it with --command)\n", counted_text(count, "result"),
                    why);
        }
        for (const Unplaced& unplaced : imported.unplaced)
            put(stderr, "  result {} is no row: {}\n", unplaced.result.index, unplaced.reason);
        std::set<std::string> unread;
        for (const PublishedResult& result : results)
            for (const auto& [label, value] : result.unread) unread.insert(label);
        if (!unread.empty())
            put(stderr, "  not used: '{}' (values: --json)\n", fmt::join(unread, "', '"));
    }
    if (!imported.unplaced.empty()) return answer_is_no;
    return unreadable.empty() ? done : all_were_read ? without_results : usage_error;
}

}  // namespace autotune
