// SPDX-License-Identifier: Apache-2.0
#include "plain_table.hpp"

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "servetune/benchmark_result.hpp"
#include "servetune/error.hpp"
#include "study/table.hpp"
#include "study_file/readers.hpp"
#include "study_file/yaml_text.hpp"
#include "trial/metric_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>

namespace servetune {
namespace {

using Names = std::vector<std::string>;

/// Whether `list`, words between blanks, has a word.
bool in_list(std::string_view list, std::string_view word) {
    return (" " + std::string(list) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

/// What the first line has most of.
char separator_of(std::string_view text) {
    char best = ',';
    std::map<char, std::size_t> counts;
    bool quoted = false;
    for (const char c : text.substr(0, text.find('\n'))) {
        quoted ^= c == '"';
        if (!quoted) ++counts[c];
    }
    for (const char c : {';', '\t'})
        if (counts[c] > counts[best]) best = c;
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

/// The metric of load tests that a name stands for; empty: none.
std::string metric_called(const std::string& name) {
    const std::string metric = metric_of_word(lower_case(name));
    if (in_list("requested_requests maximum_concurrency requested_rate_per_second input_tokens "
                "output_tokens",
                metric))
        return "";  // settings
    bool known =
        metric == "success_ratio" || metric.ends_with("_per_gpu") || less_is_better(metric);
    const BenchmarkResult names_only;
    for_each_figure(names_only, [&](const std::string& figure, const std::optional<double>&) {
        known = known || figure == metric;
    });
    return known ? metric : "";
}

/// What the name of a column says of it.
struct ColumnName {
    explicit ColumnName(const std::string& name) {
        const std::string metric = metric_called(name);
        const Names words = words_in_name(name);
        const auto any = [&](std::string_view list) {
            return std::any_of(words.begin(), words.end(),
                               [&](const std::string& word) { return in_list(list, word); });
        };
        const std::size_t count = words.size();
        const bool rate =
            count > 2 && words[count - 2] == "per" && in_list("s sec second", words[count - 1]);
        is_figure = !any("max min limit target timeout budget threshold maximum minimum") &&
                    (rate || !metric.empty() ||
                     any("latency ttft tpot itl throughput goodput tps qps rps fps p50 p90 p95 p99 "
                         "loss perplexity accuracy"));
        // Rows that differ in it alone are repeats.
        counts_rows = name.empty() || lower_case(name) == "unnamed: 0" ||
                      in_list(
                          "run rep repeat repetition replicate trial seed index id date "
                          "timestamp",
                          lower_case(name));
        const bool more = rate || any("throughput score accuracy speed tps fps qps rps goodput "
                                      "bandwidth iops flops gflops tflops mfu speedup gain profit "
                                      "revenue reward f1 auc");
        const bool less =
            !rate && any("latency ttft tpot itl time seconds sec ms us duration runtime elapsed "
                         "loss error errors cost price usd energy joules watts power memory misses "
                         "failed failures p50 p90 p95 p99 perplexity regret rmse mae");
        if (!metric.empty())
            direction = less_is_better(metric) ? Direction::minimize : Direction::maximize;
        else if (more != less) direction = more ? Direction::maximize : Direction::minimize;
    }
    bool is_figure = false;  ///< numbers under it are measured and not set
    bool counts_rows = false;
    std::optional<Direction> direction{};  ///< nothing: it says none, or both
};

/// What stands for "no value" in tables that programs write.
bool is_missing(const std::string& cell) {
    return cell.empty() || in_list("nan na n/a null", lower_case(cell));
}

/// A name that rules, options and reports can use, and that has no meaning of its own there.
std::string usable_name(const std::string& column) {
    std::string result;
    for (const char c : column) {
        const auto u = static_cast<unsigned char>(c);
        if (std::isalnum(u) != 0 || u >= 0x80 || c == '-') result += c;
        else if (!result.empty() && result.back() != '_') result += '_';
    }
    while (result.ends_with('_')) result.pop_back();
    return in_list(
               "engine workload repeat block section status message verdict findings arguments "
               "note",
               result)
               ? result + "_"
               : result;
}

std::string listed_names(const Names& names) { return listed(names, names.size()); }

class PlainTableReader {
public:
    PlainTableReader(std::string_view text, const std::string& name,
                     const PlainTableRequest& request)
        : name_(name),
          request_(request),
          separator_(separator_of(text)),
          rows_(parse_csv(text, name, separator_)) {
        if (rows_.empty()) fail(1, "a table starts with a line of column names");
        std::set<std::string> seen;
        for (CsvRow& row : rows_) {
            (void)cells_of(row, header().size(), name_);
            for (std::string& cell : row.cells) cell = std::string(trimmed(cell));
        }
        for (const std::string& column : header())
            if (!column.empty() && !seen.insert(column).second)
                fail(1, "the column '" + start_of(column, 80) + "' stands twice");
    }

    PlainTable read() {
        if (column_called("status")) return read_measured();
        find_goal();
        if (rows_.size() < 2) fail(1, "the table has no rows");
        find_roles();
        return converted();
    }

private:
    enum class Role { parameter, figure, left_out };
    struct Column {
        std::string name{};  ///< as the study calls it
        Role role = Role::left_out;
        bool any = false, numbers = true, whole = true, booleans = true;
    };

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
        const auto told = said ? said : ColumnName(wanted).direction;
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

    void find_roles() {
        std::map<std::string, std::string> taken;
        for (std::size_t c = 0; c < header().size(); ++c) {
            Column column{.name = usable_name(header()[c])};
            if (column.name.empty()) column.name = "column_" + std::to_string(c + 1);
            for (std::size_t r = 1; r < rows_.size(); ++r) {
                const std::string& cell = rows_[r].cells[c];
                if (is_missing(cell)) continue;
                const auto number = number_in(cell);
                column.any = true;
                column.booleans = column.booleans && in_list("true false", lower_case(cell));
                column.numbers = column.numbers && number.has_value();
                column.whole = column.whole && number && *number == std::floor(*number) &&
                               std::abs(*number) < 1e15;
            }
            columns_.push_back(std::move(column));
        }
        if (request_.parameters.empty()) roles_as_told_by_columns();
        else {
            for (Column& column : columns_)
                if (column.any && column.numbers) column.role = Role::figure;
            for (const std::string& wanted : request_.parameters) {
                const std::size_t column = column_at(wanted, "--parameter");
                if (column == objective_)
                    fail(1, "the column '" + wanted + "' is the objective, so it is no parameter");
                columns_[column].role = Role::parameter;
            }
        }
        columns_[objective_].role = Role::figure;
        if (with_role(Role::parameter).empty())
            fail(1, "no column is a parameter; say which are: --parameter COLUMN");
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (columns_[c].role == Role::left_out) continue;
            const auto [other, is_new] = taken.emplace(columns_[c].name, header()[c]);
            if (!is_new)
                fail(1, "the columns '" + other->second + "' and '" + header()[c] +
                            "' would both be called '" + columns_[c].name + "'");
        }
    }

    [[nodiscard]] std::vector<std::size_t> with_role(Role role) const {
        std::vector<std::size_t> found;
        for (std::size_t c = 0; c < columns_.size(); ++c)
            if (columns_[c].role == role) found.push_back(c);
        return found;
    }

    [[nodiscard]] bool is_known_parameter(const std::string& column) const {
        std::string name = lower_case(column);
        while (name.starts_with('-')) name.erase(0, 1);
        std::replace(name.begin(), name.end(), '-', '_');
        return request_.known_parameters.contains(name);
    }

    void roles_as_told_by_columns() {
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            Column& column = columns_[c];
            const ColumnName name(header()[c]);
            if (c == objective_ || name.counts_rows || !column.any) continue;
            const bool figure =
                !is_known_parameter(header()[c]) && column.numbers && name.is_figure;
            column.role = figure ? Role::figure : Role::parameter;
        }
        // Numbers behind the objective, where parameters stand before it, may be either.
        Names certain, doubtful;
        for (const std::size_t c : with_role(Role::parameter)) {
            const bool left = with_role(Role::parameter).front() < objective_;
            (left && c > objective_ && columns_[c].numbers && !is_known_parameter(header()[c])
                 ? doubtful
                 : certain)
                .push_back(header()[c]);
        }
        if (!doubtful.empty())
            fail(1, "'" + listed_names(doubtful) +
                        "' may be set or measured; say which columns are parameters: --parameter " +
                        listed_names(certain) + " (all others are then measured)");
    }

    [[nodiscard]] std::string parameter_cell(const Column& column, const std::string& cell) const {
        if (is_missing(cell)) return std::string(unset_text);
        if (column.booleans) return lower_case(cell);
        if (!column.numbers) return cell;
        const double number = *number_in(cell);
        return column.whole ? std::to_string(static_cast<std::int64_t>(number)) : text_of(number);
    }

    /// The figure in a cell; nothing where there is none. A text that begins as a number is a
    /// mistake.
    [[nodiscard]] std::optional<double> figure_in(std::size_t row, std::size_t column) const {
        const std::string& cell = rows_[row].cells[column];
        if (const auto number = number_in(cell)) return number;
        if (cell.find_first_of("0123456789") < 2)
            fail(rows_[row].line,
                 header()[column] + ": a number wanted, got '" + start_of(cell, 80) + "'");
        return std::nullopt;
    }

    PlainTable converted() {
        goal_.metric = columns_[objective_].name;
        const std::vector<std::size_t> parameters = with_role(Role::parameter);
        std::vector<std::size_t> figures = with_role(Role::figure);
        std::stable_partition(figures.begin(), figures.end(),
                              [&](std::size_t c) { return c == objective_; });
        std::vector<Names> settings;
        std::map<Names, std::size_t> times;
        for (std::size_t r = 1; r < rows_.size(); ++r) {
            settings.emplace_back();
            for (const std::size_t c : parameters)
                settings.back().push_back(parameter_cell(columns_[c], rows_[r].cells[c]));
            ++times[settings.back()];
        }
        const std::size_t configurations = times.size();
        const bool repeats = configurations < settings.size();
        const auto names_of = [&](const std::vector<std::size_t>& columns) {
            Names names;
            for (const std::size_t c : columns) names.push_back(columns_[c].name);
            return names;
        };
        Names line = names_of(parameters);
        if (repeats) line.emplace_back("repeat");
        line.emplace_back("status");
        for (const std::string& name : names_of(figures)) line.push_back(name);
        line.emplace_back("message");
        PlainTable result;
        result.csv = csv_line(line);
        times.clear();
        std::size_t without = 0;
        for (std::size_t r = 1; r < rows_.size(); ++r) {
            line = settings[r - 1];
            if (repeats) line.push_back(std::to_string(++times[settings[r - 1]]));
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
        const auto remark = [&](const char* what, const Names& names) {
            if (!names.empty()) result.remarks.push_back(what + listed_names(names));
        };
        remark("parameters: ", names_of(parameters));
        result.remarks.push_back(
            "objective: " + goal_.text() +
            (goal_said_ ? ""
                        : std::string(" (its name says so; the other way: --objective ") +
                              (goal_.direction == Direction::maximize ? "minimize:" : "maximize:") +
                              header()[objective_] + ")"));
        remark("also measured: ", names_of({figures.begin() + 1, figures.end()}));
        remark("left out: ", names_of(with_role(Role::left_out)));
        Names renamed;
        for (std::size_t c = 0; c < columns_.size(); ++c)
            if (columns_[c].role != Role::left_out && columns_[c].name != header()[c])
                renamed.push_back("'" + start_of(header()[c], 80) + "' is called " +
                                  columns_[c].name);
        remark("names: ", renamed);
        result.remarks.push_back(std::to_string(settings.size()) + " rows of " +
                                 std::to_string(configurations) + " configurations");
        if (without > 0)
            result.remarks.push_back(std::to_string(without) +
                                     " rows have no figure and count as failed");
        return result;
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
        result.goal = goal_;
        result.remarks = {"parameters: " + listed_names(result.table.parameters),
                          "objective: " + goal_.text()};
        return result;
    }

    std::string name_;
    const PlainTableRequest& request_;
    char separator_;
    std::vector<CsvRow> rows_;
    std::size_t objective_ = 0;
    Goal goal_;
    bool goal_said_ = false;
    std::vector<Column> columns_;
};

}  // namespace

PlainTable read_plain_table(std::string_view text, const std::string& name,
                            const PlainTableRequest& request) {
    return PlainTableReader(utf8_text(text, name), name, request).read();
}

std::string study_of(const PlainTable& plain, const std::string& study,
                     const std::string& table_file) {
    using Tree = nlohmann::ordered_json;
    const MeasuredTable& table = plain.table;
    const auto measured =
        std::find_if(table.rows.begin(), table.rows.end(), [&](const MeasuredTable::Row& row) {
            const auto* found = std::get_if<Measurement>(&row.outcome);
            return found != nullptr && found->metrics.contains(plain.goal.metric);
        });
    if (measured == table.rows.end())
        throw ParseError(table.source + ": no row has a number under '" + plain.goal.metric + "'");
    Tree tree{{"study", study}, {"space", Tree::object()}};
    for (std::size_t p = 0; p < table.parameters.size(); ++p) {
        std::vector<Value> values;  // in the table's order, each once
        std::set<std::string> seen;
        for (const MeasuredTable::Row& row : table.rows)
            if (seen.insert(*row.cells[p]).second) values.push_back(value_of(*row.cells[p]));
        if (values.size() > most_listed_values)
            throw ParseError(table.source + ": '" + table.parameters[p] + "' has " +
                             std::to_string(values.size()) +
                             " different values; a replayed study takes at most " +
                             std::to_string(most_listed_values));
        tree["space"][table.parameters[p]] =
            choice_tree(std::move(values), value_of(*measured->cells[p]));
    }
    const bool more = plain.goal.direction == Direction::maximize;
    tree["objective"][more ? "maximize" : "minimize"] = plain.goal.metric;
    tree["strategy"] = "exhaustive";
    tree["evaluator"]["replay"] = {{"table", table_file}, {"unmeasured", "exclude"}};
    return "# Written by `autotune import --objective`. The default is the first measured row.\n" +
           yaml_document(tree);
}

bool looks_like_table(std::string_view text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t first = line.find_first_not_of(" \t\r\xEF\xBB\xBF");
    if (first != std::string_view::npos && (line[first] == '{' || line[first] == '['))
        return false;  // JSON, whole or cut
    return line.find_first_of(",;\t") != std::string_view::npos;
}

}  // namespace servetune
