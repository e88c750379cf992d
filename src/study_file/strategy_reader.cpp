// SPDX-License-Identifier: Apache-2.0
#include "readers.hpp"

#include "base/nearest.hpp"
#include "keys.hpp"
#include "servetune/bayesian.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/quasi_random.hpp"
#include "servetune/simple_strategies.hpp"
#include "study/plain_value.hpp"

#include <cmath>
#include <stdexcept>

namespace servetune {
namespace {

/// Candidate values of a stage, under the names of the space and inside its domains.
Assignment read_candidate(const Yaml& node, const Composition& composition) {
    Assignment result;
    for (const auto& [name, value] : node.entries()) {
        std::string known;
        try {
            known = composition.resolve(name);
        } catch (const SpaceError& error) {
            value.fail(error.what());
        }
        const auto parameter =
            find_if(composition.parameters(), [&](const Parameter& p) { return p.name == known; });
        const Value wanted =
            as_parameter_has_it(*parameter, composition.normalized(known, value.value()));
        if (!parameter->contains(wanted))
            value.fail(text_of(wanted) + " is outside the domain of '" + known + "' (" +
                       parameter->domain_text() + ")");
        result[known] = wanted;
    }
    return result;
}

Stage read_stage(const Yaml& node, const Composition& composition, bool baseline) {
    Stage stage;
    const auto resolve = [&](const Yaml& name) {
        try {
            return composition.resolve(name.text());
        } catch (const SpaceError& error) {
            name.fail(error.what());
        }
    };
    if (node.is_scalar()) {
        stage.product = {resolve(node)};
        stage.name = node.text();
    } else if (node.is_sequence()) {
        for (const Yaml& name : node.items()) {
            stage.product.push_back(resolve(name));
            stage.name += (stage.name.empty() ? "" : " x ") + name.text();
        }
    } else {
        if (node.entries().size() != 1) node.fail("one name with its candidates wanted");
        stage.name = node.entries().front().first;
        for (const Yaml& candidate : node.entries().front().second.items())
            stage.candidates.push_back(read_candidate(candidate, composition));
    }
    stage.carried = !baseline || (composition.engines().size() > 1 &&
                                  stage.product == std::vector<std::string>{"engine"});
    return stage;
}

/// Empty: there is such a strategy.
std::string wrong_with_strategy(const std::string& name) {
    const std::vector<std::string> known = strategy_names();
    if (contains(known, name)) return "";
    return "'" + name + "' is no strategy; known: " + listed(nearest_first(name, known));
}

}  // namespace

void check_strategy(const Yaml& node) {
    if (!node.is_scalar()) return node.check_keys(keys::strategy);
    if (const std::string wrong = wrong_with_strategy(node.text()); !wrong.empty())
        node.fail(wrong);
}

StrategyChoice read_strategy(const Yaml* node, const Composition& composition,
                             const std::string& replaced) {
    StrategyChoice result;
    const Yaml* staged = nullptr;
    if (node != nullptr && node->is_scalar()) {
        check_strategy(*node);
        result.name = node->text();
    } else if (node != nullptr) {
        node->check_keys(keys::strategy);
        if (node->entries().size() != 1) node->fail("one strategy wanted");
        result.name = node->entries().front().first;
        staged = node->find(keys::strategy.staged);
    }
    if (!replaced.empty()) {
        if (const std::string wrong = wrong_with_strategy(replaced); !wrong.empty())
            throw UsageError(wrong);
        result.name = replaced;
    }
    if (staged != nullptr) {
        read_table(*staged, keys::staged, result.staged);
        bool baseline = false;
        read_word<keys::comparisons>(*staged, keys::staged.compare_with, baseline);
        const Yaml& stages = staged->at(keys::staged.stages);
        check_not_empty(is::some<is::list_of<is::name>>, stages.items().size(), stages);
        for (const Yaml& stage : stages.items())
            result.staged.stages.push_back(read_stage(stage, composition, baseline));
    } else if (result.name == keys::strategy.staged.name) {
        // Without stages: every parameter that can vary, one after the other, in the space's order.
        for (const Parameter& parameter : composition.parameters())
            if (!parameter.continuous() && parameter.level_count() > 1)
                result.staged.stages.push_back({parameter.name, {parameter.name}});
    }
    return result;
}

namespace {

/// Minutes after midnight.
int read_time_of_day(const Yaml& node) {
    const std::string text = node.text();
    const auto colon = text.find(':');
    const auto hours = integer_of(std::string_view(text).substr(0, colon));
    const auto minutes = colon == std::string::npos
                             ? std::nullopt
                             : integer_of(std::string_view(text).substr(colon + 1));
    if (!hours || !minutes || *hours < 0 || *hours > 23 || *minutes < 0 || *minutes > 59)
        node.fail_wanted("a time of day such as \"07:00\"");
    return static_cast<int>(*hours * 60 + *minutes);
}

/// `30trials`, `1trial`, `30`.
std::optional<std::int64_t> trial_count_in(std::string_view text) {
    for (const std::string_view noun : {"trials", "trial"})
        if (text.ends_with(noun)) {
            text.remove_suffix(noun.size());
            break;
        }
    const auto count = integer_of(text);
    return count && *count > 0 ? count : std::nullopt;
}

void read_short_budget(const Yaml& node, StudyFile& study) {
    std::string whole = node.text();
    std::erase(whole, ' ');
    bool has_trials = false;
    bool has_time = false;
    for (std::string_view rest = whole; !rest.empty();) {
        const auto comma = std::min(rest.find(','), rest.size());
        const std::string_view part = rest.substr(0, comma);
        rest.remove_prefix(std::min(comma + 1, rest.size()));
        if (const auto trials = trial_count_in(part); trials && !has_trials) {
            study.budget.trials = std::size_t(*trials);
            has_trials = true;
        } else if (const auto seconds = seconds_of(part); seconds && *seconds > 0 && !has_time) {
            study.budget.wall_clock_seconds = *seconds;
            has_time = true;
        } else
            node.fail_wanted(
                "a budget such as '30 trials', '45min', '60 trials, 8h' or {trials: 30, until: "
                "\"07:00\"}");
    }
    if (!has_trials && !has_time) node.fail_wanted("a budget such as '30 trials' or '45min'");
    if (!has_trials) study.budget.trials = trials_of_a_time;
}

}  // namespace

void read_budget(const Yaml& budget, StudyFile& study) {
    if (budget.is_scalar()) return read_short_budget(budget, study);
    read_table(budget, keys::budget, study);
    if (const Yaml* until = budget.find(keys::budget.until))
        study.budget_until = read_time_of_day(*until);
    const bool has_time = budget.find(keys::budget.wall_clock) != nullptr || study.budget_until;
    if (has_time && budget.find(keys::budget.trials) == nullptr)
        study.budget.trials = trials_of_a_time;
    study.budget.when_not_worth_it = budget.find(keys::budget.serves) != nullptr;
}

bool takes_several_goals(std::string_view strategy) {
    return strategy != "staged" && strategy != "local_search";
}

std::unique_ptr<Strategy> make_strategy(const StudySetup& setup) {
    const std::string& name = setup.file.strategy.name;
    if (name == "staged") return std::make_unique<Staged>(setup.file.strategy.staged);
    if (name == "random") return std::make_unique<Random>();
    if (name == "exhaustive") return std::make_unique<Exhaustive>();
    if (name == "quasi_random") return std::make_unique<QuasiRandom>(setup.file.seed);
    if (name == "local_search") return std::make_unique<LocalSearch>();
    if (name == "bayesian") return std::make_unique<Bayesian>(setup.bayesian_options());
    throw std::logic_error("no strategy is called " + name);
}

std::vector<std::string> strategy_names() {
    return {keys::strategies.begin(), keys::strategies.end()};
}

void check_takes_suggestions(const std::string& strategy) {
    if (strategy != "bayesian")
        throw UsageError("the strategy '" + strategy + "' takes no suggestions, 'bayesian' does");
}

std::vector<Configuration> read_suggestions(const std::filesystem::path& file,
                                            const Composition& composition,
                                            const SearchSpace& space) {
    const Yaml root = Yaml::load(file);
    std::vector<Configuration> result;
    for (const Yaml& item : root.items()) {
        Assignment values;
        for (const auto& [name, node] : item.entries()) {
            try {
                const Parameter& parameter = space.at(composition.resolve(name));
                if (!values
                         .emplace(parameter.name,
                                  as_parameter_has_it(parameter, composition.normalized(
                                                                     parameter.name, node.value())))
                         .second)
                    node.fail("'" + parameter.name + "' is set twice");
            } catch (const SpaceError& error) {
                node.fail(error.what());
            }
        }
        try {
            Configuration configuration = space.changed(space.default_configuration(), values);
            if (const auto violations = space.violations(configuration); !violations.empty())
                item.fail(violations.front());
            result.push_back(std::move(configuration));
        } catch (const SpaceError& error) {
            item.fail(error.what());
        }
    }
    return result;
}

}  // namespace servetune
