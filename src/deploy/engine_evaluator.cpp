// SPDX-License-Identifier: Apache-2.0
#include "servetune/engine_evaluator.hpp"

#include "base/files.hpp"
#include "base/present.hpp"
#include "engine/load_level.hpp"
#include "engine/per_device.hpp"
#include "engine_log.hpp"
#include "host/elapsed.hpp"
#include "host/nvidia_smi.hpp"
#include "host/process_table.hpp"
#include "server_measurement.hpp"
#include "server_set.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"
#include "trial_folders.hpp"
#include "weight_cache.hpp"

#include <chrono>
#include <fstream>
#include <numeric>
#include <utility>

namespace servetune {
namespace {

/// What no engine can be measured without. Where this machine lacks it, that must end the run:
/// told, it would be held against the configuration.
void require_machine(std::uint64_t trial) {
    try {
        require_process_table();
        require_loopback();
    } catch (const IoError& error) {
        throw IoError("trial " + std::to_string(trial) +
                      " cannot be measured here: " + error.what());
    }
}

std::string list_of_devices(const std::vector<std::string>& names) {
    std::string result;
    for (const std::string& name : names) result += (result.empty() ? "" : ",") + name;
    return result;
}

}  // namespace

/// A configuration whose servers serve, or did not get so far.
struct EngineEvaluator::Running {
    Running(const Composition& composition, const Configuration& its_configuration,
            const std::string& model, std::vector<PlacedServer> placed, ServerSet::Options options,
            std::optional<WeightCacheCommands> its_cache, bool was_told_size,
            const std::stop_token& stop)
        : configuration(its_configuration),
          log(options.deploy.folder / "engine.log"),
          cache(std::move(its_cache)),
          told_size(was_told_size),
          servers(composition, configuration, model, std::move(placed), std::move(options), stop) {}

    const Configuration configuration;  ///< without levels of load
    const std::filesystem::path log;
    const std::optional<WeightCacheCommands> cache;  ///< that it takes its weights from
    const bool told_size;                            ///< that of its cache
    ServerSet servers;
    std::optional<Calibration> calibration{};
    Configuration last{};  ///< what was measured on it

    /// Of each server.
    [[nodiscard]] std::vector<std::string> logs() const {
        std::vector<std::string> result;
        for (std::size_t i = 0; i < servers.count(); ++i) {
            const std::string copy = i == 0 ? "" : "replica-" + std::to_string(i);
            std::ifstream stream(log.parent_path() / copy / "engine.log", std::ios::binary);
            result.push_back(rest_of(stream));
        }
        return result;
    }
};

/// What happens in one attempt of a trial.
class EngineEvaluator::OneTrial {
public:
    OneTrial(EngineEvaluator& evaluator, const Configuration& configuration,
             const EvaluationContext& context, std::size_t attempt, bool cold)
        : e_(evaluator),
          configuration_(configuration),
          context_(context),
          cold_(cold || context.again || !context.workload.empty() ||
                without_load_level(configuration) == without_load_level(e_.default_) ||
                (e_.quality_ && e_.quality_->touches(configuration))),
          measurement_(e_.options_.measure, e_.workloads_, configuration, context, attempt) {}

    Outcome run() {
        double start_seconds = 0;
        double stop_seconds = 0;
        if (e_.quality_ && context_.workload.empty() && e_.quality_->lacks_default(configuration_))
            stop_seconds += ask_default();
        if (!usable()) {
            stop_seconds += stop();
            start(configuration_, e_.options_.folder / "trials" / std::to_string(context_.trial));
            start_seconds = e_.running_->servers.started().seconds;
        }
        Running& running = *e_.running_;
        from_cache_ = running.cache.has_value();  // it may have been started by an earlier trial
        told_size_ = running.told_size;
        running.last = configuration_;
        std::optional<Failure> no_start = running.servers.started().failure;
        if (!no_start && took_no_weights())
            no_start = Failure{FailureKind::ignored_flags,
                               "the engine served without saying that it took them"};
        Metrics quality;
        Outcome outcome = no_start ? Outcome(*no_start) : measured(running, quality);
        if (auto* failure = std::get_if<Failure>(&outcome)) {
            if (failure->log_path.empty())
                failure->log_path =
                    (running.log.parent_path() / running.servers.log_folder() / "engine.log")
                        .string();
            if (failure->log_lines.empty()) failure->log_lines = running.servers.decisive();
        }
        std::visit([&](auto& one) { one.place = running.servers.started().place; }, outcome);
        const double ready_seconds = running.servers.started().seconds;
        // Asked before it is ended. The composition counts the devices of several groups together.
        const auto copies = e_.composition_.needs_router(running.configuration)
                                ? std::int64_t{1}
                                : std::int64_t(running.servers.count());
        const bool serves_on = e_.has_load_levels_ && std::holds_alternative<Measurement>(outcome);
        if (!serves_on) stop_seconds += stop();
        if (auto* measurement = std::get_if<Measurement>(&outcome)) {
            measurement->metrics.insert(measurement_.costs().begin(), measurement_.costs().end());
            measurement->metrics.insert(quality.begin(), quality.end());
            if (e_.options_.fill_devices) measurement->metrics["replicas"] = {double(copies)};
            add_per_device(measurement->metrics,
                           copies * e_.composition_.devices_of(configuration_),
                           e_.options_.usd_per_device_hour);
            measurement->metrics[std::string(ready_seconds_metric)] = {ready_seconds};
            if (told_size_) measurement->metrics[std::string(cache_size_metric)] = {1};
            measurement->metrics["trial_start_seconds"] = {start_seconds};
            measurement->metrics["trial_stop_seconds"] = {stop_seconds};
            if (e_.weight_cache_) {
                measurement->metrics[std::string(weight_cache_metric)] = {from_cache_ ? 1.0 : 0.0};
                measurement->metrics["trial_weight_cache_seconds"] = {cache_seconds_};
            }
        }
        return outcome;
    }
    [[nodiscard]] bool from_cache() const { return from_cache_; }
    [[nodiscard]] bool told_size() const { return told_size_; }
    void say(const std::string& line) const { measurement_.say(line); }

private:
    /// What its answers are worth comes before how fast they are.
    [[nodiscard]] Outcome measured(Running& running, Metrics& quality) {
        const bool stress = context_.workload == stress_workload;
        auto& gate = stress ? e_.answers_ : e_.quality_;
        if (gate && (stress || context_.workload.empty())) {
            measurement_.phase("comparing answers");
            auto found = gate->of(running.servers, configuration_, context_.stop);
            if (auto* failure = std::get_if<Failure>(&found)) return std::move(*failure);
            quality = std::get<Metrics>(std::move(found));
            for (const auto& [name, metric] : quality)
                measurement_.say(name + " " + short_number_text(metric.value));
        }
        return measurement_.of(running.servers, running.servers.model(),
                               double(e_.composition_.devices_of(configuration_)),
                               running.calibration);
    }

    /// Whether the engine that runs is what this configuration needs. A replicate is a new start:
    /// starts differ.
    [[nodiscard]] bool usable() const {
        return e_.running_ && e_.running_->configuration == without_load_level(configuration_) &&
               e_.running_->last != configuration_ &&
               !(cold_ && (e_.running_->cache || e_.running_->told_size)) &&
               !e_.running_->servers.changed();
    }
    /// Whether its weights were to come from the cache, and it serves with its own: two copies
    /// leave less memory.
    [[nodiscard]] bool took_no_weights() const {
        const Running& running = *e_.running_;
        return running.cache && any_of(running.logs(), [&](const std::string& log) {
                   return !contains(log, running.cache->used);
               });
    }

    /// The quality gate compares with the default, and has no answers of it: its trial failed, or
    /// was before the gate was there. Where it does not serve now either, the gate says so. Answers
    /// the seconds that its stop took.
    double ask_default() {
        double seconds = stop();
        measurement_.say("the default is started first: the quality gate has no answers of it");
        start(e_.default_,
              e_.options_.folder / "trials" / std::to_string(context_.trial) / "default");
        Running& running = *e_.running_;
        if (!running.servers.started().failure)
            (void)e_.quality_->of(running.servers, e_.default_, context_.stop);
        return seconds + stop();
    }

    void start(const Configuration& configuration, std::filesystem::path folder) {
        measurement_.phase("starting the engine");
        DeployOptions options = e_.options_.deploy;
        options.folder = std::move(folder);
        std::vector<PlacedServer> placed = e_.servers_for(configuration);
        options.waits = [this](const std::string& why) { measurement_.phase(why); };
        if (options.launcher) {
            options.folder = std::filesystem::absolute(options.folder);
            const Value* image = configuration.find(image_parameter);
            const std::vector<std::string> images = options.launcher->images();
            if (!images.empty())
                options.image = image != nullptr ? text_of(*image) : images.front();
        }
        e_.options_.trial_folders->begin(options.folder, e_.options_.all_logs_bytes,
                                         e_.options_.deploy.log_bytes);
        try {
            auto cache = weights_for(configuration, placed);
            from_cache_ = cache.has_value();
            const std::string host =
                options.launcher ? options.launcher->listen_address() : "127.0.0.1";
            auto adds = cache ? cache->engine_adds : std::vector<std::string>();
            const auto size = size_key(configuration, placed);
            const bool told = size && tell_size(*size, configuration, adds);
            e_.running_ = std::make_unique<Running>(
                e_.composition_, without_load_level(configuration), e_.model_, std::move(placed),
                ServerSet::Options{options, host, host, 0, std::move(adds)}, cache, told,
                context_.stop);
            if (size && !told) learn_size(*size);
        } catch (...) {
            e_.options_.trial_folders->end(options.folder);
            throw;
        }
        const double queued = e_.running_->servers.started().queued_seconds;
        measurement_.waited(queued);
        if (queued >= 1) measurement_.say("waited " + seconds_text(queued) + " in the queue");
        if (!e_.running_->servers.started().failure)
            measurement_.say(serves_text(configuration) + " after " +
                             seconds_text(e_.running_->servers.started().seconds));
    }

    /// What decides how large a cache an engine finds room for; nothing: it is never told.
    [[nodiscard]] std::optional<std::string> size_key(
        const Configuration& configuration, const std::vector<PlacedServer>& placed) const {
        if (!e_.tells_cache_size_) return std::nullopt;
        auto key = e_.composition_.cache_size_key(without_load_level(configuration));
        if (!key) return key;
        if (from_cache_) *key += "; cached weights";
        for (const PlacedServer& server : placed) *key += "; " + server.gpus;
        return key;
    }
    /// Whether this start is told a size. Before a cold one it is forgotten.
    bool tell_size(const std::string& key, const Configuration& configuration,
                   std::vector<std::string>& adds) {
        if (cold_) e_.cache_bytes_.erase(key);
        const auto found = e_.cache_bytes_.find(key);
        if (found == e_.cache_bytes_.end()) return false;
        const std::string& flag = present(e_.composition_.engine_of(configuration).cache_size).flag;
        adds.insert(adds.end(), {flag, std::to_string(found->second)});
        measurement_.say("is told the size of its cache, which an earlier start has found: " +
                         flag + ' ' + adds.back());
        return true;
    }
    void learn_size(const std::string& key) {
        const Running& running = *e_.running_;
        if (running.servers.started().failure) return;
        const auto& size = e_.composition_.engine_of(running.configuration).cache_size;
        std::optional<std::int64_t> least;
        for (const std::string& log : running.logs()) {
            const auto bytes = cache_bytes_in(log, present(size));
            if (!bytes) return;
            least = std::min(least.value_or(*bytes), *bytes);
        }
        e_.cache_bytes_[key] = present(least);
    }

    [[nodiscard]] std::string serves_text(const Configuration& configuration) const {
        const std::size_t copies = e_.running_->servers.count();
        if (!e_.composition_.needs_router(configuration))
            return copies > 1 ? std::to_string(copies) + " replicas serve" : "serves";
        std::string text;
        for (const ServerGroup& group : e_.composition_.groups(configuration))
            text += std::to_string(group.count) + " " + group.role + ", ";
        return text + "and the router serve";
    }

    /// Nothing: it loads them itself, with the devices to itself. So do servers behind a router.
    std::optional<WeightCacheCommands> weights_for(const Configuration& configuration,
                                                   const std::vector<PlacedServer>& placed) {
        if (!e_.weight_cache_ || !placed.front().role.empty()) {
            if (e_.weight_cache_) e_.weight_cache_->release();
            return std::nullopt;
        }
        std::vector<std::string> gpus;
        for (const PlacedServer& server : placed) gpus.push_back(server.gpus);
        const auto begin = std::chrono::steady_clock::now();
        std::optional<WeightCacheCommands> result;
        if (cold_) e_.weight_cache_->release();
        else {
            measurement_.phase("loading the weights into the cache");
            result = e_.weight_cache_->hold(e_.composition_, configuration, e_.model_, gpus,
                                            context_.stop);
            const std::string& why = e_.weight_cache_->why_not();
            if (!context_.stop.stop_requested() && why != std::exchange(e_.why_no_cache_, why) &&
                !why.empty())
                measurement_.say("loads its weights itself, not from the cache: " + why);
            measurement_.phase("starting the engine");
        }
        const double seconds = seconds_since(begin);
        cache_seconds_ += seconds;
        measurement_.waited(seconds);
        return result;
    }

    double stop() {
        if (!e_.running_) return 0;
        measurement_.phase("ending the engine");
        const Ended ended = e_.running_->servers.stop();
        if (!ended.report.empty()) measurement_.say(ended.report);
        if (const std::string trouble = e_.running_->servers.log_trouble(); !trouble.empty())
            measurement_.say(trouble);
        const std::filesystem::path folder = e_.running_->log.parent_path();
        e_.running_.reset();
        e_.options_.trial_folders->end(folder);
        return ended.seconds;
    }

    EngineEvaluator& e_;
    const Configuration& configuration_;
    const EvaluationContext& context_;
    const bool cold_;          ///< nothing comes from earlier starts
    bool from_cache_ = false;  ///< those of the engine that was started last did
    bool told_size_ = false;   ///< it was told that of its cache
    double cache_seconds_ = 0;
    ServerMeasurement measurement_;
};

EngineEvaluator::EngineEvaluator(const Composition& composition, std::string model,
                                 StudyWorkloads workloads, Options options)
    : composition_(composition),
      model_(std::move(model)),
      workloads_(std::move(workloads)),
      options_(std::move(options)),
      has_load_levels_(
          any_of(composition.parameters(),
                 [](const Parameter& parameter) { return is_load_level(parameter.name); })),
      tells_cache_size_(
          options_.reuse_cache_size &&
          (!options_.deploy.launcher || options_.deploy.launcher->on_this_machine())) {
    check_options("deploying", options_.why_invalid());
    check_options("deploying", workloads_.why_invalid());
    if (!options_.trial_folders) options_.trial_folders = std::make_shared<TrialFolders>();
    if (options_.quality) quality_.emplace(*options_.quality);
    if (options_.answers) answers_.emplace(*options_.answers);
    if (options_.quality || options_.weight_cache || tells_cache_size_)
        default_ = SearchSpace(composition.parameters(), composition.constraints())
                       .default_configuration();
    const DeployOptions& deploy = options_.deploy;
    if (options_.weight_cache)
        weight_cache_ = std::make_unique<WeightCache>(
            WeightCache::Options{std::filesystem::absolute(options_.folder / "weight-cache"),
                                 deploy.environment, deploy.mark, deploy.cores, deploy.watchdog,
                                 deploy.stop_within_seconds, deploy.log_bytes, deploy.nvidia_smi});
}

EngineEvaluator::~EngineEvaluator() = default;

/// Why what was measured after a warm start is not believed; empty: it is.
std::string EngineEvaluator::doubt_of(const Outcome& outcome) const {
    const auto* failure = std::get_if<Failure>(&outcome);
    if (failure == nullptr)
        return !weight_cache_ || weight_cache_->alive()
                   ? ""
                   : "a daemon of the weight cache died meanwhile";
    return teaches(failure->kind) ? failure->message : "";
}

Outcome EngineEvaluator::evaluated(const Configuration& configuration,
                                   const EvaluationContext& context, std::size_t attempt) {
    OneTrial trial(*this, configuration, context, attempt, false);
    Outcome first = trial.run();
    const std::string doubt = trial.from_cache() || trial.told_size() ? doubt_of(first) : "";
    if (doubt.empty()) return first;
    trial.say("measured after a warm start: " + doubt + "; once more from a cold start");
    const std::filesystem::path log =
        options_.folder / "trials" / std::to_string(context.trial) / "engine.log";
    std::error_code gone;
    std::filesystem::rename(log, log.parent_path() / "engine-warm-start.log", gone);
    OneTrial cold(*this, configuration, context, attempt, true);
    Outcome outcome = cold.run();
    if (std::holds_alternative<Failure>(first) && !std::holds_alternative<Failure>(outcome)) {
        if (trial.told_size()) tells_cache_size_ = false;
        if (trial.from_cache())
            weight_cache_->give_up("an engine failed with them and not without: " + doubt);
        cold.say("it serves without: later starts of this study do without, too");
    }
    return outcome;
}

Outcome EngineEvaluator::evaluate(const Configuration& configuration,
                                  const EvaluationContext& context) {
    require_machine(context.trial);
    Outcome outcome = with_retries(options_.measure, context, [&](std::size_t attempt) {
        try {
            return evaluated(configuration, context, attempt);
        } catch (...) {
            if (running_) options_.trial_folders->end(running_->log.parent_path());
            running_.reset();  // whatever it was, no engine is left behind
            throw;
        }
    });
    const auto* failure = std::get_if<Failure>(&outcome);
    if (failure != nullptr && failure->kind != FailureKind::cancelled)
        require_machine(context.trial);  // it may have failed for want of that
    return outcome;
}

/// Looks once what there is. The devices that the study names, as in CUDA_VISIBLE_DEVICES; empty:
/// none are named.
std::string EngineEvaluator::devices_allowed() {
    if (options_.deploy.launcher && !options_.deploy.launcher->on_this_machine())
        found_ = FoundDevices{};  // what is found here is not there
    if (!found_) found_ = find_devices(options_.deploy.nvidia_smi);
    const auto named = options_.deploy.environment.find("CUDA_VISIBLE_DEVICES");
    return options_.deploy.gpus.empty() && named != options_.deploy.environment.end()
               ? named->second
               : options_.deploy.gpus;
}

/// Of each server exactly as many devices as its layout takes, so that it never touches one that it
/// was not given; with `fill_devices` as many servers as there is room for. All devices, once,
/// where flags do not decide how many (llama.cpp). No names where nobody knows any.
std::vector<std::vector<std::string>> EngineEvaluator::shares_for(
    const std::vector<ServerGroup>& groups, bool by_flags) {
    std::vector<std::int64_t> counts;
    for (const ServerGroup& group : groups)
        counts.insert(counts.end(), std::size_t(group.count), group.devices);
    const std::int64_t each = std::max<std::int64_t>(counts.front(), 1);
    const Launcher* launcher = options_.deploy.launcher.get();
    const bool fills = options_.fill_devices && groups.size() == 1 && by_flags;
    if (launcher != nullptr && launcher->gives_out_devices())
        return std::vector<std::vector<std::string>>(
            fills ? std::size_t(
                        std::max<std::int64_t>(options_.most_devices.value_or(each) / each, 1))
                  : counts.size());
    const std::string allowed = devices_allowed();
    if (launcher != nullptr && !launcher->on_this_machine() && allowed.empty() &&
        (options_.fill_devices || groups.size() > 1))
        throw UsageError(
            "several servers need to know the devices of the other machine: list them under "
            "`gpus`");
    if (!by_flags && groups.size() == 1) {
        std::vector<std::string> all;
        if (!allowed.empty()) all.push_back(allowed);
        else if (launcher != nullptr && launcher->in_containers())  // it has none but those named
            for (const Device& device : found_->visible)
                all.push_back(std::to_string(device.index));
        return {all};
    }
    std::vector<std::string> names;
    for (const auto& one : groups_of_devices(allowed, *found_, 1)) names.push_back(one.front());
    if (names.empty() && options_.fill_devices)
        throw IoError(
            "`replicas: fill` needs to know the devices of this machine: nvidia-smi finds none, "
            "and `gpus` lists none");
    if (names.empty()) return std::vector<std::vector<std::string>>(counts.size());
    if (groups.size() == 1) {
        auto result = groups_of_devices(allowed, *found_, each);
        const std::int64_t most =
            fills ? std::max<std::int64_t>(
                        options_.most_devices.value_or(std::int64_t(names.size())) / each, 1)
                  : groups.front().count;
        result.resize(std::min(result.size(), std::size_t(most)));
        return result;
    }
    const std::int64_t wanted = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    if (std::int64_t(names.size()) < wanted)
        throw IoError("the configuration takes " + std::to_string(wanted) +
                      " devices, and there are " + std::to_string(names.size()));
    return shares_of_devices(names, counts);
}

std::vector<PlacedServer> EngineEvaluator::servers_for(const Configuration& configuration) {
    const std::vector<ServerGroup> groups = composition_.groups(configuration);
    const bool by_flags = !composition_.engine_of(configuration).devices.empty();
    const auto shares = shares_for(groups, by_flags);
    std::vector<PlacedServer> result;
    const auto place = [&](std::string name, const ServerGroup& group) {
        result.push_back({.name = std::move(name),
                          .role = group.role,
                          .gpus = list_of_devices(shares[result.size()]),
                          .devices = group.devices});
    };
    if (groups.size() > 1)
        for (const ServerGroup& group : groups)
            for (std::int64_t i = 0; i < group.count; ++i)
                place(group.role + "-" + std::to_string(i), group);
    else
        for (std::size_t i = 0; i < shares.size(); ++i)
            place(i == 0 ? "" : "replica-" + std::to_string(i), groups.front());
    // Where flags do not decide it, the engine is to have all that the study knows of.
    if (!by_flags && groups.size() == 1)
        for (PlacedServer& server : result) server.devices = options_.most_devices.value_or(0);
    return result;
}

std::string EngineEvaluator::Options::why_invalid() const {
    OptionCheck check;
    check.part("deploy", deploy.why_invalid()).part("measure", measure.why_invalid());
    if (quality) check.part("quality", quality->why_invalid());
    check.that(!weight_cache || !deploy.launcher ||
                   (deploy.launcher->on_this_machine() && !deploy.launcher->in_containers()),
               "weight_cache", "an engine that is a process of this machine", "a launcher");
    return check.text();
}

std::string StudyWorkloads::why_invalid() const {
    OptionCheck check;
    std::set<std::string> names;
    for (const auto* list : {&searched, &reported})
        for (const Workload& workload : *list) {
            check.that(workload.weight > 0 && workload.weight <= most_weight,
                       "weight of '" + workload.name + "'", "a number in (0, 1e6]",
                       std::to_string(workload.weight));
            check.that(!workload.name.empty() && workload.name != stress_workload &&
                           names.insert(workload.name).second,
                       "workloads", "names, each once", "'" + workload.name + "'");
        }
    return check.text();
}

}  // namespace servetune
