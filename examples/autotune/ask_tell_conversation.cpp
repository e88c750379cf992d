// SPDX-License-Identifier: Apache-2.0
#include "ask_tell_conversation.hpp"

#include "base/nearest.hpp"
#include "base/nesting.hpp"
#include "base/text.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "study/json.hpp"
#include "study/plain_value.hpp"
#include "study/trial_rules.hpp"
#include "study_file/readers.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <vector>

namespace autotune {

using OrderedJson = nlohmann::ordered_json;

namespace {

std::string shown(const OrderedJson& value) {
    const std::string text = value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
    return text.size() <= 60 ? text : text.substr(0, 60) + "...";
}

void check_keys(const OrderedJson& object, const char* what,
                const std::vector<std::string>& known) {
    if (!object.is_object())
        throw ParseError(fmt::format("{} is a JSON object, got {}", what, shown(object)));
    for (const auto& [key, value] : object.items())
        if (!contains(known, key))
            throw ParseError(fmt::format("'{}' is no key of {}; known: {}", key, what,
                                         listed(nearest_first(key, known))));
}

/// Which of these keys it has: exactly one.
std::string one_of(const OrderedJson& object, const char* what,
                   const std::vector<std::string>& keys) {
    const auto has = [&](const std::string& key) { return object.contains(key); };
    if (count_if(keys, has) != 1)
        throw ParseError(fmt::format("{} has exactly one of: {}", what, listed(keys)));
    return *find_if(keys, has);
}

std::string text_in(const OrderedJson& value, const char* what) {
    if (!value.is_string())
        throw ParseError(fmt::format("{} is a text, got {}", what, shown(value)));
    return value.get<std::string>();
}

double number_in(const OrderedJson& value, const std::string& what) {
    if (!value.is_number())
        throw ParseError(fmt::format("{} is a number, got {}", what, shown(value)));
    return value.get<double>();
}

/// A line as a message. JSON has no NaN and no infinity; a result that is none is a failure, and
/// the message says how to tell it.
OrderedJson message_of(const std::string& line) {
    if (line.size() > longest_line)
        throw ParseError(fmt::format("a line has at most {} bytes", longest_line));
    try {
        return OrderedJson::parse(line, RefuseDeepAndTwice());
    } catch (const OrderedJson::parse_error& error) {
        const bool no_number = contains(line, "NaN") || contains(line, "Infinity");
        throw ParseError(
            no_number
                ? "JSON has finite numbers only; a result that is none is told as {\"failed\": "
                  "\"invalid_result\"}"
                : fmt::format(
                      "a line is one JSON object such as {{\"ask\": true}}; this is none: byte {}",
                      error.byte));
    } catch (const OrderedJson::out_of_range&) {
        throw ParseError(
            "a number in this line is too large; a result that is none is told as {\"failed\": "
            "\"invalid_result\"}");
    }
}

/// What is left out has its default; what would have no effect is refused.
Configuration configuration_in(const OrderedJson& object, const SearchSpace& space) {
    const Configuration given = configuration_from_json(object.dump());
    Assignment values;
    for (const auto& [name, value] : given.entries())
        values[name] = as_parameter_has_it(space.at(name), value);
    return space.changed(space.default_configuration(), values);
}

/// A plain number, or one with its standard error.
Metric metric_in(const OrderedJson& value, const std::string& name) {
    const std::string what = "the metric '" + name + "'";
    Metric result;
    if (value.is_object()) {
        check_keys(value, what.c_str(), {"value", "standard_error"});
        if (!value.contains("value")) throw ParseError(what + " has a value");
        result.value = number_in(value["value"], what);
        if (value.contains("standard_error"))
            result.standard_error =
                number_in(value["standard_error"], "the standard error of " + name);
    } else result.value = number_in(value, what);
    if (result.standard_error.value_or(0) < 0)
        throw ParseError("the standard error of " + name + " is below 0");
    if (!std::isfinite(result.value) || !std::isfinite(result.standard_error.value_or(0)))
        throw ParseError(what + " is not finite; tell it as {\"failed\": \"invalid_result\"}");
    if (!has_sound_size(result.value) || !has_sound_size(result.standard_error.value_or(0)))
        throw ParseError(what +
                         " and its standard error are 0, or of a size between 1e-100 and 1e100; "
                         "one that is not is told as "
                         "{\"failed\": \"invalid_result\"}");
    return result;
}

FailureKind failure_kind_in(const OrderedJson& value) {
    if (value == true) return FailureKind::other;
    if (value == "oom") return FailureKind::out_of_memory;
    if (value.is_string())
        if (const auto kind = named_in(failure_kinds, value.get<std::string>())) return *kind;
    std::vector<std::string> known;
    for (const auto& [kind, name] : failure_kinds) known.emplace_back(name);
    throw ParseError(
        "'failed' is true or a kind of failure, got " + shown(value) + "; known: " +
        listed(value.is_string() ? nearest_first(value.get<std::string>(), known) : known,
               failure_kinds.size()));
}

/// A result without all goals teaches nothing, and a rate or a time is above 0.
void check_goals(const Metrics& metrics, const Problem& problem) {
    const bool as_ratio = problem.decision.never_worse_than.has_value();
    for (const Goal& goal : problem.objective.goals) {
        const auto* found = entry_in(metrics, goal.metric);
        if (found == nullptr) {
            std::vector<std::string> names = names_in(metrics);
            throw ParseError("the objective's metric '" + goal.metric + "' is missing; told are: " +
                             (names.empty() ? "none" : listed(nearest_first(goal.metric, names))));
        }
        if (!goal.why_unusable(metrics, as_ratio).empty())
            throw ParseError(
                fmt::format("the objective's metric '{}' is above 0, got {}; one that is not is "
                            "told as {{\"failed\": \"invalid_result\"}}",
                            goal.metric, text_of(found->value)));
    }
}

Outcome outcome_in(const OrderedJson& told, const Problem& problem) {
    const std::string& leading = problem.objective.leading().metric;
    const std::string kind = one_of(told, "'tell'", {"metrics", "value", "failed"});
    if (told.contains("message") && kind != "failed")
        throw ParseError("'message' goes with 'failed'");
    if (kind == "failed")
        return Failure{
            failure_kind_in(told["failed"]),
            told.contains("message") ? printable_line(text_in(told["message"], "'message'")) : ""};
    Measurement result;
    if (kind == "value") result.metrics[leading] = metric_in(told["value"], leading);
    else {
        if (!told["metrics"].is_object())
            throw ParseError("'metrics' is a JSON object, name -> number, got " +
                             shown(told["metrics"]));
        for (const auto& [name, value] : told["metrics"].items())
            result.metrics[name] = metric_in(value, name);
    }
    check_goals(result.metrics, problem);
    return result;
}

Study::Options ask_tell_options(const StudySetup& setup) {
    Study::Options options{setup.file.seed};
    options.default_again_every = setup.file.default_again_every();
    options.measured_elsewhere = true;
    return options;
}

}  // namespace

AskTellConversation::AskTellConversation(const StudySetup& setup, const Budget& budget,
                                         Journal& journal)
    : setup_(setup),
      budget_(budget),
      study_(*setup.problem, *setup.strategy, journal, ask_tell_options(setup)) {}

OrderedJson AskTellConversation::answer(const std::string& line) {
    const OrderedJson message = message_of(line);
    const std::vector<std::string> verbs{"ask", "tell", "propose", "suggest", "recommend"};
    check_keys(message, "a line", verbs);
    const std::string verb = one_of(message, "a line", verbs);
    if (verb == "tell") return tell(message["tell"]);
    if (verb == "propose") return propose(message["propose"]);
    if (verb == "suggest") return suggest(message["suggest"]);
    if (message[verb] != true)
        throw ParseError(fmt::format("'{}' is true, got {}", verb, shown(message[verb])));
    return verb == "ask" ? ask() : recommendation();
}

OrderedJson AskTellConversation::ask() {
    const AskResult asked = study_.ask(budget_);
    if (asked.trial() != nullptr) return offer(*asked);
    if (asked.waiting()) return {{"waiting", true}};
    return {{"finished", asked.finished()->why},
            {"stop_reason", name_in(stop_reasons, asked.finished()->reason)}};
}

OrderedJson AskTellConversation::offer(const Trial& trial) {
    if (!trial.started_at) study_.start(trial.id);
    return {{"trial", trial.id},
            {"configuration", OrderedJson::parse(json_of(trial.configuration))},
            {"why", trial.why}};
}

OrderedJson AskTellConversation::tell(const OrderedJson& told) {
    check_keys(told, "'tell'", {"trial", "configuration", "metrics", "value", "failed", "message"});
    const std::string which = one_of(told, "'tell'", {"trial", "configuration"});
    Outcome outcome = outcome_in(told, *setup_.problem);
    std::uint64_t id = 0;
    if (which == "configuration") {
        Configuration configuration =
            configuration_in(told["configuration"], setup_.problem->space);
        check_feasible(configuration);
        // Before a trial is made for it: an error changes nothing.
        const std::string missing =
            missing_metric(*setup_.problem, study_.trials(), Trial{}, outcome);
        if (!missing.empty()) throw ParseError(missing);
        id = trial_of(std::move(configuration));
    } else {
        if (!told["trial"].is_number_unsigned())
            throw ParseError("'trial' is a number that an ask gave, got " + shown(told["trial"]));
        id = told["trial"].get<std::uint64_t>();
    }
    study_.tell(id, std::move(outcome));
    return {{"told", id}};
}

OrderedJson AskTellConversation::propose(const OrderedJson& proposed) {
    return offer(
        study_.propose(configuration_in(proposed, setup_.problem->space), "proposed, not asked"));
}

OrderedJson AskTellConversation::suggest(const OrderedJson& suggested) {
    check_takes_suggestions(setup_.file.strategy.name);
    Configuration configuration = configuration_in(suggested, setup_.problem->space);
    check_feasible(configuration);
    setup_.suggestions->push_back(std::move(configuration));
    return {{"suggested", setup_.suggestions->size()}};
}

void AskTellConversation::check_feasible(const Configuration& configuration) const {
    const auto violations = setup_.problem->space.violations(configuration);
    if (!violations.empty()) throw SpaceError(violations.front());
}

/// The open trial of a configuration, or a new one.
std::uint64_t AskTellConversation::trial_of(Configuration configuration) {
    if (const auto open = study_.open_trial(configuration)) return *open;
    return study_.propose(std::move(configuration), "told, not asked").id;
}

OrderedJson AskTellConversation::recommendation() const {
    const OrderedJson whole = OrderedJson::parse(json_report(setup_, study_.trials(), "", false));
    OrderedJson result;
    for (const char* key : {"verdict", "headline", "reason", "advice", "trials", "default",
                            "recommended", "best_observed", "given_away", "not_distinguishable",
                            "compared_by", "closest", "goals", "front"})
        if (whole.contains(key)) result[key] = whole[key];
    return result;
}

}  // namespace autotune
