// SPDX-License-Identifier: Apache-2.0
// The tables of ik_llama.cpp's llama-sweep-bench and of llama.cpp's llama-batched-bench: a row has
// a phase of prompts and one of answers, each with its own time and rate. A row is therefore two
// results, as llama-bench has them: no rate of one phase holds for the time of both.
#include "printed_lines.hpp"
#include "printed_tables.hpp"
#include "result_formats.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/value.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace servetune {
namespace {

using Cells = std::vector<std::string_view>;

/// The settings that both print above the table: `main: n_kv_max = 16384, n_batch = 2048, ...`.
std::map<std::string, std::string> settings_above(std::string_view text, std::size_t at) {
    std::map<std::string, std::string> settings;
    constexpr std::size_t reach = 1000;
    const std::size_t from = at < reach ? 0 : at - reach;
    const std::string_view before = text.substr(from, at - from);
    const auto found = before.rfind("n_kv_max = ");
    if (found == std::string_view::npos) return settings;
    std::string_view line = before.substr(found, before.find('\n', found) - found);
    if (!trimmed(before.substr(found + line.size())).empty()) return settings;  // of something else
    while (!line.empty()) {
        const auto comma = line.find(',');
        const std::string_view pair = line.substr(0, comma);
        if (const auto equals = pair.find(" = "); equals != std::string_view::npos)
            settings[one_line(trimmed(pair.substr(0, equals)))] =
                one_line(trimmed(pair.substr(equals + 3)));
        line = comma == std::string_view::npos ? std::string_view() : line.substr(comma + 1);
    }
    return settings;
}

/// The cells of a row by the names of the columns.
class PhaseRow {
public:
    PhaseRow(const Cells& header, const Cells& cells) : header_(header), cells_(cells) {}
    [[nodiscard]] std::string_view text(std::string_view column) const {
        const auto found = std::find(header_.begin(), header_.end(), column);
        return found == header_.end() ? std::string_view()
                                      : cells_[static_cast<std::size_t>(found - header_.begin())];
    }
    /// Not negative; nothing for another text. At most nine digits of a count.
    [[nodiscard]] std::optional<double> figure(std::string_view column) const {
        const auto number = real_of(text(column));
        return number && *number >= 0 ? number : std::nullopt;
    }
    [[nodiscard]] std::optional<double> count(std::string_view column) const {
        std::string_view cell = text(column);
        const auto whole = leading_count(cell);
        return whole && cell.empty() ? std::optional(static_cast<double>(*whole)) : std::nullopt;
    }

private:
    const Cells &header_, &cells_;
};

/// `pp512 @ d4096`, with ` x 4` for four sequences at once.
std::string phase_label(const char* phase, double tokens, double sequences, double depth) {
    return phase + short_number_text(tokens) +
           (sequences > 1 ? " x " + short_number_text(sequences) : "") +
           (depth > 0 ? " @ d" + short_number_text(depth) : "");
}

/// Both phases of a row; one without tokens or a rate is none. sweep-bench measures both behind
/// N_KV tokens, answers first. batched-bench measures the answers of B sequences behind their
/// prompts; its N_KV counts all tokens of the row, so of a prompt that all share only once.
void add_row(const PhaseRow& row, bool batched, const std::map<std::string, std::string>& settings,
             std::vector<PublishedResult>& into) {
    const auto prompt = row.count("PP"), answer = row.count("TG"), kept = row.count("N_KV");
    const auto sequences = batched ? row.count("B") : 1;
    if (!prompt || !answer || !kept || !sequences || *sequences < 1) return;
    const double answers = *answer * *sequences;
    const double prompts = batched ? *kept - answers : *prompt;
    const auto phase = [&](double tokens, const char* time, const char* rate, std::string label) {
        const auto per_second = row.figure(rate);
        if (tokens <= 0 || !per_second || *per_second <= 0) return;
        PublishedResult result;
        result.tool = batched ? "llama-batched-bench" : "llama-sweep-bench";
        result.labels.push_back(std::move(label));
        result.arguments_unknown = true;
        result.server_settings = settings;
        result.unread = settings;
        BenchmarkResult& figures = result.result;
        if (const auto seconds = row.figure(time); seconds > 0) figures.duration_seconds = seconds;
        if (batched) figures.maximum_concurrency = sequences;
        (rate[2] == 'P' ? figures.input_tokens : figures.output_tokens) = tokens;
        (rate[2] == 'P' ? figures.input_tokens_per_second : figures.output_tokens_per_second) =
            per_second;
        for (const char* column : {"T s", "S t/s", "RSS HWM", "VRAM delta"})
            if (const std::string_view cell = row.text(column); !cell.empty())
                result.unread[column] = one_line(cell);
        into.push_back(std::move(result));
    };
    const double depth = batched ? 0 : *kept;
    phase(prompts, "T_PP s", "S_PP t/s", phase_label("pp", *prompt, *sequences, depth));
    phase(answers, "T_TG s", "S_TG t/s",
          phase_label("tg", *answer, *sequences, batched ? *prompt : depth));
}

}  // namespace

std::optional<PrintedTable> read_llama_sweep_table(std::string_view text, std::size_t at) {
    PrintedLines lines(text, at);
    const auto first = lines.next();
    if (!first || !first->starts_with('|')) return std::nullopt;
    const Cells header = cells_of_row(*first);
    const auto has = [&](std::string_view name) {
        return std::find(header.begin(), header.end(), name) != header.end();
    };
    for (const std::string_view name : {"PP", "TG", "N_KV", "S_PP t/s", "S_TG t/s"})
        if (!has(name)) return std::nullopt;
    const auto settings = settings_above(text, at);
    PrintedTable table{at, lines.end(), {}, false};
    std::size_t unread = 0;
    while (const auto line = lines.next()) {
        if (!line->starts_with('|')) break;
        table.end = lines.end();
        const Cells cells = cells_of_row(*line);
        if (cells.size() == header.size())
            add_row(PhaseRow(header, cells), has("B"), settings, table.results);
        else ++unread;
    }
    if (unread > 0 && !table.results.empty())
        table.results.front().unread["rows of another length"] = std::to_string(unread);
    return table;
}

}  // namespace servetune
