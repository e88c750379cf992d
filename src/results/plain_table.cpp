// SPDX-License-Identifier: Apache-2.0
#include "plain_table.hpp"

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "servetune/benchmark_result.hpp"
#include "servetune/error.hpp"
#include "study/table.hpp"
#include "study_file/yaml_text.hpp"
#include "table_columns.hpp"
#include "trial/metric_text.hpp"

#include <nlohmann/json.hpp>

#include <cctype>
#include <map>
#include <set>

namespace servetune {
namespace {

using Names = std::vector<std::string>;

/// Whether `list`, words between blanks, has a name, whose blanks count as `_`; `x*` is what begins
/// with x.
bool in_list(std::string_view list, const std::string& word) {
    std::string name = lower_case(word);
    std::replace(name.begin(), name.end(), ' ', '_');
    return any_of(words_of(list), [&](const std::string& one) {
        return one.ends_with('*') ? name.starts_with(one.substr(0, one.size() - 1)) : name == one;
    });
}

/// What the first line has most of.
char separator_of(std::string_view text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    char best = ',';
    for (const char c : {';', '\t'})
        if (std::count(line.begin(), line.end(), c) > std::count(line.begin(), line.end(), best))
            best = c;
    return best;
}

/// The metric of load tests that a name stands for; empty: none.
std::string metric_called(const std::string& name) {
    const std::string metric = metric_of_word(lower_case(name));
    if (in_list("requested_requests maximum_concurrency requested_rate_per_second input_tokens "
                "output_tokens",
                metric))
        return "";  // settings
    bool known = metric == "success_ratio" || less_is_better(metric);
    const BenchmarkResult names_only;
    for_each_figure(names_only, [&](const std::string& figure, const std::optional<double>&) {
        known = known || figure == metric;
    });
    return known ? metric : "";
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
    const bool has_meaning =
        in_list("engine workload repeat block section message verdict findings arguments note",
                result) ||
        metric_of_word(result) != result;  // a word of objectives, of one unit
    return has_meaning ? result + "_" : result;
}

class PlainTableReader {
public:
    PlainTableReader(std::string_view text, const std::string& name,
                     const PlainTableRequest& request)
        : name_(name), request_(request), rows_(parse_csv(text, name, separator_of(text))) {
        if (rows_.size() < 2) fail(1, "a line of column names and rows below it wanted");
        for (CsvRow& row : rows_) {
            (void)cells_of(row, header().size(), name_);
            for (std::string& cell : row.cells) cell = std::string(trimmed(cell));
        }
        find_goal();
        find_roles();
    }

    PlainTable read() const {
        std::map<Names, std::size_t> times;
        Names line = names_of(parameters_);
        line.insert(line.end(), {"repeat", "status"});
        const Names measured = names_of(figures_);
        line.insert(line.end(), measured.begin(), measured.end());
        line.emplace_back("message");
        PlainTable result;
        result.csv = csv_line(line);
        std::size_t without = 0;
        for (std::size_t r = 1; r < rows_.size(); ++r) {
            const Names& cells = rows_[r].cells;
            line.clear();
            for (const std::size_t c : parameters_)
                line.push_back(in_list("nan na n/a null", cells[c]) || cells[c].empty()
                                   ? std::string(unset_text)
                                   : cells[c]);
            line.push_back(std::to_string(++times[line]));
            std::string why = bad_end_of(r);
            if (why.empty() && !figure_in(r, figures_.front()))
                why = header()[figures_.front()] + " has no number";
            const bool is_measured = why.empty();
            line.emplace_back(is_measured ? "ok" : "invalid_result");
            for (const std::size_t c : figures_) {
                const auto figure = figure_in(r, c);
                line.push_back(figure && is_measured ? text_of(*figure) : "");
            }
            line.push_back(why);
            without += is_measured ? 0 : 1;
            result.csv += csv_line(line);
        }
        if (without + 1 == rows_.size())
            fail(2, "no row has a number under '" + header()[figures_.front()] + "'");
        result.table = parse_table(result.csv, name_);
        result.goal = goal_;
        const auto remark = [&](const char* what, const Names& names) {
            if (!names.empty()) result.remarks.push_back(what + listed(names, names.size()));
        };
        remark("parameters: ", names_of(parameters_));
        result.remarks.push_back("objective: " + goal_.text());
        remark("also measured: ", {measured.begin() + 1, measured.end()});
        remark("left out: ", left_out_);
        result.remarks.push_back(
            std::to_string(rows_.size() - 1) + " rows of " + std::to_string(times.size()) +
            " configurations" +
            (without == 0 ? "" : "; " + std::to_string(without) + " count as failed"));
        return result;
    }

private:
    [[noreturn]] void fail(std::size_t line, const std::string& message) const {
        throw ParseError(name_ + ":" + std::to_string(line) + ": " + message);
    }
    [[nodiscard]] const Names& header() const { return rows_.front().cells; }
    [[nodiscard]] std::size_t column_at(const std::string& wanted,
                                        const std::string& option) const {
        const auto found = std::find(header().begin(), header().end(), wanted);
        if (found == header().end())
            fail(1, option + ": the table has no column '" + start_of(wanted, 80) +
                        "'; it has: " + listed(nearest_first(wanted, header())));
        return std::size_t(found - header().begin());
    }
    [[nodiscard]] Names names_of(const std::vector<std::size_t>& columns) const {
        Names names;
        for (const std::size_t c : columns) names.push_back(usable_name(header()[c]));
        return names;
    }
    /// Nothing: no number. A text that begins as a number is a mistake.
    [[nodiscard]] std::optional<double> figure_in(std::size_t row, std::size_t column) const {
        const std::string& cell = rows_[row].cells[column];
        if (const auto number = real_of(cell)) return number;
        if (cell.find_first_of("0123456789") < 2)
            fail(rows_[row].line,
                 header()[column] + ": a number wanted, got '" + start_of(cell, 80) + "'");
        return std::nullopt;
    }
    [[nodiscard]] bool has_numbers(std::size_t column) const {
        return std::any_of(rows_.begin() + 1, rows_.end(), [&](const CsvRow& row) {
            return real_of(row.cells[column]).has_value();
        });
    }

    /// `state: crashed`; empty: no column says that the row came to no good end.
    [[nodiscard]] std::string bad_end_of(std::size_t row) const {
        for (std::size_t c = 0; c < header().size(); ++c) {
            const std::string &name = header()[c], &end = rows_[row].cells[c];
            if (name == "status" && end == "ok")
                fail(1,
                     "it is a table of measured configurations: a study replays it "
                     "(evaluator: {replay: {table: FILE}})");
            if (in_list("state status", name) && in_list(bad_ends_txt.text, end))
                return name + ": " + end;
        }
        return "";
    }
    /// How many rows differ in these columns.
    [[nodiscard]] std::size_t kinds(const std::vector<std::size_t>& columns) const {
        std::set<Names> seen;
        for (std::size_t r = 1; r < rows_.size(); ++r) {
            Names cells;
            for (const std::size_t c : columns) cells.push_back(rows_[r].cells[c]);
            seen.insert(std::move(cells));
        }
        return seen.size();
    }
    /// Rows that agree in all other parameters, and a column that differs in each: a parameter, or
    /// what tells repeats apart? Nobody knows.
    void check_doubt() const {
        const std::size_t rows = rows_.size() - 1;
        std::vector<std::size_t> others;
        std::string first, options;
        for (const std::size_t c : parameters_)
            if (kinds({c}) < rows) {
                others.push_back(c);
                options += " --parameter '" + header()[c] + "'";
            } else if (first.empty()) first = header()[c];
        const std::size_t configurations = kinds(others);
        if (!first.empty() && configurations > 1 && configurations < rows)
            fail(1, "the column '" + first +
                        "' differs in rows that agree in all else: is it a parameter, or does it "
                        "tell repeats apart? Say which are parameters:" +
                        options + ", and '" + first + "' if it is one");
    }

    /// `minimize:COLUMN`, or a column whose name says a direction.
    void find_goal() {
        std::string wanted = request_.objective;
        std::optional<Direction> said;
        for (const auto& [word, direction] :
             {std::pair{"maximize:", Direction::maximize}, {"minimize:", Direction::minimize}})
            if (wanted.starts_with(word)) {
                wanted.erase(0, std::string_view(word).size());
                said = direction;
            }
        figures_.push_back(column_at(wanted, "--objective"));
        const std::string metric = metric_called(wanted);
        if (!said && metric.empty())
            fail(1, "nothing says whether more or less of '" + wanted +
                        "' is better; write --objective maximize:" + wanted +
                        " or --objective minimize:" + wanted);
        goal_ = {usable_name(wanted), said                     ? *said
                                      : less_is_better(metric) ? Direction::minimize
                                                               : Direction::maximize};
    }

    /// Parameters are those that the request names, else those marked as such, else those left of
    /// the objective that are no metric and not about the row. Other columns with numbers are
    /// figures.
    void find_roles() {
        const std::size_t objective = figures_.front();
        for (const std::string& wanted : request_.parameters)
            parameters_.push_back(column_at(wanted, "--parameter"));
        std::map<std::string, std::string> taken;
        bool marked = false;
        for (const std::string& column : header())
            marked = marked || in_list(columns_of_parameters_txt.text, column);
        for (std::size_t c = 0; c < header().size(); ++c) {
            const std::string& column = header()[c];
            const bool about_rows = column.empty() ||
                                    in_list(columns_about_rows_txt.text, column) ||
                                    (kinds({c}) == 1 && rows_[1].cells[c].empty());
            const bool is_said = contains(parameters_, c);
            if (is_said && c == objective)
                fail(1, "the column '" + column + "' is the objective, so it is no parameter");
            if (request_.parameters.empty() && c != objective && !about_rows &&
                (marked ? in_list(columns_of_parameters_txt.text, column)
                        : c < objective && metric_called(column).empty() &&
                              !in_list("metrics.* metrics/* summary.* summary/*", column)))
                parameters_.push_back(c);
            else if (c != objective && !is_said && !about_rows && has_numbers(c))
                figures_.push_back(c);
            else if (c != objective && !is_said) {
                left_out_.push_back(column);
                continue;
            }
            const auto [other, is_new] = taken.emplace(usable_name(column), column);
            if (!is_new || other->first.empty())
                fail(1, "the columns '" + other->second + "' and '" + start_of(column, 80) +
                            "' would have one name");
        }
        if (parameters_.empty())
            fail(1,
                 "no column left of the objective is a parameter; say which are: --parameter "
                 "COLUMN");
        if (request_.parameters.empty() && !marked) check_doubt();
    }

    std::string name_;
    const PlainTableRequest& request_;
    std::vector<CsvRow> rows_;
    std::vector<std::size_t> parameters_{}, figures_{};  ///< the objective is the first figure
    Names left_out_{};
    Goal goal_{};
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
    const auto measured = find_if(table.rows, [&](const MeasuredTable::Row& row) {
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

}  // namespace servetune
