// SPDX-License-Identifier: Apache-2.0
// Any bytes as CSV and as a table of measurements: rows fit their columns, and what is written
// again reads the same.
#include "study/table.hpp"
#include "fuzz/target.hpp"
#include "results/plain_table.hpp"
#include "study_file/yaml.hpp"

#include <cmath>
#include <string>

using namespace servetune;
using namespace servetune::fuzz;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = text_of_input(data, size);
    (void)accepted([&] {
        const std::vector<CsvRow> rows = parse_csv(text, "t.csv");
        std::string written;
        for (const CsvRow& row : rows) written += csv_line(row.cells);
        const std::vector<CsvRow> again = parse_csv(written, "t.csv");
        must_hold(again.size() == rows.size(), "every row is written");
        for (std::size_t i = 0; i < rows.size(); ++i) {
            must_hold(again[i].cells == rows[i].cells, "a row is written as it was read");
            must_hold(i == 0 || rows[i - 1].line < rows[i].line, "lines ascend");
        }
    });
    (void)accepted([&] {
        const MeasuredTable table = parse_table(text, "t.csv");
        must_hold(!table.rows.empty(), "a table has rows");
        for (const MeasuredTable::Row& row : table.rows) {
            must_hold(row.cells.size() == table.parameters.size(),
                      "a row has a cell for every parameter");
            if (const auto* measurement = std::get_if<Measurement>(&row.outcome))
                for (const auto& [name, metric] : measurement->metrics)
                    must_hold(std::isfinite(metric.value), "a metric is finite");
        }
    });
    // Its own columns as objectives: what is made of a person's table can be read, and so can the
    // study.
    std::vector<std::string> columns{"score"};
    (void)accepted([&] {
        const std::vector<CsvRow> rows = parse_csv(text, "t.csv");
        if (!rows.empty() && !rows.front().cells.empty())
            columns = {rows.front().cells.back(), "minimize:" + rows.front().cells.front()};
    });
    for (const std::string& column : columns)
        (void)accepted([&] {
            const PlainTable plain = read_plain_table(text, "t.csv", {column, {}});
            must_hold(parse_table(plain.csv, "t.csv").rows.size() == plain.table.rows.size(),
                      "a row is a row");
            const Yaml study = Yaml::parse(study_of(plain, "s", "t.csv"), "s.yaml");
            for (const auto& [key, node] : study.entries())
                must_hold(key != "space" || node.entries().size() == plain.table.parameters.size(),
                          "every parameter is searched");
        });
    return 0;
}
