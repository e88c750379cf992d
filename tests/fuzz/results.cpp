// SPDX-License-Identifier: Apache-2.0
// Any bytes as a benchmark's results: what is found can be written as a table, as vLLM's JSON and
// as a block, and read again.
#include "base/text.hpp"
#include "fuzz/target.hpp"
#include "handover/result_export.hpp"
#include "results/import.hpp"
#include "results/printed_block.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/result_file.hpp"
#include "study/table.hpp"

#include <cmath>
#include <map>
#include <string>

using namespace servetune;
using namespace servetune::fuzz;

namespace {

std::map<std::string, double> figures(const BenchmarkResult& result) {
    std::map<std::string, double> found;
    for_each_figure(result, [&](const std::string& name, const std::optional<double>& figure) {
        if (figure) found[name] = *figure;
    });
    return found;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::vector<Engine> engines =
        Catalogue(SERVETUNE_SOURCE "/search_spaces").engines();
    std::vector<PublishedResult> results;
    const bool read = accepted(
        [&] { results = read_results(utf8_text(text_of_input(data, size), "f"), "f", engines); });
    if (!read) return 0;
    must_hold(!results.empty(), "at least one result");
    must_hold(parse_table(csv_of(results), "t.csv").rows.size() == results.size(),
              "every result is a row");
    for (std::size_t i = 0; i < results.size(); ++i) {
        const PublishedResult& result = results[i];
        must_hold(result.index == i, "results are numbered in order");
        bool possible = true;
        for (const auto& [name, figure] : figures(result.result)) {
            must_hold(std::isfinite(figure), "a figure is finite");
            possible = possible && figure >= 0;
        }
        ExportContext context;
        context.model = result.model;
        const std::string json = vllm_json(result.result, context);
        const auto again = read_results(json, "f", {});
        must_hold(again.size() == 1 && again[0].model == result.model,
                  "one object, of the same model");
        must_hold(figures(again[0].result) == figures(result.result), "our JSON reads back equal");
        if (!possible) continue;  // a block says "not known" by -1
        const std::string block = text_block(result.result);
        const auto printed =
            read_printed_blocks(block, {});  // a block without figures is no result of a file
        must_hold(printed.size() == 1 && printed[0].unread.empty(), "one block, all of it read");
    }
    return 0;
}
