// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/interop/published.hpp"

#include "client_load.hpp"
#include "planned_requests.hpp"
#include "printed_tables.hpp"
#include "result_block.hpp"
#include "shell_text.hpp"
#include "surroundings.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <utility>

namespace servetune {
namespace {

/// Where a block ends: at its rule, or, where that was not copied, at the end of its fence, with a
/// heading or with HTML.
std::size_t block_size(std::string_view from_title) {
    std::size_t end = from_title.size();
    for (const std::string_view ends : {"==========", "```", "\n#", "\n</"})
        end = std::min(end, from_title.substr(0, end).find(ends));
    return std::min(end, from_title.size());
}

/// What word processors and blogs made of blanks and dashes, as it was typed: `--max-num-seqs`.
std::string as_typed(std::string_view text) {
    constexpr std::string_view no_break = "\xc2\xa0", en = "\xe2\x80\x93", em = "\xe2\x80\x94";
    std::string result;
    result.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view rest = text.substr(at);
        if (rest.starts_with(no_break)) {
            result += ' ';
            at += no_break.size();
            continue;
        }
        const bool begins =
            result.empty() || std::isspace(static_cast<unsigned char>(result.back())) != 0;
        std::size_t dashes = 0;
        while (begins &&
               (rest.substr(dashes).starts_with(en) || rest.substr(dashes).starts_with(em)))
            dashes += en.size();
        if (dashes > 0 && dashes < rest.size() &&
            std::isalpha(static_cast<unsigned char>(rest[dashes])) != 0) {
            const std::size_t name = rest.find_first_of(" =\t\n", dashes) - dashes;
            const bool is_short = dashes == en.size() && rest.starts_with(en) && name < 4;  // `-tp`
            result += is_short ? "-" : "--";
            at += dashes;
            continue;
        }
        result += text[at++];
    }
    return result;
}

/// What a table says of a result, and what the text around the table says of it.
PublishedResult with_surroundings(const Surroundings& surroundings, PublishedResult result,
                                  bool measures_server) {
    PublishedResult around;
    surroundings.describe(around);
    result.sections = std::move(around.sections);
    result.labels.insert(result.labels.end(), around.labels.begin(), around.labels.end());
    if (!measures_server) return result;
    result.arguments = std::move(around.arguments);
    result.arguments_unknown = around.arguments_unknown;
    result.engine = std::move(around.engine);
    result.not_recognised = std::move(around.not_recognised);
    return result;
}

/// Of a document in which nobody can say whether a command belongs to the block above or below it.
void take_command(PublishedResult& result) {
    result.not_recognised =
        "the first result has no command above it and the last has one below, so this may be of "
        "either: " +
        cut_to(result.arguments, 120);
    result.arguments.clear();
    result.arguments_unknown = true;
}

}  // namespace

std::vector<PublishedResult> read_published(std::string_view written,
                                            const std::vector<Engine>& engines) {
    constexpr std::string_view marker = "Serving Benchmark Result";
    const std::string typed = as_typed(written);
    const std::string_view text = typed;
    std::vector<PublishedResult> results;
    Surroundings surroundings(engines);
    PlannedRequests planned;
    ClientLoads loads;
    std::vector<std::size_t> of_server;  // the results that a load was said above, in their order
    std::size_t after_last = 0;
    const auto read_between = [&](std::size_t begin) {
        const std::string_view between = text.substr(after_last, begin - after_last);
        surroundings.read(between);
        planned.read(between);
        return between;
    };
    std::vector<PrintedTable> tables = printed_tables(text);
    auto table = tables.begin();
    const auto read_tables = [&](std::size_t until) {
        for (; table != tables.end() && table->begin < until; ++table) {
            if (table->begin < after_last) continue;
            const std::string_view between = read_between(table->begin);
            for (PublishedResult& result : table->results) {
                results.push_back(
                    with_surroundings(surroundings, std::move(result), table->measures_server));
                if (table->measures_server)
                    results.back().planned_requests = planned.of(results.back().result);
            }
            surroundings.end_result();
            if (table->measures_server && !table->results.empty()) {
                loads.add(between);
                of_server.push_back(results.size() - 1);
            }
            after_last = table->end;
        }
    };
    for (std::size_t at = text.find(marker); at != std::string_view::npos;
         at = text.find(marker, after_last)) {
        read_tables(at);
        if (at < after_last) continue;
        std::size_t begin = at;  // the rule before the title belongs to the block
        while (begin > after_last && (text[begin - 1] == '=' || text[begin - 1] == ' ')) --begin;
        loads.add(read_between(begin));
        std::size_t content = at + marker.size();
        while (content < text.size() && (text[content] == '=' || text[content] == ' ')) ++content;
        const std::size_t next_table =
            table == tables.end() ? text.size() : std::max(table->begin, content);
        const std::size_t next = std::min(text.find(marker, content), next_table);
        const std::size_t end = content + block_size(text.substr(content, next - content));
        PublishedResult result;
        surroundings.describe(result);
        surroundings.end_result();
        read_block(text.substr(content, end - content), result);
        result.planned_requests = planned.of(result.result);
        of_server.push_back(results.size());
        results.push_back(std::move(result));
        after_last = end;
        while (after_last < text.size() && text[after_last] == '=') ++after_last;
    }
    read_tables(text.size());
    if (!results.empty()) {
        surroundings.read(text.substr(after_last));
        // Blocks above their commands: each took that of the block before it.
        const bool first_has_none =
            of_server.size() > 1 && results[of_server.front()].arguments_unknown;
        if (first_has_none && results[of_server.front()].not_recognised.empty() &&
            surroundings.has_command())
            for (const std::size_t i : of_server)
                if (!results[i].arguments_unknown) take_command(results[i]);
    }
    std::vector<PublishedResult*> blocks;
    for (const std::size_t i : of_server) blocks.push_back(&results[i]);
    loads.tell(blocks);
    for (std::size_t i = 0; i < results.size(); ++i) results[i].index = i;
    return results;
}

}  // namespace servetune
