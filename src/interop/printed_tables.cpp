// SPDX-License-Identifier: Apache-2.0
#include "printed_tables.hpp"

#include <array>
#include <utility>

namespace servetune {

std::vector<PrintedTable> printed_tables(std::string_view text) {
    constexpr std::array readers{read_llama_bench_table, read_llama_sweep_table, read_perf_console,
                                 read_evalscope_console};
    std::vector<PrintedTable> tables;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t next = text.find('\n', at);
        next = next == std::string_view::npos ? text.size() : next + 1;
        for (const auto& read : readers)
            if (auto table = read(text, at)) {
                next = table->end;
                if (!table->results.empty()) tables.push_back(*std::move(table));
                break;
            }
        at = next;
    }
    return tables;
}

}  // namespace servetune
