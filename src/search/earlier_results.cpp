// SPDX-License-Identifier: Apache-2.0
#include "earlier_results.hpp"

#include "base/present.hpp"
#include "fitted_models.hpp"
#include "nearest_value.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace servetune {

/// 8.0 and 8 are the same number.
Value EarlierResults::plain(const Value& value) {
    const auto* real = std::get_if<double>(&value);
    if (real != nullptr && std::abs(*real) < 9e15 && *real == std::floor(*real))
        return std::int64_t(*real);
    return value;
}

std::vector<EarlierResults::Link> EarlierResults::links(
    const std::vector<Trial>& trials, const std::map<std::string, std::string>& concepts,
    const SearchSpace& space, const Assignment& constants) {
    std::map<std::string, Link> by_key;
    std::set<std::string> names;
    for (const Trial& trial : trials)
        for (const auto& [name, value] : trial.configuration.entries()) names.insert(name);
    for (const std::string& name : names) {
        const auto* found = entry_in(concepts, name);
        const std::string key = found == nullptr || found->empty() ? name : *found;
        Link& link = by_key[key];
        link.key = key;
        link.earlier.insert(name);
        for (const Parameter& parameter : space.parameters()) {
            const bool same_concept =
                !parameter.concept_name.empty() && parameter.concept_name == key;
            const bool known = contains(link.current, &parameter);
            if (!known && (same_concept || parameter.name == name))
                link.current.push_back(&parameter);
        }
    }
    std::vector<Link> result;
    for (auto& [key, link] : by_key) {
        std::set<std::optional<Value>> different;
        for (const Trial& trial : trials) {
            std::optional<Value> here;
            for (const std::string& name : link.earlier)
                if (const Value* value = trial.configuration.find(name); value != nullptr && !here)
                    here = plain(*value);
            link.values.push_back(here);
            different.insert(here);
        }
        if (different.size() < 2) continue;
        for (const Parameter* parameter : link.current) link.names.push_back(parameter->name);
        link.otherwise = link.values.front();
        if (const auto* constant = entry_in(constants, key)) link.otherwise = plain(*constant);
        result.push_back(std::move(link));
    }
    return result;
}

/// Takes all that was seen then and all that may be asked now.
Parameter EarlierResults::parameter_of(const Link& link) {
    std::vector<Value> values;
    bool unset = false;
    bool continuous = false;
    Parameter result;
    bool ordered = !link.current.empty();
    const auto add = [&](const Value& value) {
        if (is_unset(value)) unset = true;
        else if (!contains(values, value)) values.push_back(value);
    };
    for (const Parameter* parameter : link.current) {
        ordered = ordered && parameter->ordered();
        if (parameter->value_when_unset)
            result.value_when_unset = plain(*parameter->value_when_unset);
        const auto* real = std::get_if<RealDomain>(&parameter->domain);
        const auto* integer = std::get_if<IntegerDomain>(&parameter->domain);
        if (parameter->offers_unset) unset = true;
        if (real != nullptr) {
            continuous = true;
            for (const double end : {real->low, real->high}) add(plain(end));
        } else if (integer != nullptr && has_positions(*parameter)) {
            continuous = true;
            for (const std::int64_t end : {integer->low, integer->high}) add(end);
        } else
            for (std::size_t level = 0; level < parameter->level_count(); ++level)
                add(plain(parameter->level(level)));
    }
    for (const auto& value : link.values)
        if (value) add(*value);
    if (link.otherwise) add(*link.otherwise);
    const bool numbers = all_of(values, [](const Value& value) {
        return !std::holds_alternative<bool>(value) && number_of(value).has_value();
    });
    if (numbers)
        sort(values, [](const Value& a, const Value& b) { return *number_of(a) < *number_of(b); });
    result.name = link.key;
    if (continuous && numbers) {
        const double low = present(number_of(values.front()));
        const double high = present(number_of(values.back()));
        constexpr double wide = 4;  // as LevelGeometry: ratios count from there on
        result.domain =
            RealDomain{low, high, low > 0 && high >= wide * low ? Scale::log : Scale::linear};
        result.default_value = low;
    } else {
        if (values.empty()) values.emplace_back(std::string("nothing"));
        result.default_value = values.front();
        result.domain = ChoiceDomain{values, numbers || ordered};
    }
    result.offers_unset = unset;
    if (result.value_when_unset && !numbers && !contains(values, *result.value_when_unset))
        result.value_when_unset.reset();
    return result;
}

std::vector<Winner> EarlierResults::winners_of(const std::vector<Trial>& history,
                                               const Standings& standings, const Goal& goal,
                                               const SearchSpace& space,
                                               const Assignment& constants) const {
    constexpr std::size_t most = 10;
    std::vector<const Standing*> ranked;
    for (const Standing& standing : standings.all())
        if (standing.passes()) ranked.push_back(&standing);
    stable_sort(ranked, [&](const Standing* a, const Standing* b) {
        return goal.better(a->estimate().mean, b->estimate().mean);
    });
    std::vector<Winner> result;
    for (const Standing* standing : ranked) {
        if (result.size() == most) break;
        const auto at = std::size_t(standing->trials.front() - history.data());
        std::string left_out;
        Assignment values;
        bool of_this_engine = true;
        for (const Link& link : links_) {
            const std::optional<Value>& value = link.values[at];
            if (!value) continue;
            if (link.names.empty()) {
                const auto* constant = entry_in(constants, link.key);
                of_this_engine =
                    of_this_engine && (constant == nullptr || plain(*constant) == *value);
                continue;
            }
            for (const std::string& name : link.names) {
                const auto fits = nearest_value(space.at(name), *value);
                if (fits) values[name] = *fits;
                else left_out += (left_out.empty() ? "" : ", ") + name + " = " + text_of(*value);
            }
        }
        if (!of_this_engine) continue;
        if (!left_out.empty())
            left_out = ", but for " + left_out + ", which this study cannot have";
        Winner winner{space.completed(values), "the best of " + name_ + left_out};
        if (space.feasible(winner.configuration)) result.push_back(std::move(winner));
    }
    return result;
}

EarlierResults::EarlierResults(std::string name, const std::vector<Trial>& trials,
                               const std::map<std::string, std::string>& concepts,
                               const Objective& objective, const Decision& decision,
                               const SearchSpace& space, const Assignment& constants)
    : name_(std::move(name)) {
    const Objective aim{objective.leading().metric,
                        objective.leading().direction};  // its limits may be others than ours
    std::vector<Trial> history;
    std::copy_if(trials.begin(), trials.end(), std::back_inserter(history),
                 [](const Trial& trial) { return trial.told(); });
    links_ = links(history, concepts, space, constants);
    if (shared().empty()) {
        std::string varied;
        for (const Link& link : links_) varied += (varied.empty() ? "" : ", ") + link.key;
        throw UsageError(
            name_ +
            (history.empty() ? " has measured nothing yet"
             : varied.empty()
                 ? " has varied nothing yet"
                 : " has varied no parameter that this study has too; it varied: " + varied));
    }
    std::vector<Parameter> parameters;
    for (const Link& link : links_) parameters.push_back(parameter_of(link));
    problem_ = std::make_unique<Problem>(SearchSpace(std::move(parameters)), aim, decision);
    geometry_ = std::make_unique<LevelGeometry>(problem_->space);
    for (std::size_t i = 0; i < history.size(); ++i) {
        Assignment values;
        for (const Link& link : links_)
            if (const auto& value = link.values[i]) values[link.key] = *value;
        history[i].configuration = Configuration::of(values);
    }
    const Standings standings(history, aim, decision, history.front().configuration);
    std::vector<ConfigurationEvidence> evidence =
        worth_learning(evidence_of(*problem_, standings, *geometry_, {}), aim, most_results);
    if (none_of(evidence, [](const ConfigurationEvidence& entry) { return entry.measured(); }))
        throw UsageError(name_ + " has no measured " + aim.leading().metric);
    constexpr std::uint64_t seed = 1;  // one model for one history
    model_ = std::make_unique<FittedModels>(*problem_, std::move(evidence), *geometry_,
                                            standings.noise(), seed);
    winners_ = winners_of(history, standings, aim.leading(), space, constants);
    for (Link& link : links_) {
        link.current.clear();
        link.values.clear();
    }
}

EarlierResults::~EarlierResults() = default;

std::vector<std::string> EarlierResults::shared() const {
    std::vector<std::string> result;
    for (const Link& link : links_)
        if (!link.names.empty()) result.push_back(link.key);
    return result;
}

PriorBelief EarlierResults::belief(const Configuration& configuration) const {
    Assignment values;
    for (const Link& link : links_) {
        if (link.names.empty() && link.otherwise) values[link.key] = *link.otherwise;
        for (const std::string& name : link.names)
            if (const Value* value = configuration.find(name)) values[link.key] = plain(*value);
    }
    const double mean = model_->objective().means({geometry_->encode(Configuration::of(values))},
                                                  Eigen::MatrixXd(1, 0))(0);
    return {std::log(model_->scale().value(mean)), std::nullopt};
}

}  // namespace servetune
