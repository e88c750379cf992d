// SPDX-License-Identifier: Apache-2.0
#include "contender.hpp"

#include "search/earlier_results.hpp"
#include "search/model_cache.hpp"
#include "servetune/bayesian.hpp"
#include "servetune/quasi_random.hpp"
#include "servetune/simple_strategies.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

namespace servetune::convergence {
namespace {

using Maker = std::function<std::unique_ptr<Strategy>(const Problem&, const Task&,
                                                      std::size_t budget, std::uint64_t seed)>;

std::unique_ptr<Strategy> bayesian(std::size_t budget, std::uint64_t seed, Beliefs beliefs = {}) {
    Bayesian::Options options;
    options.trials = budget;
    options.seed = seed;
    options.beliefs = std::move(beliefs);
    return std::make_unique<Bayesian>(options);
}
std::unique_ptr<Strategy> as_it_ships(const Problem&, const Task&, std::size_t budget,
                                      std::uint64_t seed) {
    return bayesian(budget, seed);
}

/// What a cost model says, or what a wrong one would say in its place.
enum class Told { as_it_is, flipped, constant, garbage };

class Retold : public PriorMean {
public:
    Retold(std::shared_ptr<const PriorMean> belief, Told told, std::uint64_t seed)
        : belief_(std::move(belief)), told_(told), seed_(seed) {}
    [[nodiscard]] std::string name() const override { return "the cost model"; }
    [[nodiscard]] PriorBelief belief(const Configuration& configuration) const override {
        if (told_ == Told::constant) return {0.0, {}};
        Rng rng(derive_seed(seed_, fingerprint_of(configuration.text()).bits));
        if (told_ == Told::garbage) return {rng.normal(), rng.normal()};
        PriorBelief belief = belief_->belief(configuration);
        if (told_ == Told::flipped && belief.log_value) *belief.log_value *= -1;
        if (told_ == Told::flipped && belief.margin) *belief.margin *= -1;
        return belief;
    }

private:
    std::shared_ptr<const PriorMean> belief_;
    Told told_;
    std::uint64_t seed_;
};

Maker knowing(Told told) {
    return [=](const Problem&, const Task& task, std::size_t budget, std::uint64_t seed) {
        if (!task.belief()) throw UsageError("the task has no cost model to know");
        return bayesian(budget, seed,
                        Beliefs({std::make_shared<Retold>(task.belief(), told, seed)}));
    };
}

/// What earlier studies of other machines or loads measured; nothing where the task has none.
std::vector<EarlierTable> of_others(const Task& task, std::uint64_t /*seed*/) {
    return task.earlier();
}

/// Some of the task's own rows: a machine just like this one, of which not all was measured.
std::vector<EarlierTable> of_one_like_it(const Task& task, std::uint64_t seed) {
    constexpr std::array<std::size_t, 12> sizes{60, 500,  120, 1500, 250,  800,
                                                90, 1000, 180, 350,  1250, 650};
    constexpr std::uint64_t extract_stream = 0x65787472616374;
    std::vector<Trial> rows = task.rows();
    Rng rng(derive_seed(seed, extract_stream));
    const std::size_t count =
        std::min(sizes[(seed + sizes.size() - 1) % sizes.size()], rows.size() / 2);
    for (std::size_t i = 0; i < count; ++i)
        std::swap(rows[i], rows[i + rng.index(rows.size() - i)]);
    rows.resize(count);
    std::stable_partition(rows.begin(), rows.end(), [](const Trial& row) {
        return std::holds_alternative<Measurement>(*row.outcome);
    });
    if (rows.empty()) return {};
    return {{"an extract of " + std::to_string(count) + " rows", std::move(rows)}};
}

Maker learning(std::vector<EarlierTable> (*earlier)(const Task&, std::uint64_t)) {
    return [=](const Problem& problem, const Task& task, std::size_t budget, std::uint64_t seed) {
        std::vector<std::shared_ptr<const PriorMean>> sources;
        for (const EarlierTable& table : earlier(task, seed))
            sources.push_back(std::make_shared<EarlierResults>(
                table.name, table.rows, std::map<std::string, std::string>{}, problem.objective,
                problem.decision, problem.space));
        return bayesian(budget, seed, Beliefs(std::move(sources)));
    };
}

/// What takes memory is knowledge that no peer is told: one contender has it.
constexpr const char* knows_memory = "bayesian_monotone";

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
        {"staged_undo", [](const Problem& problem, const Task&, std::size_t,
                           std::uint64_t) { return staged_undo(problem.space); }},
        {"bayesian", as_it_ships},
        {"bayesian_learning", learning(of_others)},
        {"bayesian_extract", learning(of_one_like_it)},
        {knows_memory, as_it_ships},
        {"bayesian_knowing", knowing(Told::as_it_is)},
        {"bayesian_misled", knowing(Told::flipped)},
        {"bayesian_told_nothing", knowing(Told::constant)},
        {"bayesian_told_garbage", knowing(Told::garbage)},
    };
    return map;
}

/// Of each value the chance that the mixture gives to less, from all other values, noise included
/// (leave one out, with the hyperparameters that were fitted to all). Even over [0, 1] where the
/// predictive intervals are calibrated: a 90 % interval holds a value whose chance is between 0.05
/// and 0.95. O(n^3).
std::vector<double> leave_one_out_chances_of(const Surrogate& surrogate) {
    std::vector<double> result(
        static_cast<std::size_t>(surrogate.experts().front().process.size()), 0.0);
    for (const Expert& expert : surrogate.experts()) {
        const std::vector<Prediction> predictions = expert.process.leave_one_out();
        for (std::size_t i = 0; i < result.size(); ++i) {
            const double off = expert.process.data().values(static_cast<Eigen::Index>(i)) -
                               predictions[i].mean;
            result[i] += expert.weight * normal_cdf(off, predictions[i].variance);
        }
    }
    return result;
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
    Own(Maker maker, bool knowing) : maker_(std::move(maker)), knowing_(knowing) {}
    void begin(const Problem& problem, const Task& task, std::size_t budget,
               std::uint64_t seed) override {
        const std::vector<Parameter>& all = problem.space.parameters();
        const bool known = std::any_of(all.begin(), all.end(), [](const Parameter& parameter) {
            return parameter.grows_memory;
        });
        if (known && !knowing_) reduced_ = without_knowledge_of_memory(problem);
        problem_ = known && !knowing_ ? reduced_.get() : &problem;
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
        const Standings standings(history, problem_->objective, problem_->decision);
        const LevelGeometry geometry(problem_->space);
        return leave_one_out_chances_of(
            learned_anew(*problem_, standings, geometry,
                         bayesian->options().beliefs.fitted_to(history, problem_->decision), seed_)
                .objective());
    }

private:
    Maker maker_;
    bool knowing_;
    std::shared_ptr<const Problem> reduced_{};
    const Problem* problem_ = nullptr;
    std::uint64_t seed_ = 0;
    std::unique_ptr<Strategy> strategy_{};
};

}  // namespace

std::vector<std::string> own_contenders() {
    std::vector<std::string> names;
    for (const auto& [name, maker] : makers())
        if (name != knows_memory && name.find("_knowing") == std::string::npos &&
            name.find("_misled") == std::string::npos && name.find("_told_") == std::string::npos &&
            name != "bayesian_learning" && name != "bayesian_extract")
            names.push_back(name);
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
    return static_cast<std::size_t>(*workers);
}

bool knows_budget(const std::string& described) {
    const std::size_t equals = described.find('=');
    return equals == std::string::npos ? described.starts_with("bayesian")
                                       : equals > 0 && described[equals - 1] == '~';
}

std::unique_ptr<Contender> contender(const std::string& described) {
    if (const std::size_t equals = described.find('='); equals != std::string::npos)
        return peer(name_of_contender(described), described.substr(equals + 1));
    const auto found = makers().find(described.substr(0, described.find('@')));
    if (found == makers().end())
        throw UsageError("no contender '" + described + "'; a program is written NAME=command");
    return std::make_unique<Own>(found->second, found->first == knows_memory);
}

}  // namespace servetune::convergence
