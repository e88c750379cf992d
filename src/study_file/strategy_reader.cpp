// SPDX-License-Identifier: Apache-2.0
#include "strategy_reader.hpp"

#include "key_reader.hpp"
#include "keys.hpp"
#include "old_keys.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <vector>

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
            std::find_if(composition.parameters().begin(), composition.parameters().end(),
                         [&](const Parameter& p) { return p.name == known; });
        if (!parameter->contains(value.value()))
            value.fail(text_of(value.value()) + " is outside the domain of '" + known + "' (" +
                       parameter->domain_text() + ")");
        result[known] = value.value();
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
        const std::string old(
            now_written("stage", node.entries().empty() ? "" : node.entries().front().first));
        if (node.entries().size() != 1)
            node.fail(old.empty() ? "one name with its candidates wanted" : "old keys: " + old);
        stage.name = node.entries().front().first;
        for (const Yaml& candidate : node.entries().front().second.items())
            stage.candidates.push_back(read_candidate(candidate, composition));
    }
    stage.carried = !baseline || (composition.engines().size() > 1 &&
                                  stage.product == std::vector<std::string>{"engine"});
    return stage;
}

void read_bayesian(const Yaml& node, BayesianOptions& options) {
    node.check_keys(keys::bayesian);
    read_word<keys::gain_units>(node, keys::bayesian.per, options.per_second);
}

/// Empty: there is such a strategy.
std::string wrong_with_strategy(const std::string& name) {
    const std::vector<std::string> known(keys::strategies.begin(), keys::strategies.end());
    if (std::find(known.begin(), known.end(), name) != known.end()) return "";
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
    const Yaml* bayesian = nullptr;
    if (node != nullptr && node->is_scalar()) {
        check_strategy(*node);
        result.name = node->text();
    } else if (node != nullptr) {
        node->check_keys(keys::strategy);
        if (node->entries().size() != 1) node->fail("one strategy wanted");
        result.name = node->entries().front().first;
        staged = node->find(keys::strategy.staged);
        bayesian = node->find(keys::strategy.bayesian);
    }
    if (!replaced.empty()) {
        if (const std::string wrong = wrong_with_strategy(replaced); !wrong.empty())
            throw UsageError(wrong);
        result.name = replaced;
    }
    if (bayesian != nullptr) read_bayesian(*bayesian, result.bayesian);
    if (staged != nullptr) {
        staged->check_keys(keys::staged);
        bool baseline = false;
        read_word<keys::comparisons>(*staged, keys::staged.compare_with, baseline);
        read(*staged, keys::staged.replicates, result.staged.replicates);
        const Yaml& stages = staged->at(keys::staged.stages);
        if (stages.items().empty()) stages.fail("at least one stage wanted");
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

}  // namespace servetune
