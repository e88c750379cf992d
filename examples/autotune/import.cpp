// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "servetune/io/files.hpp"
#include "servetune/io/import.hpp"
#include "servetune/io/result_file.hpp"
#include "servetune/io/utf8.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace autotune {

using namespace servetune;

int import_document(const ImportArguments& arguments) {
    const Catalogue catalogue = Catalogue::standard();
    const std::string content = read_file(arguments.document);
    const std::string_view text = utf8_text(content, arguments.document.string());
    std::optional<StudyFile> study;
    std::vector<Engine> engines;
    if (arguments.study) {
        study = load_study(*arguments.study, catalogue);
        engines = study->composition->engines();
    } else engines = catalogue.engines();

    const std::vector<PublishedResult> results = read_results(text, arguments.document.string(), launchers_of(engines));
    Imported imported;
    if (study) imported = import_for_study(results, *study);
    else imported = {csv_of(results), results.size()};

    const auto emit = [](const std::optional<std::filesystem::path>& file, const std::string& csv) {
        if (file) write_file(*file, csv);
        else fmt::print("{}", csv);
    };
    if (!arguments.json || arguments.output) emit(arguments.output, imported.csv);
    if (arguments.rest) {
        std::vector<PublishedResult> rest;
        for (const Unplaced& unplaced : imported.unplaced) rest.push_back(unplaced.result);
        write_file(*arguments.rest, csv_of(rest));
    }
    if (arguments.json) {
        nlohmann::ordered_json object{{"blocks", results.size()},
                                      {"rows", imported.rows},
                                      {"unplaced", nlohmann::ordered_json::array()},
                                      {"unread", nlohmann::ordered_json::array()}};
        for (const Unplaced& unplaced : imported.unplaced)
            object["unplaced"].push_back({{"block", unplaced.result.index}, {"reason", unplaced.reason}});
        for (const PublishedResult& result : results)
            for (const auto& [label, value] : result.unread)
                object["unread"].push_back({{"block", result.index}, {"label", label}, {"value", value}});
        fmt::print("{}\n", object.dump(2));
    } else {
        fmt::print(stderr, "{}: {} result blocks, {} rows\n", arguments.document.string(), results.size(), imported.rows);
        for (const Unplaced& unplaced : imported.unplaced)
            fmt::print(stderr, "  block {} is no row: {}\n", unplaced.result.index, unplaced.reason);
        for (const PublishedResult& result : results)
            for (const auto& [label, value] : result.unread)
                fmt::print(stderr, "  block {}: no figure for '{}: {}'\n", result.index, label, value);
    }
    // Nothing may be lost silently: blocks that are no rows need a place of their own.
    return imported.unplaced.empty() || arguments.rest ? done : answer_is_no;
}

}  // namespace autotune
