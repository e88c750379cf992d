// SPDX-License-Identifier: Apache-2.0
#include "replicas.hpp"

#include "base/waiting.hpp"
#include "servetune/detail/host/gpu_memory.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>
#include <thread>
#include <utility>

namespace servetune {

struct Replicas::One {
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

    [[nodiscard]] std::optional<Failure> told(std::optional<Failure> failure) const {
        if (failure && !name.empty()) failure->message = name + ": " + failure->message;
        return failure;
    }
};

namespace {

constexpr const char* router_name = "router";

std::string all_devices(const std::vector<ServerPart>& parts) {
    std::string result;
    for (const ServerPart& part : parts)
        if (!part.gpus.empty()) result += (result.empty() ? "" : ",") + part.gpus;
    return result;
}

/// Those of every part; any where one may run on any.
std::vector<int> all_cores(const std::vector<ServerPart>& parts,
                           const std::vector<int>& otherwise) {
    std::set<int> result;
    for (const ServerPart& part : parts) {
        const std::vector<int>& cores = part.cores.empty() ? otherwise : part.cores;
        if (cores.empty()) return {};
        result.insert(cores.begin(), cores.end());
    }
    return {result.begin(), result.end()};
}

/// What ended the others is none: they were stopped for it.
bool is_worse(const Failure& failure, const std::optional<Failure>& than) {
    return !than ||
           (than->kind == FailureKind::cancelled && failure.kind != FailureKind::cancelled);
}

/// How the router is spoken to: as the engine, but it has no counters, no cache and no flags of the
/// engine.
Engine spoken_to_as(const Engine& engine, const std::string& ready_path) {
    Engine result = engine;
    result.name = "the router of " + engine.name;
    result.ready_path = ready_path;
    result.api.erase("server_info");
    result.counters.clear();
    result.between_runs.clear();
    return result;
}

}  // namespace

Replicas::Replicas(const Engine& engine, std::vector<ServerPart> parts,
                   const std::optional<ServerRouter>& router, const std::string& served_model,
                   const DeployOptions& options, const std::stop_token& stop)
    : parts_(std::move(parts)),
      mark_(options.mark),
      cores_(all_cores(parts_, options.cores)),
      gpus_(all_devices(parts_)),
      watched_(!options.launcher || options.launcher->on_this_machine()) {
    if (parts_.size() > 1 && watched_) memory_before_ = GpuMemory(gpus_, options.nvidia_smi).used();
    std::stop_source given_up;
    const std::stop_callback by_user(stop, [&] { given_up.request_stop(); });
    start_engines(engine, served_model, options, given_up);
    if (!started_.failure && router) start_router(engine, *router, served_model, options, stop);
    if (started_.failure) (void)this->stop();
}

void Replicas::start_engines(const Engine& engine, const std::string& served_model,
                             const DeployOptions& options, std::stop_source& given_up) {
    for (const ServerPart& part : parts_) {
        all_.push_back(std::make_unique<One>(options, part.port));
        all_.back()->folder = part.name;
        if (!part.role.empty()) all_.back()->name = part.name;
    }
    const auto start = [&](std::size_t i) {
        One& one = *all_[i];
        const ServerPart& part = parts_[i];
        try {
            one.side.emplace(
                part.role.empty() ? 0 : static_cast<int>(std::max<std::int64_t>(part.devices, 1)),
                one.ports);
            DeployOptions mine = options;
            mine.gpus = part.gpus;
            mine.devices = part.devices;
            mine.answers_alone = part.role.empty();
            if (!part.cores.empty()) mine.cores = part.cores;
            if (!part.name.empty()) mine.folder /= part.name;
            if (i > 0) mine.waits = {};  // the first one speaks for all
            one.deployment = std::make_unique<Deployment>(
                engine, part.render(one.port.number(), one.side->first()), served_model, one.port,
                std::move(mine), given_up.get_token());
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

void Replicas::start_router(const Engine& engine, const ServerRouter& router,
                            const std::string& served_model, const DeployOptions& options,
                            const std::stop_token& stop) {
    std::map<std::string, std::vector<RoleServer>> servers;
    for (std::size_t i = 0; i < parts_.size(); ++i)
        servers[parts_[i].role].push_back(
            {all_[i]->deployment->url_inside(), all_[i]->side->first()});
    auto one = std::make_unique<One>(options, router.port);
    one->name = one->folder = router_name;
    one->side.emplace(1, one->ports);
    DeployOptions mine = options;
    mine.folder /= router_name;
    mine.gpus.clear();
    mine.devices = 0;
    const auto start = [&] {
        std::stop_source given_up;
        const std::stop_callback by_user(stop, [&] { given_up.request_stop(); });
        // The router waits for its engines; for one that has died it would wait until its time is
        // over.
        const std::jthread looks([&](const std::stop_token& over) {
            while (!over.stop_requested() && !died())
                (void)wait_or_stop(std::chrono::milliseconds(100), over);
            if (!over.stop_requested()) given_up.request_stop();
        });
        one->deployment = std::make_unique<Deployment>(
            spoken_to_as(engine, router.ready_path),
            router.render(one->port.number(), one->side->first(), servers), served_model, one->port,
            std::move(mine), given_up.get_token());
    };
    try {
        start();
    } catch (...) {
        (void)this->stop();
        throw;
    }
    const double engines_took = started_.seconds;
    const double engines_queued = started_.queued_seconds;
    const auto dead = died();
    note_start(*one);
    if (dead && started_.failure) started_.failure = dead;  // why the router did not serve
    started_.seconds = engines_took + one->deployment->started().seconds;
    started_.queued_seconds = engines_queued + one->deployment->started().queued_seconds;
    all_.push_back(std::move(one));
}

void Replicas::note_start(const One& one) {
    const DeploymentStart& start = one.deployment->started();
    started_.seconds = std::max(started_.seconds, start.seconds);
    started_.queued_seconds = std::max(started_.queued_seconds, start.queued_seconds);
    for (const auto& [what, value] : start.place)  // where they differ all are listed
        if (std::string& known = started_.place[what]; known.empty()) known = value;
        else if ((", " + known + ", ").find(", " + value + ", ") == std::string::npos)
            known += ", " + value;
    if (start.failure && is_worse(*start.failure, started_.failure))
        started_.failure = one.told(start.failure);
}

Replicas::~Replicas() {
    try {
        if (!all_.empty()) (void)stop();
    } catch (...) {  // NOLINT(bugprone-empty-catch): each deployment's own destructor tries again
    }
}

Endpoint Replicas::endpoint() const {
    if (all_.size() == parts_.size()) {
        Endpoint result = all_.front()->deployment->endpoint();
        for (std::size_t i = 1; i < all_.size(); ++i)
            result.replicas.push_back(all_[i]->deployment->endpoint().url);
        return result;
    }
    const Endpoint answering = all_[parts_.size() - 1]->deployment->endpoint();
    Endpoint result = all_.back()->deployment->endpoint();
    result.metrics_path = answering.metrics_path;
    result.counters = answering.counters;
    for (std::size_t i = 0; i < parts_.size(); ++i)
        if (parts_[i].role == parts_.back().role)
            result.counted.push_back(all_[i]->deployment->endpoint().url);
    return result;
}

std::optional<Failure> Replicas::first_failure(
    const std::function<std::optional<Failure>(const Deployment&)>& of) const {
    std::optional<Failure> result;
    for (const auto& one : all_)
        if (const auto failure = of(*one->deployment); failure && is_worse(*failure, result))
            result = one->told(failure);
    return result;
}

std::optional<Failure> Replicas::died() const {
    return first_failure([](const Deployment& one) { return one.died(); });
}

std::optional<Failure> Replicas::changed() const {
    return first_failure([](const Deployment& one) { return one.changed(); });
}

std::optional<Failure> Replicas::lost() const {
    return first_failure([](const Deployment& one) { return one.lost(); });
}

bool Replicas::reset_cache() {
    bool all = true;
    for (std::size_t i = 0; i < parts_.size(); ++i)
        all = all_[i]->deployment->reset_cache() && all;  // a router has none
    return all;
}

std::vector<std::string> Replicas::not_in_force() const {
    std::vector<std::string> result;
    for (const auto& one : all_)
        for (const std::string& line : one->deployment->not_in_force())
            if (std::find(result.begin(), result.end(), line) == result.end())
                result.push_back(line);
    return result;
}

std::unique_ptr<MachineWatch> Replicas::watch(MachineWatchOptions options) const {
    if (all_.size() == 1 || !watched_) return all_.front()->deployment->watch(std::move(options));
    options.gpus = gpus_;
    options.cores = cores_;
    options.before = memory_before_;
    return std::make_unique<MachineWatch>(
        WatchedProcesses{all_.front()->deployment->process_id(), mark_}, std::move(options));
}

const Replicas::One& Replicas::deciding() const {
    for (const auto& one : all_)
        if (const auto failure = one->deployment->died();
            failure && failure->kind != FailureKind::cancelled)
            return *one;
    return *all_.front();
}

std::vector<std::string> Replicas::decisive() const { return deciding().deployment->decisive(); }

std::string Replicas::log_folder() const { return deciding().folder; }

std::string Replicas::log_trouble() const {
    std::string result;
    for (const auto& one : all_)
        if (const std::string trouble = one->deployment->log_trouble(); !trouble.empty())
            result += (result.empty() ? "" : "; ") + trouble;
    return result;
}

Ended Replicas::stop() {
    std::vector<Ended> ended(all_.size());
    const auto end = [&](std::size_t i) {
        try {
            ended[i] = all_[i]->deployment->stop();
        } catch (...) {
            all_[i]->error = std::current_exception();
        }
    };
    const std::size_t engines = std::min(parts_.size(), all_.size());
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

}  // namespace servetune
