// SPDX-License-Identifier: Apache-2.0
#include "result_export.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "report/report_view.hpp"
#include "space/value_json.hpp"
#include "study/sqlite_connection.hpp"
#include "template_files.hpp"

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <set>
#include <system_error>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// As Optuna has it: the clock on the wall, without a zone.
std::string optuna_time(double at) {
    const auto seconds = static_cast<std::time_t>(std::floor(at));
    std::tm local{};
    localtime_r(&seconds, &local);
    return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06}", local,
                       std::min(999'999L, std::lround((at - std::floor(at)) * 1e6)));
}

/// A parameter as a distribution, the same in all trials.
class OptunaDistribution {
public:
    OptunaDistribution(const Parameter& parameter, std::span<const Trial> trials) {
        const auto* range = std::get_if<IntegerDomain>(&parameter.domain);
        const auto* reals = std::get_if<RealDomain>(&parameter.domain);
        OrderedJson attributes;
        const auto distribution = [&](const char* name) {
            json_ = OrderedJson{{"name", name}, {"attributes", attributes}}.dump(
                -1, ' ', false, OrderedJson::error_handler_t::replace);
        };
        if (range != nullptr && !parameter.offers_unset) {
            const bool linear = range->scale == Scale::linear;
            const std::int64_t step =
                linear ? range->step : 1;  // Optuna has no steps on a logarithmic scale
            attributes = {{"log", !linear},
                          {"step", step},
                          {"low", range->low},
                          {"high", range->high - (range->high - range->low) % step}};
            distribution("IntDistribution");
            return;
        }
        if (reals != nullptr && !parameter.offers_unset) {
            attributes = {{"step", nullptr},
                          {"low", reals->low},
                          {"high", reals->high},
                          {"log", reals->scale != Scale::linear}};
            distribution("FloatDistribution");
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
        for (const Value& choice : choices_)
            attributes["choices"].push_back(is_unset(choice) ? OrderedJson(unset_text)
                                                             : to_json(choice));
        distribution("CategoricalDistribution");
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
        insert("studies (study_id, study_name)", std::uint64_t{1}, file.name);
        std::uint64_t objective = 0;
        for (const Goal& goal : view_.setup.problem->objective.goals)
            insert("study_directions (study_id, direction, objective)", std::uint64_t{1},
                   std::string(goal.direction == Direction::maximize ? "MAXIMIZE" : "MINIMIZE"),
                   objective++);
        const Headline headline = headline_of(view_);
        for (const auto& [key, text] : std::map<std::string, std::string>{
                 {"model", file.model},
                 {"hardware", file.machine.hardware},
                 {"goal", view_.setup.problem->objective.goals_text()},
                 {"conclusion", headline.title},
                 {"command", headline.command}})
            if (!text.empty())
                insert("study_user_attributes (study_id, \"key\", value_json)", std::uint64_t{1},
                       key, json_text(text));
        for (std::size_t number = 0; number < trials_.size(); ++number)
            write(*trials_[number], number);
    }

private:
    /// A row of `table (column, ...)`. Of a key that stands twice the first stays.
    template <class... Cells>
    void insert(const std::string& table, const Cells&... cells) {
        std::string places;
        for (std::size_t i = 0; i < sizeof...(cells); ++i) places += i == 0 ? "?" : ", ?";
        const std::string sql = "INSERT OR IGNORE INTO " + table + " VALUES (" + places + ")";
        SqliteConnection::Statement statement(connection_, sql.c_str());
        (statement.bind(cells), ...);
        statement.step();
    }
    [[nodiscard]] std::string json_text(const std::string& text) const {
        return OrderedJson(view_.setup.file.secrets(text))
            .dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    }

    /// The goals as the trial is judged by them; empty: it has not all of them.
    [[nodiscard]] std::vector<double> values_of(const Trial& trial,
                                                const Standing& standing) const {
        std::vector<double> result;
        for (const GoalFigures& figures : standing.goals) {
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
        const std::string start = optuna_time(trial.started_at.value_or(trial.asked_at));
        if (trial.told())
            insert("trials (trial_id, number, study_id, state, datetime_start, datetime_complete)",
                   id, number, std::uint64_t{1}, state, start,
                   optuna_time(trial.told_at.value_or(trial.asked_at)));
        else if (trial.started_at)
            insert("trials (trial_id, number, study_id, state, datetime_start)", id, number,
                   std::uint64_t{1}, state, start);
        else
            insert("trials (trial_id, number, study_id, state)", id, number, std::uint64_t{1},
                   state);
        for (const auto& [name, value] : trial.configuration.entries()) {
            const OptunaDistribution& distribution = distributions_.at(name);
            insert("trial_params (trial_id, param_name, param_value, distribution_json)", id, name,
                   distribution.stored(value), distribution.json());
        }
        if (passes)
            for (std::uint64_t k = 0; k < values.size(); ++k)
                insert("trial_values (trial_id, objective, value, value_type)", id, k, values[k],
                       std::string("FINITE"));
        const auto attribute = [&](const std::string& key, const std::string& json) {
            insert("trial_user_attributes (trial_id, \"key\", value_json)", id, key, json);
        };
        attribute("trial", std::to_string(trial.id));
        attribute("why", json_text(trial.why));
        if (standing != nullptr && !standing->refused.empty())
            attribute("refused", json_text(standing->refused));
        if (const Failure* failure = trial.failure()) {
            attribute("failure", json_text(std::string(name_in(failure_kinds, failure->kind))));
            attribute("message", json_text(printable_line(failure->message)));
        }
        const Measurement* measurement = trial.measurement();
        if (measurement == nullptr) return;
        attribute("verdict",
                  json_text(std::string(name_in(verdicts, measurement->validity.verdict))));
        for (const auto& [name, metric] : measurement->metrics)
            attribute(name, OrderedJson(metric.value).dump());
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
