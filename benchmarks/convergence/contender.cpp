// SPDX-License-Identifier: Apache-2.0
#include "contender.hpp"

#include "search/earlier_results.hpp"
#include "search/model_cache.hpp"
#include "servetune/bayesian.hpp"
#include "servetune/quasi_random.hpp"
#include "servetune/simple_strategies.hpp"
#include "servetune/staged.hpp"

#include <functional>
#include <map>

namespace servetune::convergence {
namespace {

using Maker = std::function<std::unique_ptr<Strategy>(const Problem&, const Task&,
                                                      std::size_t budget, std::uint64_t seed)>;

std::unique_ptr<Strategy> bayesian(std::size_t budget, std::uint64_t seed, Beliefs beliefs) {
    Bayesian::Options options;
    options.trials = budget;
    options.seed = seed;
    options.beliefs = std::move(beliefs);
    return std::make_unique<Bayesian>(options);
}

/// The reverse of what a cost model says, or (`sign` 0) the same of all, and as sure of itself.
class Turned : public PriorMean {
public:
    Turned(std::shared_ptr<const PriorMean> belief, double sign)
        : belief_(std::move(belief)), sign_(sign) {}
    [[nodiscard]] std::string name() const override { return "the cost model"; }
    [[nodiscard]] PriorBelief belief(const Configuration& configuration) const override {
        PriorBelief belief = belief_->belief(configuration);
        if (belief.log_value) *belief.log_value *= sign_;
        if (belief.margin) *belief.margin *= sign_;
        for (auto& margin : belief.limits)
            if (margin) *margin *= sign_;
        return belief;
    }

private:
    std::shared_ptr<const PriorMean> belief_;
    double sign_;
};

Maker knowing(double sign) {
    return [=](const Problem&, const Task& task, std::size_t budget, std::uint64_t seed) {
        std::shared_ptr<const PriorMean> belief = task.belief();
        if (!belief) throw UsageError("the task has no cost model to know");
        if (sign < 1) belief = std::make_shared<Turned>(belief, sign);
        return bayesian(budget, seed, Beliefs({belief}));
    };
}

/// From what earlier studies of other machines or loads measured; nothing where the task has none.
std::unique_ptr<Strategy> learning(const Problem& problem, const Task& task, std::size_t budget,
                                   std::uint64_t seed) {
    std::vector<std::shared_ptr<const PriorMean>> sources;
    for (const EarlierTable& table : task.earlier())
        sources.push_back(std::make_shared<EarlierResults>(
            table.name, table.rows, std::map<std::string, std::string>{}, problem.objective,
            problem.decision, problem.space));
    return bayesian(budget, seed, Beliefs(std::move(sources)));
}

/// One parameter after the other in the order of the space, each winner kept: the published method
/// without anybody's knowledge of the order.
std::unique_ptr<Strategy> staged_over(const SearchSpace& space) {
    Staged::Options options;
    for (const std::size_t i : space.parents_first())
        options.stages.push_back({space.parameters()[i].name, {space.parameters()[i].name}});
    return std::make_unique<Staged>(options);
}

/// Of each value the chance that the mixture gives to less, from all other values, noise included
/// (leave one out, with the hyperparameters that were fitted to all). Even over [0, 1] where the
/// predictive intervals are calibrated: a 90 % interval holds a value whose chance is between 0.05
/// and 0.95. O(n^3).
std::vector<double> chances_of(const Surrogate& surrogate) {
    std::vector<double> result(std::size_t(surrogate.experts().front().process.size()), 0.0);
    for (const Expert& expert : surrogate.experts()) {
        const std::vector<Prediction> predictions = expert.process.leave_one_out();
        for (std::size_t i = 0; i < result.size(); ++i) {
            const double off =
                expert.process.data().values(static_cast<Eigen::Index>(i)) - predictions[i].mean;
            result[i] += expert.weight * normal_cdf(off, predictions[i].variance);
        }
    }
    return result;
}

const std::map<std::string, Maker>& makers() {
    static const std::map<std::string, Maker> map{
        {"random", [](const Problem&, const Task&, std::size_t,
                      std::uint64_t) { return std::make_unique<Random>(); }},
        {"quasi_random", [](const Problem&, const Task&, std::size_t,
                            std::uint64_t seed) { return std::make_unique<QuasiRandom>(seed); }},
        {"local_search", [](const Problem&, const Task&, std::size_t,
                            std::uint64_t) { return std::make_unique<LocalSearch>(); }},
        {"staged", [](const Problem& problem, const Task&, std::size_t,
                      std::uint64_t) { return staged_over(problem.space); }},
        {"bayesian", [](const Problem&, const Task&, std::size_t budget,
                        std::uint64_t seed) { return bayesian(budget, seed, {}); }},
        {"bayesian_learning", learning},
        {"bayesian_knowing", knowing(1)},
        {"bayesian_misled", knowing(-1)},
        {"bayesian_flat", knowing(0)},
    };
    return map;
}

std::shared_ptr<const Problem> without_knowledge_of_memory(const Problem& problem) {
    std::vector<Parameter> parameters = problem.space.parameters();
    for (Parameter& parameter : parameters) parameter.grows_memory = false;
    return std::make_shared<const Problem>(
        SearchSpace(std::move(parameters), problem.space.constraints()), problem.objective,
        problem.decision);
}

class Own : public Contender {
public:
    explicit Own(Maker maker) : maker_(std::move(maker)) {}
    void begin(const Problem& problem, const Task& task, std::size_t budget,
               std::uint64_t seed) override {
        // What takes memory is knowledge that no peer is told.
        problem_ = without_knowledge_of_memory(problem);
        seed_ = seed;
        strategy_ = maker_(*problem_, task, budget, seed);
    }
    Asked ask(std::span<const Trial> history) override {
        Rng rng(derive_seed(derive_seed(seed_, 1), history.size()));
        const Answer answer = strategy_->ask(*problem_, history, rng);
        if (const auto* proposal = std::get_if<Proposal>(&answer))
            return {proposal->configuration, proposal->why};
        return {};
    }

    [[nodiscard]] std::vector<double> leave_one_out_chances(
        std::span<const Trial> history) const override {
        const auto* bayesian = dynamic_cast<const Bayesian*>(strategy_.get());
        if (bayesian == nullptr) return {};
        const Standings standings = problem_->standings(history);
        const LevelGeometry geometry(problem_->space);
        return chances_of(
            learned_anew(*problem_, standings, geometry,
                         bayesian->options().beliefs.fitted_to(history, problem_->decision), seed_)
                .objective());
    }

private:
    Maker maker_;
    std::shared_ptr<const Problem> problem_{};
    std::uint64_t seed_ = 0;
    std::unique_ptr<Strategy> strategy_{};
};

}  // namespace

std::vector<std::string> own_contenders() {
    std::vector<std::string> names;
    for (const auto& [name, maker] : makers())
        if (!name.starts_with("bayesian_")) names.push_back(name);
    return names;
}

std::string name_of_contender(const std::string& described) {
    return described.substr(0, described.find_first_of("~="));
}

std::size_t workers_of(const std::string& described) {
    const std::size_t at = described.find('@');
    if (at == std::string::npos || described.find('=') != std::string::npos) return 1;
    const auto workers = integer_of(described.substr(at + 1));
    if (!workers || *workers < 1)
        throw UsageError("a number of workers wanted after the '@' of '" + described + "'");
    return std::size_t(*workers);
}

bool knows_budget(const std::string& described) {
    const std::size_t equals = described.find('=');
    return equals == std::string::npos ? described.starts_with("bayesian")
                                       : equals > 0 && described[equals - 1] == '~';
}

std::unique_ptr<Contender> contender(const std::string& described) {
    if (const std::size_t equals = described.find('='); equals != std::string::npos)
        return peer(name_of_contender(described), described.substr(equals + 1));
    const auto* found = entry_in(makers(), described.substr(0, described.find('@')));
    if (found == nullptr)
        throw UsageError("no contender '" + described + "'; a program is written NAME=command");
    return std::make_unique<Own>(*found);
}

}  // namespace servetune::convergence
