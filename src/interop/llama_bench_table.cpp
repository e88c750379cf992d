// SPDX-License-Identifier: Apache-2.0
// The Markdown table of llama-bench, its default output: a row a test. Its columns are the settings
// that were given; most have a shorter name than in the JSON. A row becomes the JSON of its test,
// so both are read by one reader.
#include "printed_lines.hpp"
#include "printed_tables.hpp"
#include "result_formats.hpp"
#include "servetune/value.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

namespace servetune {
namespace {

using Json = nlohmann::json;
using Cells = std::vector<std::string_view>;

/// Names of columns -> keys of the JSON, of llama.cpp and of ik_llama.cpp (mla to nd). Others are
/// the same in both.
constexpr std::array<std::pair<std::string_view, std::string_view>, 31> keys_of_columns{
    {{"model", "model_type"},
     {"size", "model_size"},
     {"params", "model_n_params"},
     {"backend", "backends"},
     {"ngl", "n_gpu_layers"},
     {"threads", "n_threads"},
     {"sm", "split_mode"},
     {"nkvo", "no_kv_offload"},
     {"fa", "flash_attn"},
     {"lm", "load_mode"},
     {"mmap", "use_mmap"},
     {"dio", "use_direct_io"},
     {"embd", "embeddings"},
     {"nopo", "no_op_offload"},
     {"noh", "no_host"},
     {"dev", "devices"},
     {"ts", "tensor_split"},
     {"ot", "tensor_buft_overrides"},
     {"fitt", "fit_target"},
     {"fitc", "fit_min_ctx"},
     {"mla", "mla_attn"},
     {"amb", "attn_max_batch"},
     {"gr", "reuse"},
     {"rtr", "repack"},
     {"defer", "defer_experts"},
     {"thp", "use_thp"},
     {"fmoe", "fused_moe"},
     {"ger", "grouped_er"},
     {"no-fug", "no_fused_up_gate"},
     {"no-ooae", "no_ooae"},
     {"nd", "n_draft"}}};

/// Keys that are truth values in the JSON of every version, and 0 or 1 in the table.
bool is_truth_value(std::string_view key) {
    constexpr std::array<std::string_view, 11> keys{
        "no_kv_offload", "cpu_strict", "embeddings", "no_host",    "use_mmap",        "reuse",
        "repack",        "use_thp",    "fused_moe",  "grouped_er", "no_fused_up_gate"};
    return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// `pp512`, `tg128`, `pp512+tg128`, each also `@ d4096`; of 2023 `pp 512`; ik_llama.cpp's
/// `tg128@pp512`, answers behind a prompt that is not measured. No test measures nothing.
std::optional<Json> test_of(std::string_view name) {
    const auto count_of = [&](std::string_view kind) -> std::optional<std::size_t> {
        std::string_view rest = name;
        if (!rest.starts_with(kind)) return 0;
        rest = trimmed(rest.substr(kind.size()));
        const auto count = leading_count(rest);
        if (count) name = trimmed(rest);
        return count;
    };
    const auto prompt = count_of("pp");
    if (!prompt) return std::nullopt;
    if (*prompt > 0 && name.starts_with('+')) name = trimmed(name.substr(1));
    const auto answer = count_of("tg");
    if (!answer || *prompt + *answer == 0) return std::nullopt;
    std::optional<std::size_t> depth = 0;
    if (name.starts_with('@')) {
        name = trimmed(name.substr(1));
        depth = count_of("d");
        if (depth == 0 && *prompt == 0) depth = count_of("pp");
    }
    if (!depth || !name.empty()) return std::nullopt;
    return Json{{"n_prompt", *prompt}, {"n_gen", *answer}, {"n_depth", *depth}};
}

/// `404.67 ± 3.65`, or the mean alone, as of one repetition that somebody shortened.
bool read_mean_rate(std::string_view cell, Json& test) {
    std::string_view mean = cell, spread;
    for (const std::string_view sign : {"±", "+/-", "+-"})
        if (const auto at = cell.find(sign); at != std::string_view::npos) {
            mean = trimmed(cell.substr(0, at));
            spread = trimmed(cell.substr(at + sign.size()));
            break;
        }
    const auto rate = real_of(mean);
    if (!rate || !std::isfinite(*rate) || *rate <= 0) return false;
    test["avg_ts"] = *rate;
    if (const auto deviation = real_of(spread); deviation && std::isfinite(*deviation))
        test["stddev_ts"] = *deviation;
    return true;
}

bool is_size(std::string_view cell) { return cell.ends_with(" GiB") || cell.ends_with(" MiB"); }
bool is_parameters(std::string_view cell) { return cell.ends_with(" B") || cell.ends_with(" M"); }

/// model, test and t/s, and one of the columns that are always there.
bool is_header(const Cells& cells) {
    const auto has = [&](std::string_view name) {
        return std::find(cells.begin(), cells.end(), name) != cells.end();
    };
    return has("model") && has("test") && has("t/s") &&
           (has("size") || has("params") || has("backend"));
}

/// The header of a row that stands without one: llama-bench logs between both, and people keep the
/// row. Only the first and the last columns have a name then.
Cells header_of_lone_row(const Cells& cells) {
    Json rate;
    if (cells.size() < 6 || !is_size(cells[1]) || !is_parameters(cells[2]) ||
        !test_of(cells[cells.size() - 2]) || !read_mean_rate(cells.back(), rate))
        return {};
    Cells header(cells.size());
    header[0] = "model", header[1] = "size", header[2] = "params", header[3] = "backend";
    header[cells.size() - 2] = "test", header[cells.size() - 1] = "t/s";
    return header;
}

/// A row as the JSON of its test; nothing for a row without one.
std::optional<Json> test_in_row(const Cells& header, const Cells& cells) {
    std::optional<Json> test;
    for (std::size_t i = 0; i < header.size(); ++i)
        if (header[i] == "test") test = test_of(cells[i]);
    if (!test) return std::nullopt;
    bool measured = false;
    std::string unnamed;
    for (std::size_t i = 0; i < header.size(); ++i) {
        if (header[i] == "test" || (header[i] == "t/s" && measured)) continue;
        if (header[i] == "t/s") {
            measured = read_mean_rate(cells[i], *test);
            continue;
        }
        const std::string text = one_line(cells[i]);
        if (text.empty()) continue;
        if (header[i].empty()) {
            unnamed += (unnamed.empty() ? "" : ", ") + text;
            continue;
        }
        const auto known = std::find_if(keys_of_columns.begin(), keys_of_columns.end(),
                                        [&](const auto& pair) { return pair.first == header[i]; });
        const std::string key =
            one_line(known == keys_of_columns.end() ? header[i] : known->second);
        if (test->contains(key))
            continue;  // a second column of this name, or one called as a figure
        if (is_truth_value(key) && (text == "0" || text == "1")) (*test)[key] = text == "1";
        else (*test)[key] = text;
    }
    if (!measured) return std::nullopt;
    if (!unnamed.empty()) (*test)["columns without a name"] = unnamed;
    return test;
}

/// `build: 9515c613 (6097)`.
bool read_build(std::string_view line, Json& build) {
    if (!line.starts_with("build: ")) return false;
    const auto open = line.find(" (");
    if (open == std::string_view::npos) return false;
    std::string_view number = line.substr(open + 2);
    const auto count = leading_count(number);
    if (!count || number != ")") return false;
    build = {{"build_commit", one_line(trimmed(line.substr(7, open - 7)))},
             {"build_number", *count}};
    return true;
}

}  // namespace

std::optional<PrintedTable> read_llama_bench_table(std::string_view text, std::size_t at) {
    PrintedLines lines(text, at);
    const auto first = lines.next();
    if (!first || !first->starts_with('|')) return std::nullopt;
    Cells header = cells_of_row(*first);
    const bool lone = !is_header(header);
    if (lone) header = header_of_lone_row(header);
    if (header.empty()) return std::nullopt;
    PrintedTable table{at, lines.end(), {}, false};
    std::vector<Json> tests;
    std::size_t unread = 0;
    Json build = Json::object();
    if (lone) tests.push_back(*test_in_row(header, cells_of_row(*first)));
    // Logs may stand between the rows (-v, or both outputs of the terminal) and above the build.
    while (const auto line = lines.next()) {
        if (ends_printed_output(*line) || line->starts_with("┏") || line->starts_with("┃") ||
            line->starts_with("┌") || line->starts_with("+-") || line->starts_with("# ") ||
            line->starts_with("##"))
            break;
        if (read_build(*line, build)) {
            table.end = lines.end();
            break;
        }
        if (!line->starts_with('|')) continue;
        const Cells cells = cells_of_row(*line);
        if (!cells.empty() && (cells[0] == "PP" || cells[0] == "Metric" ||
                               cells[0] == "Statistic" || cells[0] == "Key"))
            break;
        const bool fits = cells.size() == header.size();
        auto test = fits ? test_in_row(header, cells) : std::nullopt;
        if (!test && (is_header(cells) || !header_of_lone_row(cells).empty()))
            break;  // the next table
        const bool goes_on = lines.begin() == table.end;
        if (goes_on || test) table.end = lines.end();
        if (test) tests.push_back(*std::move(test));
        else if (goes_on && !is_rule(cells)) ++unread;
    }
    for (Json& test : tests) {
        test.update(build);
        for (PublishedResult& result : llama_bench_format.read(test)) {
            result.server_settings.erase("columns without a name");
            if (unread > 0 && table.results.empty())
                result.unread["rows that cannot be read"] = std::to_string(unread);
            table.results.push_back(std::move(result));
        }
    }
    return table;
}

}  // namespace servetune
