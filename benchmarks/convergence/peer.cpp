// SPDX-License-Identifier: Apache-2.0
// A foreign optimizer as a program: one JSON object a line, to its standard input and from its
// standard output (README.md).
#include "contender.hpp"

#include "servetune/standings.hpp"
#include "study/json.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>

namespace servetune::convergence {
namespace {

using Json = nlohmann::json;

/// Of two levels: 1 of words, of ordered ones their distance over the range; 1 where one is
/// inactive.
double level_distance(const Parameter& parameter, const Value* a, const Value* b) {
    if (a == nullptr || b == nullptr) return a == b ? 0 : 1;
    if (*a == *b) return 0;
    if (!parameter.ordered()) return 1;
    std::size_t from = 0;
    std::size_t to = 0;
    for (std::size_t i = 0; i < parameter.level_count(); ++i) {
        if (parameter.level(i) == *a) from = i;
        if (parameter.level(i) == *b) to = i;
    }
    return double(std::max(from, to) - std::min(from, to)) / double(parameter.level_count() - 1);
}

/// An answer that breaks a known constraint costs no trial: the nearest of those that are possible
/// and were not measured is measured in its place. Nothing where all were.
std::optional<Configuration> nearest_possible(const Problem& problem, const Configuration& wanted,
                                              std::span<const Trial> history) {
    std::set<Configuration> measured;
    for (const Trial& trial : history) measured.insert(trial.configuration);
    std::optional<Configuration> nearest;
    double least = 0;
    problem.feasible.for_each([&](const Configuration& one) {
        if (measured.contains(one)) return true;
        double distance = 0;
        for (const Parameter& parameter : problem.space.parameters())
            distance +=
                level_distance(parameter, wanted.find(parameter.name), one.find(parameter.name));
        if (!nearest || distance < least) {
            nearest = one;
            least = distance;
        }
        return true;
    });
    return nearest;
}

Json json_value(const Value& value) {
    if (is_unset(value)) return nullptr;
    if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    return std::get<std::string>(value);
}

Json json_values(const std::vector<Value>& values) {
    Json list = Json::array();
    for (const Value& value : values) list.push_back(json_value(value));
    return list;
}

Json json_space(const SearchSpace& space) {
    Json list = Json::array();
    for (const std::size_t i : space.parents_first()) {
        const Parameter& parameter = space.parameters()[i];
        if (parameter.continuous())
            throw UsageError("'" + parameter.name + "' is continuous: peers are told levels");
        std::vector<Value> levels;
        for (std::size_t l = 0; l < parameter.level_count(); ++l)
            levels.push_back(parameter.level(l));
        Json when = Json::array();
        for (const Condition& condition : parameter.active_when)
            when.push_back(
                {{"parent", condition.parent}, {"values", json_values(condition.values)}});
        list.push_back({{"name", parameter.name},
                        {"values", json_values(levels)},
                        {"ordered", parameter.ordered() && !parameter.offers_unset},
                        {"default", json_value(parameter.default_value)},
                        {"when", when}});
    }
    return list;
}

class Peer : public Contender {
public:
    Peer(std::string name, std::string command)
        : name_(std::move(name)), command_(std::move(command)) {}
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer() override { stop(); }

    void begin(const Problem& problem, const Task& /*task*/, std::size_t budget,
               std::uint64_t seed) override {
        if (process_ < 0) start();
        problem_ = &problem;
        told_ = 0;
        send({{"space", json_space(problem.space)},
              {"direction", problem.objective.leading().direction == Direction::maximize
                                ? "maximize"
                                : "minimize"},
              {"budget", budget},
              {"seed", seed}});
    }

    Asked ask(std::span<const Trial> history) override {
        for (; told_ < history.size(); ++told_) send({{"tell", tell(history[told_])}});
        Asked asked;
        send({{"ask", true}});
        const Json answer = receive();
        if (answer.contains("finished")) return asked;
        if (!answer.contains("configuration"))
            throw UsageError(name_ + " answered neither a configuration nor that it is finished");
        asked.configuration = configuration_from_json(answer.at("configuration").dump());
        if (problem_->space.feasible(*asked.configuration)) return asked;
        ++asked.infeasible;
        send({{"tell", {{"configuration", answer.at("configuration")}, {"infeasible", true}}}});
        asked.configuration = nearest_possible(*problem_, *asked.configuration, history);
        return asked;
    }

private:
    [[nodiscard]] Json tell(const Trial& trial) const {
        Json told{{"configuration", Json::parse(json_of(trial.configuration))}};
        const std::vector<Trial> alone{trial};
        const Standings standings(alone, problem_->objective, problem_->decision,
                                  trial.configuration);
        if (standings.best() != nullptr) told["value"] = standings.best()->leading().values.front();
        else told["failed"] = true;  // it died, or it broke a limit
        return told;
    }

    void start() {
        int to[2];
        int from[2];
        if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
            throw IoError("cannot make a pipe");
        process_ = fork();
        if (process_ < 0) throw IoError("cannot start " + command_);
        if (process_ == 0) {
            dup2(to[0], 0);
            dup2(from[1], 1);
            execl("/bin/sh", "sh", "-c", ("exec " + command_).c_str(), static_cast<char*>(nullptr));
            _exit(127);
        }
        close(to[0]);
        close(from[1]);
        to_ = fdopen(to[1], "w");
        from_ = fdopen(from[0], "r");
    }

    void stop() {
        if (process_ < 0) return;
        if (to_ != nullptr) std::fclose(to_);  // the end of its input is the end of its work
        if (from_ != nullptr) std::fclose(from_);
        waitpid(process_, nullptr, 0);
        process_ = -1;
    }

    void send(const Json& message) {
        const std::string line = message.dump() + "\n";
        if (std::fputs(line.c_str(), to_) < 0 || std::fflush(to_) != 0)
            throw IoError(name_ + " (" + command_ + ") is gone");
    }

    Json receive() {
        char* line = nullptr;
        std::size_t size = 0;
        const ssize_t got = getline(&line, &size, from_);
        const std::string text = got > 0 ? std::string(line, std::size_t(got)) : std::string();
        std::free(line);
        if (text.empty()) throw IoError(name_ + " (" + command_ + ") ended in the middle of a run");
        return Json::parse(text);
    }

    std::string name_;
    std::string command_;
    const Problem* problem_ = nullptr;
    std::size_t told_ = 0;
    pid_t process_ = -1;
    std::FILE* to_ = nullptr;
    std::FILE* from_ = nullptr;
};

}  // namespace

std::unique_ptr<Contender> peer(const std::string& name, const std::string& command) {
    return std::make_unique<Peer>(name, command);
}

}  // namespace servetune::convergence
