// SPDX-License-Identifier: Apache-2.0
// Any bytes as a published document: what is found becomes tables that can be read.
#include "results/import.hpp"
#include "base/text.hpp"
#include "fuzz/target.hpp"
#include "study/table.hpp"

#include <string>

using namespace servetune;
using namespace servetune::fuzz;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::string search_spaces = SERVETUNE_SOURCE "/search_spaces";
    static const StudyFile study = load_study(
        search_spaces + "/published/qwen3-14b-h100/study.yaml", Catalogue(search_spaces));
    static const std::vector<Engine> engines = study.composition->engines();
    (void)accepted([&] {
        const std::vector<PublishedResult> results =
            read_results(utf8_text(text_of_input(data, size), "f"), "f", engines);
        for (std::size_t i = 0; i < results.size(); ++i)
            must_hold(results[i].index == i, "blocks are numbered in order");
        const std::string all = csv_of(results);
        if (!results.empty())
            must_hold(parse_table(all, "all.csv").rows.size() == results.size(),
                      "every block is a row");
        const Imported imported = import_for_study(results, study);
        must_hold(imported.rows + imported.unplaced.size() == results.size(),
                  "every block is a row or unplaced");
        if (imported.rows > 0)
            must_hold(parse_table(imported.csv, "placed.csv").rows.size() == imported.rows,
                      "every row can be read");
    });
    return 0;
}
