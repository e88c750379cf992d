// SPDX-License-Identifier: Apache-2.0
#include "plain_table.hpp"

#include "base/lower_case.hpp"
#include "base/utf8.hpp"
#include "servetune/benchmark_result.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/error.hpp"
#include "study/table.hpp"
#include "study_file/parameter_reader.hpp"
#include "study_file/yaml_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>

namespace servetune {
namespace {

using Names = std::vector<std::string>;

template <std::size_t count>
bool any_of_words(const Names& words, const std::array<std::string_view, count>& known) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
        return std::find(known.begin(), known.end(), word) != known.end();
    });
}

std::string without_blanks_around(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return "";
    return std::string(text.substr(first, text.find_last_not_of(" \t") + 1 - first));
}

/// What the first line has most of.
char separator_of(std::string_view text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    char best = ',';
    std::array<std::ptrdiff_t, 3> counts{};
    constexpr std::string_view known = ",;\t";
    bool quoted = false;
    for (const char c : line) {
        if (c == '"') quoted = !quoted;
        if (const auto at = known.find(c); !quoted && at != std::string_view::npos) ++counts.at(at);
    }
    for (std::size_t i = 1; i < known.size(); ++i)
        if (counts.at(i) > counts.at(known.find(best))) best = known[i];
    return best;
}

/// Of `Mean TTFT (ms)` mean, ttft, ms; of `tok/s` tok, per, s.
Names words_in_name(std::string_view name) {
    Names words(1);
    for (const char c : name) {
        const auto u = static_cast<unsigned char>(c);
        if (std::isalnum(u) != 0 || u >= 0x80) words.back() += static_cast<char>(std::tolower(u));
        else if (!words.back().empty()) words.emplace_back();
        if (c == '/') {
            words.back() = "per";
            words.emplace_back();
        }
    }
    if (words.back().empty()) words.pop_back();
    return words;
}

/// Of `tok/s`, `requests per second`.
bool names_rate(const Names& words) {
    constexpr std::array<std::string_view, 3> seconds{"s", "sec", "second"};
    return words.size() > 2 && words[words.size() - 2] == "per" &&
           std::find(seconds.begin(), seconds.end(), words.back()) != seconds.end();
}

/// The metric of load tests that a name stands for; empty: none.
std::string metric_called(const std::string& name) {
    const std::string metric = metric_of_word(lower_case(name));
    constexpr std::array<std::string_view, 5> settings{"requested_requests", "maximum_concurrency",
                                                       "requested_rate_per_second", "input_tokens",
                                                       "output_tokens"};
    if (std::find(settings.begin(), settings.end(), metric) != settings.end()) return "";
    bool known =
        metric == "success_ratio" || metric.ends_with("_per_gpu") || less_is_better(metric);
    const BenchmarkResult names_only;
    for_each_figure(names_only, [&](const std::string& figure, const std::optional<double>&) {
        known = known || figure == metric;
    });
    return known ? metric : "";
}

/// Whether numbers under this name are measured and not set.
bool names_figure(const std::string& name) {
    constexpr std::array<std::string_view, 17> figures{
        "latency", "ttft", "tpot", "itl", "throughput", "goodput", "tps",        "qps",     "rps",
        "fps",     "p50",  "p90",  "p95", "p99",        "loss",    "perplexity", "accuracy"};
    constexpr std::array<std::string_view, 9> settings{
        "max", "min", "limit", "target", "timeout", "budget", "threshold", "maximum", "minimum"};
    const Names words = words_in_name(name);
    if (any_of_words(words, settings)) return false;
    return names_rate(words) || !metric_called(name).empty() || any_of_words(words, figures);
}

/// A column that counts rows: those that differ in it alone are repeats.
bool counts_rows(const std::string& name) {
    constexpr std::array<std::string_view, 12> names{
        "run",  "rep",   "repeat", "repetition", "replicate", "trial",
        "seed", "index", "id",     "date",       "timestamp", "unnamed: 0"};
    const std::string low = lower_case(name);
    return low.empty() || std::find(names.begin(), names.end(), low) != names.end();
}

/// What a name says of the direction; nothing where it says nothing, or both.
std::optional<Direction> direction_of(const std::string& name) {
    if (const std::string metric = metric_called(name); !metric.empty())
        return less_is_better(metric) ? Direction::minimize : Direction::maximize;
    constexpr std::array<std::string_view, 34> less{
        "latency", "ttft",     "tpot",       "itl",     "time",    "seconds", "sec",
        "ms",      "us",       "duration",   "runtime", "elapsed", "loss",    "error",
        "errors",  "cost",     "price",      "usd",     "energy",  "joules",  "watts",
        "power",   "memory",   "misses",     "failed",  "p50",     "p90",     "p95",
        "p99",     "failures", "perplexity", "regret",  "rmse",    "mae"};
    constexpr std::array<std::string_view, 22> more{
        "throughput", "score",     "accuracy", "speed",  "tps",    "qps",    "rps", "fps",
        "goodput",    "bandwidth", "iops",     "flops",  "gflops", "tflops", "mfu", "speedup",
        "gain",       "profit",    "revenue",  "reward", "f1",     "auc"};
    const Names words = words_in_name(name);
    const bool is_more = names_rate(words) || any_of_words(words, more);
    const bool is_less = !names_rate(words) && any_of_words(words, less);
    if (is_more == is_less) return std::nullopt;
    return is_more ? Direction::maximize : Direction::minimize;
}

/// What stands for "no value" in tables that programs write.
bool is_missing(const std::string& cell) {
    constexpr std::array<std::string_view, 5> words{"", "nan", "na", "n/a", "null"};
    return std::find(words.begin(), words.end(), lower_case(cell)) != words.end();
}

/// Names that have a meaning of their own in a table, or in a study.
bool is_reserved(std::string_view name) {
    constexpr std::array<std::string_view, 11> names{"engine",   "workload",  "repeat",  "block",
                                                     "section",  "status",    "message", "verdict",
                                                     "findings", "arguments", "note"};
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// A name that rules, options and reports can use.
std::string usable_name(const std::string& column) {
    std::string result;
    for (const char c : column) {
        const auto u = static_cast<unsigned char>(c);
        if (std::isalnum(u) != 0 || u >= 0x80 || c == '-') result += c;
        else if (!result.empty() && result.back() != '_') result += '_';
    }
    while (result.ends_with('_')) result.pop_back();
    return is_reserved(result) ? result + "_" : result;
}

std::string listed_names(const Names& names) { return listed(names, names.size()); }

enum class Role { parameter, figure, left_out };

class PlainTableReader {
public:
    PlainTableReader(std::string_view text, const std::string& name,
                     const PlainTableRequest& request)
        : name_(name),
          request_(request),
          separator_(separator_of(text)),
          rows_(parse_csv(text, name, separator_)) {
        if (rows_.empty()) fail(1, "a table starts with a line of column names");
        for (CsvRow& row : rows_)
            for (std::string& cell : row.cells) cell = without_blanks_around(cell);
        for (std::size_t r = 1; r < rows_.size(); ++r)
            if (rows_[r].cells.size() != header().size())
                fail(rows_[r].line, std::to_string(header().size()) + " cells wanted, got " +
                                        std::to_string(rows_[r].cells.size()));
        std::set<std::string> seen;
        for (const std::string& column : header())
            if (!column.empty() && !seen.insert(column).second)
                fail(1, "the column '" + start_of(column, 80) + "' stands twice");
    }

    PlainTable read() {
        if (column_called("status")) return read_measured();
        find_goal();
        if (rows_.size() < 2) fail(1, "the table has no rows");
        find_roles();
        name_columns();
        return converted();
    }

private:
    [[noreturn]] void fail(std::size_t line, const std::string& message) const {
        throw ParseError(name_ + ":" + std::to_string(line) + ": " + message);
    }
    [[nodiscard]] const Names& header() const { return rows_.front().cells; }
    [[nodiscard]] std::optional<std::size_t> column_called(std::string_view name) const {
        const auto found = std::find(header().begin(), header().end(), name);
        return found == header().end()
                   ? std::nullopt
                   : std::optional(static_cast<std::size_t>(found - header().begin()));
    }
    [[nodiscard]] std::size_t column_at(const std::string& wanted,
                                        const std::string& option) const {
        if (const auto found = column_called(wanted)) return *found;
        fail(1, option + ": the table has no column '" + start_of(wanted, 80) +
                    "'; it has: " + listed(nearest_first(wanted, header())));
    }

    /// `minimize:COLUMN` is a direction and a column, unless a column is called so.
    void find_goal() {
        std::string wanted = request_.objective;
        std::optional<Direction> said;
        for (const auto& [word, direction] :
             {std::pair{"maximize:", Direction::maximize}, {"minimize:", Direction::minimize}})
            if (!column_called(wanted) && wanted.starts_with(word)) {
                wanted.erase(0, std::string_view(word).size());
                said = direction;
            }
        objective_ = column_at(wanted, "--objective");
        const auto told = said ? said : direction_of(wanted);
        if (!told)
            fail(1, "nothing says whether more or less of '" + wanted +
                        "' is better; write --objective maximize:" + wanted +
                        " or --objective minimize:" + wanted);
        goal_ = {wanted, *told};
        goal_said_ = said.has_value();
    }

    /// A number as a person or a program wrote it; with semicolons between cells it may have a
    /// decimal comma.
    [[nodiscard]] std::optional<double> number_in(std::string cell) const {
        if (cell.starts_with('+')) cell.erase(0, 1);
        if (separator_ == ';' && std::count(cell.begin(), cell.end(), ',') == 1 &&
            cell.find('.') == std::string::npos)
            cell[cell.find(',')] = '.';
        return real_of(cell);
    }

    struct Content {
        bool any = false, numbers = true, whole = true, booleans = true, ascending = true;
        std::set<std::string> different{};
    };
    [[nodiscard]] Content content_of(std::size_t column) const {
        Content result;
        std::optional<double> last;
        for (std::size_t r = 1; r < rows_.size(); ++r) {
            const std::string& cell = rows_[r].cells[column];
            if (is_missing(cell)) continue;
            result.any = true;
            result.different.insert(cell);
            const auto number = number_in(cell);
            const std::string low = lower_case(cell);
            result.booleans = result.booleans && (low == "true" || low == "false");
            result.numbers = result.numbers && number.has_value();
            result.whole = result.whole && number && *number == std::floor(*number) &&
                           std::abs(*number) < 1e15;
            result.ascending = result.ascending && (!last || !number || *number >= *last);
            last = number;
        }
        return result;
    }

    void find_roles() {
        contents_.clear();
        for (std::size_t c = 0; c < header().size(); ++c) contents_.push_back(content_of(c));
        roles_.assign(header().size(), Role::left_out);
        roles_[objective_] = Role::figure;
        if (request_.parameters.empty()) roles_as_told_by_columns();
        else roles_as_said();
        if (std::count(roles_.begin(), roles_.end(), Role::parameter) == 0)
            fail(1, "no column is a parameter; say which are: --parameter COLUMN");
    }

    void roles_as_said() {
        for (std::size_t c = 0; c < header().size(); ++c)
            if (contents_[c].any && contents_[c].numbers) roles_[c] = Role::figure;
        for (const std::string& wanted : request_.parameters) {
            const std::size_t column = column_at(wanted, "--parameter");
            if (column == objective_)
                fail(1, "the column '" + wanted + "' is the objective, so it is no parameter");
            roles_[column] = Role::parameter;
        }
    }

    void roles_as_told_by_columns() {
        Names certain, doubtful;
        std::vector<std::size_t> doubted;
        for (std::size_t c = 0; c < header().size(); ++c) {
            if (c == objective_ || counts_rows(header()[c]) || !contents_[c].any) continue;
            if (is_known_parameter(header()[c])) roles_[c] = Role::parameter;
            else if (contents_[c].numbers && names_figure(header()[c])) roles_[c] = Role::figure;
            else roles_[c] = Role::parameter;
        }
        const auto left = [&](std::size_t c) {
            return c < objective_ && roles_[c] == Role::parameter;
        };
        bool any_left = false;
        for (std::size_t c = 0; c < header().size(); ++c) any_left = any_left || left(c);
        for (std::size_t c = 0; c < header().size(); ++c) {
            if (roles_[c] != Role::parameter) continue;
            (may_be_figure(c, any_left) ? doubtful : certain).push_back(header()[c]);
        }
        if (certain.empty() || doubtful.empty()) return;  // there is a parameter
        fail(1, "'" + listed_names(doubtful) +
                    "' may be set or measured; say which columns are parameters: --parameter " +
                    listed_names(certain) + " (all others are then measured)");
    }

    [[nodiscard]] bool is_known_parameter(const std::string& column) const {
        std::string name = lower_case(column);
        while (name.starts_with('-')) name.erase(0, 1);
        std::replace(name.begin(), name.end(), '-', '_');
        return request_.known_parameters.contains(name);
    }

    /// Numbers behind the objective, and numbers as they come of a clock: no few that return, in no
    /// order.
    [[nodiscard]] bool may_be_figure(std::size_t c, bool parameters_on_the_left) const {
        const Content& content = contents_[c];
        if (!content.numbers || is_known_parameter(header()[c])) return false;
        if (c > objective_ && parameters_on_the_left) return true;
        constexpr std::size_t enough_rows = 6;
        const std::size_t rows = rows_.size() - 1;
        return rows >= enough_rows && !content.whole && !content.ascending &&
               2 * content.different.size() > rows;
    }

    void name_columns() {
        std::map<std::string, std::string> taken;
        for (std::size_t c = 0; c < header().size(); ++c) {
            std::string name = usable_name(header()[c]);
            if (name.empty()) name = "column_" + std::to_string(c + 1);
            names_.push_back(name);
            if (roles_[c] == Role::left_out) continue;
            const auto [other, is_new] = taken.emplace(name, header()[c]);
            if (!is_new)
                fail(1, "the columns '" + other->second + "' and '" + header()[c] +
                            "' would both be called '" + name + "'");
            if (name != header()[c])
                renamed_.push_back("'" + start_of(header()[c], 80) + "' is called " + name);
        }
        goal_.metric = names_[objective_];
    }

    [[nodiscard]] std::string parameter_cell(std::size_t column, const std::string& cell) const {
        const Content& content = contents_[column];
        if (is_missing(cell)) return std::string(unset_text);
        if (content.booleans) return lower_case(cell);
        if (!content.numbers) return cell;
        const double number = *number_in(cell);
        return content.whole ? std::to_string(static_cast<std::int64_t>(number)) : text_of(number);
    }

    /// The figure in a cell; nothing where there is none. A text that begins as a number is a
    /// mistake.
    [[nodiscard]] std::optional<double> figure_in(std::size_t row, std::size_t column) const {
        const std::string& cell = rows_[row].cells[column];
        if (const auto number = number_in(cell)) return number;
        if (cell.find_first_of("0123456789") == 0 ||
            (cell.size() > 1 && std::isdigit(static_cast<unsigned char>(cell[1])) != 0))
            fail(rows_[row].line,
                 header()[column] + ": a number wanted, got '" + start_of(cell, 80) + "'");
        return std::nullopt;
    }

    PlainTable converted() {
        std::vector<std::size_t> parameters, figures{objective_};
        for (std::size_t c = 0; c < header().size(); ++c) {
            if (roles_[c] == Role::parameter) parameters.push_back(c);
            else if (roles_[c] == Role::figure && c != objective_) figures.push_back(c);
        }
        std::vector<Names> settings;
        std::map<Names, std::size_t> times;
        for (std::size_t r = 1; r < rows_.size(); ++r) {
            Names cells;
            for (const std::size_t c : parameters)
                cells.push_back(parameter_cell(c, rows_[r].cells[c]));
            ++times[cells];
            settings.push_back(std::move(cells));
        }
        const bool repeats = times.size() < settings.size();
        Names line;
        for (const std::size_t c : parameters) line.push_back(names_[c]);
        if (repeats) line.emplace_back("repeat");
        line.emplace_back("status");
        for (const std::size_t c : figures) line.push_back(names_[c]);
        line.emplace_back("message");
        PlainTable result;
        result.csv = csv_line(line);
        std::map<Names, std::size_t> counted;
        std::size_t without = 0;
        for (std::size_t r = 1; r < rows_.size(); ++r) {
            line = settings[r - 1];
            if (repeats) line.push_back(std::to_string(++counted[line]));
            const auto objective = figure_in(r, objective_);
            line.emplace_back(objective ? "ok" : "invalid_result");
            for (const std::size_t c : figures) {
                const auto figure = figure_in(r, c);
                line.push_back(figure && objective ? text_of(*figure) : "");
            }
            const std::string& cell = rows_[r].cells[objective_];
            line.push_back(objective
                               ? ""
                               : header()[objective_] + " is " +
                                     (cell.empty() ? "empty" : "'" + start_of(cell, 80) + "'"));
            without += objective ? 0 : 1;
            result.csv += csv_line(line);
        }
        if (without + 1 == rows_.size())
            fail(rows_[1].line, "no row has a number under '" + header()[objective_] + "'");
        result.table = parse_table(result.csv, name_);
        result.goal = goal_;
        say_what_was_taken(result, parameters, figures, times.size(), without);
        return result;
    }

    void say_what_was_taken(PlainTable& result, const std::vector<std::size_t>& parameters,
                            const std::vector<std::size_t>& figures, std::size_t configurations,
                            std::size_t without) const {
        Names set, measured, out;
        for (const std::size_t c : parameters) set.push_back(names_[c]);
        for (const std::size_t c : figures)
            if (c != objective_) measured.push_back(names_[c]);
        for (std::size_t c = 0; c < header().size(); ++c)
            if (roles_[c] == Role::left_out)
                out.push_back(header()[c].empty() ? "column " + std::to_string(c + 1)
                                                  : header()[c]);
        const bool more = goal_.direction == Direction::maximize;
        result.remarks.push_back("parameters: " + listed_names(set));
        result.remarks.push_back(
            "objective: " + goal_.text() +
            (goal_said_ ? ""
                        : std::string(" (its name says so; the other way: --objective ") +
                              (more ? "minimize:" : "maximize:") + header()[objective_] + ")"));
        if (!measured.empty()) result.remarks.push_back("also measured: " + listed_names(measured));
        if (!out.empty()) result.remarks.push_back("left out: " + listed_names(out));
        if (!renamed_.empty()) result.remarks.push_back("names: " + listed_names(renamed_));
        result.remarks.push_back(std::to_string(rows_.size() - 1) + " rows of " +
                                 std::to_string(configurations) + " configurations");
        if (without > 0)
            result.remarks.push_back(std::to_string(without) +
                                     " rows have no figure and count as failed");
    }

    /// The table says itself what its columns are.
    PlainTable read_measured() {
        if (!request_.parameters.empty())
            fail(1,
                 "--parameter: the column 'status' says which columns are parameters: those left "
                 "of it");
        PlainTable result;
        for (const CsvRow& row : rows_) result.csv += csv_line(row.cells);
        result.table = parse_table(result.csv, name_);
        find_goal();
        for (const MeasuredTable::Row& row : result.table.rows) {
            if (!row.workload.empty())
                fail(row.line,
                     "the rows are of workloads; write a study that names them "
                     "(search_spaces/FORMAT.md, replay)");
            for (std::size_t p = 0; p < row.cells.size(); ++p)
                if (!row.cells[p])
                    fail(row.line, "'" + result.table.parameters[p] +
                                       "' has no value; of what it depends is not said");
        }
        const auto has_goal = [&](const MeasuredTable::Row& row) {
            const auto* measured = std::get_if<Measurement>(&row.outcome);
            return measured != nullptr && measured->metrics.contains(goal_.metric);
        };
        if (std::none_of(result.table.rows.begin(), result.table.rows.end(), has_goal))
            fail(1, "--objective: '" + goal_.metric +
                        "' is no metric with a number: those stand right of 'status'");
        result.goal = goal_;
        result.remarks.push_back("parameters: " + listed_names(result.table.parameters));
        result.remarks.push_back("objective: " + goal_.text());
        return result;
    }

    std::string name_;
    const PlainTableRequest& request_;
    char separator_;
    std::vector<CsvRow> rows_;
    std::size_t objective_ = 0;
    Goal goal_;
    bool goal_said_ = false;
    std::vector<Content> contents_;
    std::vector<Role> roles_;
    Names names_;  ///< of each column, as the study calls it
    Names renamed_;
};

/// A cell in a list of YAML: numbers, true, false and `engine` as they are, other texts so that
/// they stay texts.
std::string yaml_cell(const std::string& cell) {
    return std::holds_alternative<std::string>(value_of(cell)) ? yaml_text(cell) : cell;
}

}  // namespace

PlainTable read_plain_table(std::string_view text, const std::string& name,
                            const PlainTableRequest& request) {
    return PlainTableReader(utf8_text(text, name), name, request).read();
}

std::string study_of(const PlainTable& plain, const std::string& study,
                     const std::string& table_file) {
    const MeasuredTable& table = plain.table;
    const auto measured =
        std::find_if(table.rows.begin(), table.rows.end(), [&](const MeasuredTable::Row& row) {
            const auto* found = std::get_if<Measurement>(&row.outcome);
            return found != nullptr && found->metrics.contains(plain.goal.metric);
        });
    if (measured == table.rows.end())
        throw ParseError(table.source + ": no row has a number under '" + plain.goal.metric + "'");
    std::string yaml =
        "# Written by `autotune import --objective`. The default is the first measured "
        "row.\nstudy: " +
        yaml_text(study) + "\nspace:\n";
    for (std::size_t p = 0; p < table.parameters.size(); ++p) {
        Names cells;  // in the table's order, each once
        std::set<std::string> seen;
        for (const MeasuredTable::Row& row : table.rows)
            if (seen.insert(*row.cells[p]).second) cells.push_back(*row.cells[p]);
        if (cells.size() > most_listed_values)
            throw ParseError(table.source + ": '" + table.parameters[p] + "' has " +
                             std::to_string(cells.size()) +
                             " different values; a replayed study takes at most " +
                             std::to_string(most_listed_values));
        const bool ordered = std::all_of(cells.begin(), cells.end(), [](const std::string& cell) {
            return number_of(value_of(cell)).has_value() || cell == unset_text;
        });
        if (ordered)
            std::sort(cells.begin(), cells.end(), [](const std::string& a, const std::string& b) {
                return number_of(value_of(a)).value_or(-INFINITY) <
                       number_of(value_of(b)).value_or(-INFINITY);
            });
        for (std::string& cell : cells) cell = yaml_cell(cell);
        yaml += "  " + yaml_text(table.parameters[p]) + ": {choice: [" + listed_names(cells) + "]" +
                (ordered ? ", ordered: true" : "") +
                ", default: " + yaml_cell(*measured->cells[p]) + "}\n";
    }
    yaml += std::string("objective: {") +
            (plain.goal.direction == Direction::maximize ? "maximize: " : "minimize: ") +
            yaml_text(plain.goal.metric) + "}\nstrategy: exhaustive\n";
    return yaml + "evaluator: {replay: {table: " + yaml_text(table_file) +
           ", unmeasured: exclude}}\n";
}

bool looks_like_table(std::string_view text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t first = line.find_first_not_of(" \t\r\xEF\xBB\xBF");
    if (first != std::string_view::npos && (line[first] == '{' || line[first] == '['))
        return false;  // JSON, whole or cut
    return line.find_first_of(",;\t") != std::string_view::npos;
}

}  // namespace servetune
