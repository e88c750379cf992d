// SPDX-License-Identifier: Apache-2.0
#include "server_set.hpp"

#include "base/present.hpp"
#include "base/waiting.hpp"
#include "engine/command_reader.hpp"
#include "server_probe.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/host/machine_watch.hpp"

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace servetune {

struct ServerSet::One {
    One(const DeployOptions& options, int own_port)
        : ports(options.launcher ? options.launcher->ports() : std::pair(0, 0)),
          port(own_port != 0 ? std::pair(own_port, own_port) : ports) {}
    std::string name{};         ///< for people, where it has a role or is the router
    std::string folder{};       ///< of its log, below the trial's; empty: that itself
    std::pair<int, int> ports;  ///< that its launcher allows
    ReservedPort port;
    std::optional<ReservedPorts> side{};
    std::unique_ptr<Deployment> deployment{};
    std::exception_ptr error{};

    [[nodiscard]] std::optional<Failure> named(std::optional<Failure> failure) const {
        if (failure && !name.empty()) failure->message = name + ": " + failure->message;
        return failure;
    }
};

namespace {

constexpr const char* router_name = "router";

std::string all_devices(const std::vector<PlacedServer>& servers) {
    std::string result;
    for (const PlacedServer& server : servers)
        if (!server.gpus.empty()) result += (result.empty() ? "" : ",") + server.gpus;
    return result;
}

/// What ended the others is none: they were stopped for it.
bool is_worse(const Failure& failure, const std::optional<Failure>& than) {
    return !than ||
           (than->kind == FailureKind::cancelled && failure.kind != FailureKind::cancelled);
}

/// How the router is spoken to: as the engine, but it has no counters, no cache and no flags of the
/// engine.
Engine spoken_to_as(const Engine& engine) {
    Engine result = engine;
    result.name = "the router of " + engine.name;
    result.ready_path = present(engine.roles).router_ready;
    result.api.erase("server_info");
    result.counters.clear();
    result.between_runs.clear();
    return result;
}

}  // namespace

ServerSet::ServerSet(const Composition& composition, const Configuration& configuration,
                     std::string model, std::vector<PlacedServer> servers, Options options,
                     const std::stop_token& stop)
    : composition_(composition),
      configuration_(configuration),
      model_(std::move(model)),
      servers_(std::move(servers)),
      options_(std::move(options)),
      engine_(composition.engine_of(configuration_)),
      sample_(composition.render(configuration_, {.model = model_, .host = options_.host},
                                 servers_.front().role)),
      served_model_(CommandReader({engine_}).served_name(sample_)),
      on_this_machine_(!options_.deploy.launcher || options_.deploy.launcher->on_this_machine()) {
    if (servers_.size() > 1 && on_this_machine_)
        memory_before_ = GpuMemory(all_devices(servers_), options_.deploy.nvidia_smi).used();
    std::stop_source given_up;
    const std::stop_callback by_user(stop, [&] { given_up.request_stop(); });
    start_servers(given_up);
    if (!started_.failure && has_router()) start_router(stop);
    if (started_.failure) (void)this->stop();
}

std::string ServerSet::model() const { return CommandReader({engine_}).read(sample_).model; }

Command ServerSet::command_of(const std::string& role, int port, int side_port) const {
    Command result = composition_.render(
        configuration_, {model_, role.empty() ? options_.host : options_.inside, port, side_port},
        role);
    result.argv.insert(result.argv.end(), options_.adds.begin(), options_.adds.end());
    return result;
}

void ServerSet::start_servers(std::stop_source& given_up) {
    int port = has_router() ? 0 : options_.port;
    for (const PlacedServer& server : servers_) {
        all_.push_back(std::make_unique<One>(options_.deploy, port));
        if (port != 0) ++port;
        all_.back()->folder = server.name;
        if (has_router()) all_.back()->name = server.name;
    }
    const auto start = [&](std::size_t i) {
        One& one = *all_[i];
        const PlacedServer& server = servers_[i];
        try {
            const bool alone = server.role.empty();
            one.side.emplace(
                alone ? 0 : static_cast<int>(std::max<std::int64_t>(server.devices, 1)), one.ports);
            DeployOptions mine = options_.deploy;
            mine.gpus = server.gpus;
            mine.devices = server.devices;
            mine.answers_alone = alone;
            if (!server.name.empty()) mine.folder /= server.name;
            if (i > 0) mine.waits = {};  // the first one speaks for all
            one.deployment = std::make_unique<Deployment>(
                engine_, command_of(server.role, one.port.number(), one.side->first()),
                served_model_, one.port, std::move(mine), given_up.get_token());
            if (one.deployment->started().failure) given_up.request_stop();
        } catch (...) {
            one.error = std::current_exception();
            given_up.request_stop();
        }
    };
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 1; i < all_.size(); ++i)
            threads.emplace_back([&start, i] { start(i); });
        start(0);
    }
    for (const auto& one : all_)
        if (one->error) {
            const std::exception_ptr error = one->error;
            std::erase_if(all_, [](const auto& other) { return other->deployment == nullptr; });
            if (!all_.empty()) (void)this->stop();
            std::rethrow_exception(error);
        }
    for (const auto& one : all_) note_start(*one);
}

void ServerSet::start_router(const std::stop_token& stop) {
    std::map<std::string, std::vector<ServerAddress>> servers;
    for (std::size_t i = 0; i < servers_.size(); ++i)
        servers[servers_[i].role].push_back(
            {all_[i]->deployment->url_inside(), all_[i]->side->first()});
    auto one = std::make_unique<One>(options_.deploy, options_.port);
    one->name = one->folder = router_name;
    one->side.emplace(1, one->ports);
    DeployOptions mine = options_.deploy;
    mine.folder /= router_name;
    mine.gpus.clear();
    mine.devices = 0;
    const auto start = [&] {
        std::stop_source given_up;
        const std::stop_callback by_user(stop, [&] { given_up.request_stop(); });
        // The router waits for its servers; for one that has died it would wait until its time is
        // over.
        const std::jthread looks([&](const std::stop_token& over) {
            while (!over.stop_requested() && !died())
                (void)wait_or_stop(std::chrono::milliseconds(100), over);
            if (!over.stop_requested()) given_up.request_stop();
        });
        one->deployment = std::make_unique<Deployment>(
            spoken_to_as(engine_),
            composition_.render_router(
                configuration_, {model_, options_.host, one->port.number(), one->side->first()},
                servers),
            served_model_, one->port, std::move(mine), given_up.get_token());
    };
    try {
        start();
    } catch (...) {
        (void)this->stop();
        throw;
    }
    const double servers_took = started_.seconds;
    const double servers_queued = started_.queued_seconds;
    const auto dead = died();
    note_start(*one);
    if (dead && started_.failure) started_.failure = dead;  // why the router did not serve
    started_.seconds = servers_took + one->deployment->started().seconds;
    started_.queued_seconds = servers_queued + one->deployment->started().queued_seconds;
    all_.push_back(std::move(one));
}

void ServerSet::note_start(const One& one) {
    const DeploymentStart& start = one.deployment->started();
    started_.seconds = std::max(started_.seconds, start.seconds);
    started_.queued_seconds = std::max(started_.queued_seconds, start.queued_seconds);
    for (const auto& [what, value] : start.place)  // where they differ all are listed
        if (std::string& known = started_.place[what]; known.empty()) known = value;
        else if (!contains((", " + known + ", "), ", " + value + ", ")) known += ", " + value;
    if (start.failure && is_worse(*start.failure, started_.failure))
        started_.failure = one.named(start.failure);
}

ServerSet::~ServerSet() {
    try {
        if (!all_.empty()) (void)stop();
    } catch (...) {  // NOLINT(bugprone-empty-catch): each deployment's own destructor tries again
    }
}

Endpoint ServerSet::endpoint() const {
    if (all_.size() == servers_.size()) {
        Endpoint result = all_.front()->deployment->endpoint();
        for (std::size_t i = 1; i < all_.size(); ++i)
            result.replicas.push_back(all_[i]->deployment->endpoint().url);
        return result;
    }
    const Endpoint answering = all_[servers_.size() - 1]->deployment->endpoint();
    Endpoint result = all_.back()->deployment->endpoint();
    result.metrics_path = answering.metrics_path;
    result.counters = answering.counters;
    for (std::size_t i = 0; i < servers_.size(); ++i)
        if (servers_[i].role == servers_.back().role)
            result.counted.push_back(all_[i]->deployment->endpoint().url);
    return result;
}

std::optional<Failure> ServerSet::first_failure(
    const std::function<std::optional<Failure>(const Deployment&)>& of) const {
    std::optional<Failure> result;
    for (const auto& one : all_)
        if (const auto failure = of(*one->deployment); failure && is_worse(*failure, result))
            result = one->named(failure);
    return result;
}

std::optional<Failure> ServerSet::died() const {
    return first_failure([](const Deployment& one) { return one.died(); });
}

std::optional<Failure> ServerSet::changed() const {
    return first_failure([](const Deployment& one) { return one.changed(); });
}

std::optional<Failure> ServerSet::lost() const {
    return first_failure([](const Deployment& one) { return one.lost(); });
}

bool ServerSet::reset_cache() {
    bool all = true;
    for (std::size_t i = 0; i < servers_.size(); ++i)
        all = all_[i]->deployment->reset_cache() && all;  // a router has none
    return all;
}

std::vector<std::string> ServerSet::not_in_force() const {
    std::vector<std::string> result;
    for (const auto& one : all_)
        for (const std::string& line : one->deployment->not_in_force())
            if (!contains(result, line)) result.push_back(line);
    return result;
}

std::unique_ptr<MachineWatch> ServerSet::watch(MachineWatchOptions options) const {
    if (all_.size() == 1 || !on_this_machine_)
        return all_.front()->deployment->watch(std::move(options));
    options.gpus = all_devices(servers_);
    options.cores = options_.deploy.cores;
    options.before = memory_before_;
    return std::make_unique<MachineWatch>(
        WatchedProcesses{all_.front()->deployment->process_id(), options_.deploy.mark},
        std::move(options));
}

const ServerSet::One& ServerSet::deciding() const {
    for (const auto& one : all_)
        if (const auto failure = one->deployment->died();
            failure && failure->kind != FailureKind::cancelled)
            return *one;
    return *all_.front();
}

std::vector<std::string> ServerSet::decisive() const { return deciding().deployment->decisive(); }

std::string ServerSet::log_folder() const { return deciding().folder; }

std::string ServerSet::log_trouble() const {
    std::string result;
    for (const auto& one : all_)
        if (const std::string trouble = one->deployment->log_trouble(); !trouble.empty())
            result += (result.empty() ? "" : "; ") + trouble;
    return result;
}

Ended ServerSet::stop() {
    std::vector<Ended> ended(all_.size());
    const auto end = [&](std::size_t i) {
        try {
            ended[i] = all_[i]->deployment->stop();
        } catch (...) {
            all_[i]->error = std::current_exception();
        }
    };
    const std::size_t engines = std::min(servers_.size(), all_.size());
    for (std::size_t i = engines; i < all_.size(); ++i)
        end(i);  // the router: it would report engines that are gone
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 1; i < engines; ++i) threads.emplace_back([&end, i] { end(i); });
        end(0);
    }
    for (const auto& one : all_)
        if (one->error) std::rethrow_exception(std::exchange(one->error, nullptr));
    Ended result = ended.front();
    for (std::size_t i = 1; i < ended.size(); ++i) {
        result.seconds = i < engines ? std::max(result.seconds, ended[i].seconds)
                                     : result.seconds + ended[i].seconds;
        result.report += ended[i].report;
    }
    return result;
}

std::vector<std::string> ServerSet::addresses() const {
    const Endpoint endpoint = this->endpoint();
    std::vector<std::string> result{endpoint.url};
    result.insert(result.end(), endpoint.replicas.begin(), endpoint.replicas.end());
    return result;
}

std::string ServerSet::why_silent(double answer_within_seconds, const std::stop_token& stop) const {
    const Engine asked = has_router() ? spoken_to_as(engine_) : engine_;
    Endpoint endpoint = this->endpoint();
    endpoint.replicas.clear();
    for (const std::string& url : addresses()) {
        endpoint.url = url;
        const ProbeAnswer answer = ServerProbe(asked, endpoint, [&stop] {
                                       return stop.stop_requested();
                                   }).ask(answer_within_seconds, false);
        if (answer.state == ProbeAnswer::State::not_yet ||
            answer.state == ProbeAnswer::State::failed)
            return url + ": " + answer.message;
    }
    return "";
}

std::size_t ServerSet::ports_of(const std::vector<PlacedServer>& servers) {
    return servers.front().role.empty() ? servers.size() : 1;
}

}  // namespace servetune
