// SPDX-License-Identifier: Apache-2.0
#include "optuna_export.hpp"

#include "base/files.hpp"
#include "report/report_view.hpp"
#include "base/text.hpp"
#include "study/sqlite_connection.hpp"
#include "template_files.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <set>
#include <system_error>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson optuna_value(const Value& value) {
    struct {
        OrderedJson operator()(Unset) const { return std::string(unset_text); }
        OrderedJson operator()(bool b) const { return b; }
        OrderedJson operator()(std::int64_t i) const { return i; }
        OrderedJson operator()(double d) const { return d; }
        OrderedJson operator()(const std::string& s) const { return s; }
    } visitor;
    return std::visit(visitor, value);
}

/// As Optuna has it: the clock on the wall, without a zone.
std::string optuna_time(double at) {
    const double whole = std::floor(at);
    const auto seconds = static_cast<std::time_t>(whole);
    std::tm local{};
    localtime_r(&seconds, &local);
    std::array<char, 64> text{};
    const std::size_t written =
        std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
    std::string micro = std::to_string(std::min(999'999L, std::lround((at - whole) * 1e6)));
    micro.insert(0, 6 - micro.size(), '0');
    return std::string(text.data(), written) + "." + micro;
}

/// A parameter as a distribution, the same in all trials.
class OptunaDistribution {
public:
    OptunaDistribution(const Parameter& parameter, std::span<const Trial> trials) {
        const auto* range = std::get_if<IntegerDomain>(&parameter.domain);
        const auto* reals = std::get_if<RealDomain>(&parameter.domain);
        OrderedJson attributes;
        if (range != nullptr && !parameter.offers_unset) {
            const bool linear = range->scale == Scale::linear;
            const std::int64_t step =
                linear ? range->step : 1;  // Optuna has no steps on a logarithmic scale
            attributes = {{"log", !linear},
                          {"step", step},
                          {"low", range->low},
                          {"high", range->high - (range->high - range->low) % step}};
            json_ = OrderedJson{{"name", "IntDistribution"}, {"attributes", attributes}}.dump();
            return;
        }
        if (reals != nullptr && !parameter.offers_unset) {
            attributes = {{"step", nullptr},
                          {"low", reals->low},
                          {"high", reals->high},
                          {"log", reals->scale != Scale::linear}};
            json_ = OrderedJson{{"name", "FloatDistribution"}, {"attributes", attributes}}.dump();
            return;
        }
        // Numbers with a level beside them, choices and texts: all levels, or, of very many, those
        // that were tried.
        constexpr std::size_t most_levels = 1000;
        const bool listed = reals == nullptr &&
                            !std::holds_alternative<TextDomain>(parameter.domain) &&
                            parameter.level_count() <= most_levels;
        if (listed)
            for (std::size_t i = 0; i < parameter.level_count(); ++i)
                choices_.push_back(parameter.level(i));
        else {
            std::set<Value> tried;
            if (parameter.offers_unset) tried.insert(Unset{});
            for (const Trial& trial : trials)
                if (const Value* value = trial.configuration.find(parameter.name))
                    tried.insert(*value);
            choices_.assign(tried.begin(), tried.end());
        }
        attributes["choices"] = OrderedJson::array();
        for (const Value& choice : choices_) attributes["choices"].push_back(optuna_value(choice));
        json_ = OrderedJson{{"name", "CategoricalDistribution"}, {"attributes", attributes}}.dump(
            -1, ' ', false, OrderedJson::error_handler_t::replace);
    }

    [[nodiscard]] const std::string& json() const { return json_; }
    /// A number itself, of choices which one.
    [[nodiscard]] double stored(const Value& value) const {
        if (choices_.empty()) return number_of(value).value_or(0);
        return static_cast<double>(std::find(choices_.begin(), choices_.end(), value) -
                                   choices_.begin());
    }

private:
    std::vector<Value> choices_{};
    std::string json_{};
};

class OptunaStorage {
public:
    OptunaStorage(const StudySetup& setup, std::span<const Trial> trials,
                  SqliteConnection& connection)
        : view_(setup, trials), connection_(connection) {
        for (const Trial& trial : trials)
            if (trial.of_search()) trials_.push_back(&trial);
        for (const Parameter& parameter : setup.problem->space.parameters())
            distributions_.try_emplace(parameter.name, parameter, trials);
    }

    void write() {
        connection_.run(std::string(optuna_sql.text));
        const StudyFile& file = view_.setup.file;
        SqliteConnection::Statement(connection_, "INSERT INTO studies VALUES (1, ?)")
            .bind(file.name)
            .step();
        std::uint64_t objective = 0;
        for (const Goal& goal : view_.setup.problem->objective.goals)
            SqliteConnection::Statement(
                connection_,
                "INSERT INTO study_directions (direction, study_id, objective) VALUES (?, 1, ?)")
                .bind(std::string(goal.direction == Direction::maximize ? "MAXIMIZE" : "MINIMIZE"))
                .bind(objective++)
                .step();
        for (const auto& [key, text] :
             {std::pair("model", file.model), std::pair("hardware", file.machine.hardware)})
            if (!text.empty()) study_attribute(key, text);
        study_attribute("goal", view_.setup.problem->objective.goals_text());
        const Headline headline = headline_of(view_);
        study_attribute("conclusion", headline.title);
        if (!headline.command.empty()) study_attribute("command", headline.command);
        for (std::size_t number = 0; number < trials_.size(); ++number)
            write(*trials_[number], number);
    }

private:
    void study_attribute(const std::string& key, const std::string& text) {
        SqliteConnection::Statement(
            connection_,
            "INSERT INTO study_user_attributes (study_id, \"key\", value_json) VALUES (1, ?, ?)")
            .bind(key)
            .bind(json_text(text))
            .step();
    }
    [[nodiscard]] std::string json_text(const std::string& text) const {
        return OrderedJson(view_.setup.file.secrets(text))
            .dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    }
    void attribute(std::uint64_t trial, const std::string& key, const std::string& json) {
        SqliteConnection::Statement(connection_,
                                    "INSERT OR IGNORE INTO trial_user_attributes (trial_id, "
                                    "\"key\", value_json) VALUES (?, ?, ?)")
            .bind(trial)
            .bind(key)
            .bind(json)
            .step();
    }

    /// The goals as the trial is judged by them; empty: it has not all of them.
    [[nodiscard]] std::vector<double> values_of(const Trial& trial,
                                                const Standing& standing) const {
        std::vector<double> result;
        for (std::size_t k = 0; k < standing.goals.size(); ++k) {
            const GoalFigures& figures = standing.goals[k];
            const auto at = std::find(figures.places.begin(), figures.places.end(),
                                      static_cast<double>(trial.id));
            if (at != figures.places.end())
                result.push_back(
                    figures.values[static_cast<std::size_t>(at - figures.places.begin())]);
        }
        return result.size() == standing.goals.size() ? result : std::vector<double>{};
    }

    void write(const Trial& trial, std::uint64_t number) {
        const std::uint64_t id = number + 1;
        const Standing* standing = view_.standings.find(trial.configuration);
        const std::vector<double> values =
            standing == nullptr ? std::vector<double>{} : values_of(trial, *standing);
        const bool passes = standing != nullptr && standing->passes() && !values.empty();
        const std::string state = !trial.told() ? (trial.started_at ? "RUNNING" : "WAITING")
                                  : trial.failure() != nullptr ? "FAIL"
                                  : passes                     ? "COMPLETE"
                                                               : "PRUNED";
        SqliteConnection::Statement(
            connection_,
            "INSERT INTO trials (trial_id, number, study_id, state) VALUES (?, ?, 1, ?)")
            .bind(id)
            .bind(number)
            .bind(state)
            .step();
        const auto time = [&](const char* sql, double at) {
            SqliteConnection::Statement(connection_, sql).bind(optuna_time(at)).bind(id).step();
        };
        if (trial.told() || trial.started_at)
            time("UPDATE trials SET datetime_start = ? WHERE trial_id = ?",
                 trial.started_at.value_or(trial.asked_at));
        if (trial.told())
            time("UPDATE trials SET datetime_complete = ? WHERE trial_id = ?",
                 trial.told_at.value_or(trial.asked_at));
        for (const auto& [name, value] : trial.configuration.entries()) {
            const OptunaDistribution& distribution = distributions_.at(name);
            SqliteConnection::Statement(connection_,
                                        "INSERT INTO trial_params (trial_id, param_name, "
                                        "param_value, distribution_json) VALUES (?, ?, ?, ?)")
                .bind(id)
                .bind(name)
                .bind(distribution.stored(value))
                .bind(distribution.json())
                .step();
        }
        if (passes)
            for (std::uint64_t k = 0; k < values.size(); ++k)
                SqliteConnection::Statement(connection_,
                                            "INSERT INTO trial_values (trial_id, objective, value, "
                                            "value_type) VALUES (?, ?, ?, 'FINITE')")
                    .bind(id)
                    .bind(k)
                    .bind(values[k])
                    .step();
        attribute(id, "trial", std::to_string(trial.id));
        attribute(id, "why", json_text(trial.why));
        if (standing != nullptr && !standing->refused.empty())
            attribute(id, "refused", json_text(standing->refused));
        if (const Failure* failure = trial.failure()) {
            attribute(id, "failure", json_text(std::string(name_in(failure_kinds, failure->kind))));
            attribute(id, "message", json_text(printable_line(failure->message)));
        }
        const Measurement* measurement = trial.measurement();
        if (measurement == nullptr) return;
        attribute(id, "verdict",
                  json_text(std::string(name_in(verdicts, measurement->validity.verdict))));
        for (const auto& [name, metric] : measurement->metrics)
            attribute(id, name, OrderedJson(metric.value).dump());
    }

    ReportView view_;
    SqliteConnection& connection_;
    std::vector<const Trial*> trials_{};
    std::map<std::string, OptunaDistribution> distributions_{};
};

}  // namespace

void write_optuna_storage(const StudySetup& setup, std::span<const Trial> trials,
                          const std::filesystem::path& file) {
    const auto is_there = [&] {
        std::error_code unknown;
        return std::filesystem::exists(std::filesystem::symlink_status(file, unknown));
    };
    const auto refuse = [&] {
        throw UsageError(
            file.string() +
            " is there already, and may hold other studies: take another file, or remove it");
    };
    if (is_there()) refuse();
    const OwnFolder beside(file.string() + ".");
    const std::filesystem::path whole = beside.path() / "storage";
    {
        SqliteConnection connection(whole, SqliteConnection::Access::write, file, "storage");
        connection.run("PRAGMA journal_mode = MEMORY");  // nobody sees the file before it is whole
        SqliteTransaction transaction(connection);
        OptunaStorage(setup, trials, connection).write();
        transaction.commit();
    }
    if (is_there()) refuse();  // meanwhile
    std::error_code failed;
    std::filesystem::rename(whole, file, failed);
    if (failed) throw IoError("cannot write " + file.string() + ": " + failed.message());
}

}  // namespace servetune
