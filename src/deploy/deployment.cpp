// SPDX-License-Identifier: Apache-2.0
#include "servetune/deployment.hpp"

#include "base/nearest.hpp"
#include "base/waiting.hpp"
#include "engine_log.hpp"
#include "host/elapsed.hpp"
#include "host/process_table.hpp"
#include "host/start_program.hpp"
#include "load/http.hpp"
#include "server_probe.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <fstream>
#include <mutex>
#include <thread>
#include <utility>

namespace servetune {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

milliseconds milliseconds_of(double seconds) {
    return milliseconds(std::int64_t(std::llround(seconds * 1000)));
}

std::string text_of_exit(int code) {
    static constexpr std::array<std::pair<int, const char*>, 4> signals{
        {{SIGKILL, " (KILL)"}, {SIGSEGV, " (SEGV)"}, {SIGABRT, " (ABRT)"}, {SIGBUS, " (BUS)"}}};
    std::string text = "exit code " + std::to_string(code);
    for (const auto& [signal, name] : signals)
        if (code == 128 + signal) text += name;
    return text;
}

std::string last_line_text(const EngineLog& log) {
    const std::vector<std::string> lines = log.decisive();
    return lines.empty() ? "; it printed nothing" : "; its last line: " + lines.back();
}

/// At its start a crash is no crash under load, whatever the engine calls it.
FailureKind kind_at_start(const DecisiveLine& cause) {
    return cause.kind == FailureKind::crashed_under_load ? FailureKind::other : cause.kind;
}

/// How often the kernel's out-of-memory killer has run on this machine; 0 where it does not tell.
std::int64_t out_of_memory_kills() {
    std::ifstream stream("/proc/vmstat");
    std::string name;
    for (std::int64_t value = 0; stream >> name >> value;)
        if (name == "oom_kill") return value;
    return 0;
}

LaunchRequest request_of(const Engine& engine, const Command& command, int port,
                         const DeployOptions& options) {
    LaunchRequest result{.command = command,
                         .image = options.image,
                         .folder = options.folder,
                         .mark = options.mark,
                         .gpus = options.gpus,
                         .devices = options.devices,
                         .cores = options.cores,
                         .port = port,
                         .stop_within_seconds = options.stop_within_seconds,
                         .caches = engine.caches};
    for (const auto& [path, needs] : engine.between_runs)
        result.environment.insert(needs.begin(), needs.end());
    for (const auto* more : {&command.environment, &options.environment})
        for (const auto& [name, value] : *more) result.environment[name] = value;
    return result;
}

const Launcher& launcher_of(const DeployOptions& options) {
    return options.launcher ? *options.launcher : *local_launcher();
}

ProcessOptions process_options(const Launch& launch, const Command& command,
                               const DeployOptions& options) {
    ProcessOptions result;
    result.argv = launch.argv;
    result.environment = launch.environment;
    result.told = launch.told;
    result.beats = launch.beats;
    result.facts = launch.facts;
    result.files = command.files;
    result.folder = options.folder;
    if (!options.folder.empty()) result.log = options.folder / "engine.log";
    result.log_bytes = options.log_bytes;
    result.mark = options.mark;
    if (launcher_of(options).on_this_machine()) result.cores = options.cores;
    result.watchdog = options.watchdog;
    return result;
}

Endpoint with_key(Endpoint endpoint, const std::string& key) {
    endpoint.api_key = key;
    return endpoint;
}

std::string url_at(const std::string& host, int port) {
    return "http://" + (!contains(host, ':') ? host : "[" + host + "]") + ":" +
           std::to_string(port);
}

/// The GPUs that the engine sees, whoever says so.
std::string gpus_of(const LaunchRequest& request) {
    if (!request.gpus.empty()) return request.gpus;
    const auto* visible = entry_in(request.environment, "CUDA_VISIBLE_DEVICES");
    return visible == nullptr ? "" : *visible;
}

/// The GPU that other programs held more than half of before the engine was started; empty: none.
/// Half: engines ask for about 0.9 of a GPU, what one serves beside takes less. Without `gpus` an
/// engine begins with the first one.
std::string held_by_others(const std::string& gpus, const std::vector<GpuMemoryUse>& before) {
    for (const GpuMemoryUse& gpu : before) {
        if (gpu.used_bytes > gpu.total_bytes / 2 && gpu.total_bytes > 0)
            return "GPU " + std::to_string(gpu.index) + " had " + mib_text(gpu.used_bytes) +
                   " of its " + mib_text(gpu.total_bytes) + " in use";
        if (gpus.empty()) break;
    }
    return "";
}

}  // namespace

struct Deployment::State {
    State(const Engine& its_engine, const Command& its_command, const std::string& model,
          const ReservedPort& its_port, DeployOptions its)
        : engine(its_engine),
          command(its_command),
          port(its_port),
          options(std::move(its)),
          endpoint(with_key(endpoint_of(engine, port.number(), model), options.api_key)),
          launch(launcher.launch(request)),
          process(process_options(launch, command, options)) {}
    ~State() {
        if (!ended) (void)stop();
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    void start(const std::stop_token& stop);
    [[nodiscard]] std::optional<Failure> wait_for_turn(const std::stop_token& stop);
    [[nodiscard]] std::optional<Failure> look(const std::stop_token& stop);
    [[nodiscard]] Failure failure(FailureKind kind, const std::string& what) const;
    std::optional<Failure> ignored_flag(const std::vector<std::string>& overridden = {});
    [[nodiscard]] Failure ended_at_start() const;
    [[nodiscard]] Failure late();
    [[nodiscard]] Failure refused(const ProbeAnswer& answer, const std::stop_token& stop);
    [[nodiscard]] std::optional<Failure> machines_fault() const;
    void pause(const std::stop_token& stop, double at_most = 1) const;
    void end_strays(milliseconds patience) const;
    Ended stop();

    const Engine engine;
    const Command command;
    const ReservedPort& port;
    const DeployOptions options;
    const Launcher& launcher = launcher_of(options);
    std::string url_inside{};
    Endpoint endpoint;  ///< its host is known once the engine has begun to start
    const LaunchRequest request = request_of(engine, command, port.number(), options);
    const std::string gpus = gpus_of(request);
    const GpuMemory gpu_memory{gpus, options.nvidia_smi};
    const std::vector<GpuMemoryUse> gpu_memory_before =
        launcher.on_this_machine() ? gpu_memory.used() : std::vector<GpuMemoryUse>{};
    Clock::time_point begin = Clock::now();  ///< of its start, after it has waited in a queue
    const std::int64_t kills_before = out_of_memory_kills();
    const Launch launch;
    Process process;
    EngineLog log{engine, process, names_set(command)};
    Clock::time_point next_read{};
    DeploymentStart started{};
    std::string last_heard = "nobody was asked yet";  ///< by who asks whether it serves
    std::optional<double> server_began{};
    std::optional<Ended> ended{};
    std::atomic<bool> stopping = false;
    mutable std::mutex asking{};  ///< for the two below
    mutable bool fault_known = false;
    mutable std::optional<Failure> fault{};  ///< what the launcher knows of the engine's end
};

/// Waits until it serves or has failed, and ends it where it has failed.
void Deployment::State::start(const std::stop_token& stop) {
    const double within = options.ready_within_seconds.value_or(engine.ready_within_seconds);
    std::optional<Failure> failed = wait_for_turn(stop);
    if (failed) {
        started.failure = std::move(failed);
        (void)this->stop();
        return;
    }
    PatientDeadline looked(begin);
    const auto forgive = [&] {
        begin += looked.gap();
    };  // stopped itself, it knows nothing of how long the engine took
    const ServerProbe probe(engine, endpoint, [&] {
        forgive();
        return !process.running() || (failed = look(stop)).has_value();
    });
    for (;;) {
        forgive();
        const double left = within - seconds_since(begin);
        failed = look(stop);
        if (failed) break;
        if (left <= 0) failed = late();
        else if (const ProbeAnswer answer = probe.ask(left, options.answers_alone);
                 answer.state == ProbeAnswer::State::serves)
            break;
        else if (answer.state == ProbeAnswer::State::failed) failed = refused(answer, stop);
        else if (answer.state == ProbeAnswer::State::not_allowed) {
            (void)this->stop();
            throw UsageError(engine.name + " was started, but " + answer.message);
        } else if (!failed) last_heard = answer.message;
        if (failed) break;
        pause(stop);
    }
    started.seconds = seconds_since(begin);
    if (!failed) failed = ignored_flag(flags_not_in_force(engine, endpoint, command.argv).sure);
    if (!failed) {
        server_began = ServerProbe(engine, endpoint, [&] {
                           return stop.stop_requested();
                       }).process_start_seconds();
        log.serving();
        return;
    }
    (void)this->stop();
    if (const std::string held = held_by_others(gpus, gpu_memory_before);
        failed->kind == FailureKind::out_of_memory && !held.empty())
        throw IoError(held + " before " + engine.name + " was started, and " + engine.name +
                      " did not get the memory that it asks for. End the programs that hold it "
                      "(nvidia-smi lists them) or choose other GPUs, "
                      "then start the study again. " +
                      failed->message);
    started.failure = std::move(failed);
}

/// Until what was launched is where it will run. A queue's time is not the engine's: its start
/// begins after it.
std::optional<Failure> Deployment::State::wait_for_turn(const std::stop_token& stop) {
    for (;;) {
        const LaunchedAt at = launcher.place(launch);
        if (at.waits.empty()) {
            endpoint.url = endpoint_of(engine, url_at(at.host, port.number()), endpoint.model).url;
            url_inside = at.inside.empty() ? endpoint.url : url_at(at.inside, port.number());
            started.queued_seconds = seconds_since(begin);
            started.place = at.place;
            if (options.waits) options.waits("starting the engine");
            begin = Clock::now();
            return std::nullopt;
        }
        if (at.waits != last_heard && options.waits) options.waits(at.waits);
        last_heard = at.waits;
        if (auto failed = look(stop)) return failed;
        constexpr double longest_pause_seconds = 10;  // a queue is asked by many, for hours
        pause(stop, longest_pause_seconds);
    }
}

/// What ends a start whatever the server answers.
std::optional<Failure> Deployment::State::look(const std::stop_token& stop) {
    if (stop.stop_requested())
        return failure(FailureKind::cancelled, "stopped while " + engine.name + " was starting");
    const bool runs = process.running();  // before its last words are read
    if (!runs || Clock::now() >= next_read) {
        log.read();
        next_read = Clock::now() + 100ms;
    }
    if (!runs) return ended_at_start();
    const auto cause = log.cause();
    if (!cause || log.since_cause().count() < options.failed_line_grace_seconds)
        return std::nullopt;
    const FailureKind kind = kind_at_start(*cause);
    return failure(kind, engine.name + " said why it fails and was still there " +
                             seconds_text(options.failed_line_grace_seconds) +
                             " later: " + cause->line);
}

/// By its log, else by what the engine tells of itself (`overridden`).
std::optional<Failure> Deployment::State::ignored_flag(const std::vector<std::string>& overridden) {
    log.read();
    const auto line = log.ignored_flag();
    if (!line && overridden.empty()) return std::nullopt;
    return failure(FailureKind::ignored_flags, engine.name +
                                                   " serves and says that a flag has no effect: " +
                                                   (line ? *line : listed(overridden)));
}

Failure Deployment::State::failure(FailureKind kind, const std::string& what) const {
    return {kind, what, options.folder.empty() ? "" : (options.folder / "engine.log").string(),
            log.decisive()};
}

/// The kinds in the order of what they are sure of: the log's words; argparse's and click's way to
/// refuse words; the kernel's word that memory was out on this machine; an exception that no engine
/// file knows; else an exit code that says nothing.
Failure Deployment::State::ended_at_start() const {
    const int code = process.exit_code().value_or(0);
    const std::string what = engine.name + " ended with " + text_of_exit(code) + " after " +
                             seconds_text(seconds_since(begin)) + ", before it served";
    if (const auto elsewhere = machines_fault())
        return failure(elsewhere->kind, what + ": " + elsewhere->message);
    const auto cause = log.cause();
    const FailureKind kind = cause ? kind_at_start(*cause) : FailureKind::other;
    if (kind != FailureKind::other) return failure(kind, what + ": " + cause->line);
    if (const auto known = launcher.ended(launch, code, process.lines()))
        return failure(known->kind, what + ": " + known->message);
    const std::string first = log.first_error();
    const std::string last = cause           ? ": " + cause->line
                             : first.empty() ? last_line_text(log)
                                             : "; its first error: " + first;
    if (code == 2 && log.shows_usage()) return failure(FailureKind::rejected_flags, what + last);
    if (code == 128 + SIGKILL && launcher.on_this_machine() && out_of_memory_kills() > kills_before)
        return failure(
            FailureKind::out_of_memory,
            what + ", and the kernel killed for want of memory meanwhile (this machine's memory" +
                (launch.name.empty() ? ")" : ", or the container's bound)") + last);
    return failure(FailureKind::other, what + last);
}

/// What was done to an engine on another machine: a job that is preempted gets TERM, and then the
/// engine prints whatever it prints when it breaks. Nothing: nothing is known, or it runs here.
std::optional<Failure> Deployment::State::machines_fault() const {
    if (launcher.on_this_machine()) return std::nullopt;
    constexpr auto until_the_client_knows = 3s;
    const bool over = process.wait(until_the_client_knows);
    // After 30 s without a beat (docs/reference/your-own-program.md) it ends the engine as it was
    // asked to, and says how the engine ended. Four beats are 20 s: theirs and ours may be late.
    constexpr int given_up_after = 4;
    if (over && launch.beats.count() > 0 &&
        process.longest_silence() > given_up_after * launch.beats)
        return Failure{
            FailureKind::infrastructure,
            "this program stood still for " +
                seconds_text(std::chrono::duration<double>(process.longest_silence()).count()) +
                ", so the launcher ended the engine"};
    const std::scoped_lock lock(asking);
    if (!fault_known || !over) {
        fault = over ? launcher.ended(launch, process.exit_code().value_or(0), process.lines())
                     : launcher.lost(launch);
        fault_known = true;
    }
    return fault && fault->kind == FailureKind::infrastructure ? fault : std::nullopt;
}

Failure Deployment::State::late() {
    log.read();
    const auto cause = log.cause();
    if (cause && kind_at_start(*cause) != FailureKind::other)
        return failure(
            cause->kind,
            engine.name +
                " said why it fails and was still there when its time was over: " + cause->line);
    if (const auto lost = launcher.lost(launch)) return failure(lost->kind, lost->message);
    return failure(
        FailureKind::not_ready_in_time,
        engine.name + " did not serve within " +
            seconds_text(options.ready_within_seconds.value_or(engine.ready_within_seconds)) +
            "; " + last_heard + (cause ? "; its log: " + cause->line : last_line_text(log)));
}

/// A server that answers wrongly may be one that is about to die: its log knows better why.
Failure Deployment::State::refused(const ProbeAnswer& answer, const std::stop_token& stop) {
    if (answer.kind != FailureKind::load_test_failed) return failure(answer.kind, answer.message);
    constexpr auto last_words = 300ms;
    (void)process.wait(last_words);
    if (const auto ended_too = look(stop)) return *ended_too;
    log.read();
    const auto cause = log.cause();
    return cause ? failure(kind_at_start(*cause), answer.message + "; its log: " + cause->line)
                 : failure(answer.kind, answer.message);
}

/// Until it is asked again: an eighth of the time that it has taken so far, from 20 ms to 1 s, in
/// its first two seconds not above 100 ms.
void Deployment::State::pause(const std::stop_token& stop, double at_most) const {
    const double so_far = seconds_since(begin);
    const auto until =
        Clock::now() + milliseconds_of(std::clamp(so_far / 8, 0.02, so_far < 2 ? 0.1 : at_most));
    while (Clock::now() < until && !stop.stop_requested())
        if (process.wait(std::min(std::chrono::ceil<milliseconds>(until - Clock::now()), 50ms)))
            return;
}

/// What left its group and its parent and cleared its environment still has the engine's words, and
/// its port among them.
void Deployment::State::end_strays(milliseconds patience) const {
    std::string words;
    for (std::size_t i = 1; i < launch.argv.size(); ++i) words += " " + launch.argv[i];
    if (!contains(words, std::to_string(port.number()))) return;
    const auto strays = [&] {
        auto all = own_processes();
        std::erase_if(all, [&](const RunningProcess& one) {
            return one.start_ticks < process.start_ticks() || !command_of(one.id).ends_with(words);
        });
        return all;
    };
    (void)end_all({strays}, patience);
}

Ended Deployment::State::stop() {
    if (ended) return *ended;
    stopping = true;
    const bool cancelled = started.failure && started.failure->kind == FailureKind::cancelled;
    constexpr double cancelled_patience_seconds = 5;  // somebody waits for it
    const auto patience = milliseconds_of(
        cancelled ? std::min(options.stop_within_seconds, cancelled_patience_seconds)
                  : options.stop_within_seconds);
    Ended result = end_launched(launcher, launch, process, patience);
    const auto since = Clock::now();
    result.report += launcher.remove(launch);
    if (launcher.on_this_machine() && !launcher.in_containers()) end_strays(patience);
    bool free = !port.listening();
    for (auto wait = 1ms; !free && Clock::now() - since < patience;
         wait = std::min(2 * wait, 100ms)) {
        std::this_thread::sleep_for(wait);
        free = !port.listening();
    }
    if (!free)
        result.report += "somebody still listens on port " + std::to_string(port.number()) + "\n";
    if (const std::string held = gpu_memory.wait_until_free(gpu_memory_before, patience);
        !held.empty())
        result.report += held + "\n";
    result.seconds += seconds_since(since);
    return *(ended = result);
}

Deployment::Deployment(const Engine& engine, const Command& command,
                       const std::string& served_model, const ReservedPort& port,
                       DeployOptions options, const std::stop_token& stop)
    : state_(std::make_unique<State>(engine, command, served_model, port, std::move(options))) {
    state_->start(stop);
}
Deployment::~Deployment() {
    if (state_) (void)state_->stop();
}

const DeploymentStart& Deployment::started() const { return state_->started; }
Endpoint Deployment::endpoint() const { return state_->endpoint; }
std::string Deployment::url_inside() const { return state_->url_inside; }
int Deployment::process_id() const { return state_->process.id(); }
std::string Deployment::log_trouble() const { return state_->process.log_trouble(); }
Ended Deployment::stop() { return state_->stop(); }

std::unique_ptr<MachineWatch> Deployment::watch(MachineWatchOptions options) const {
    if (!state_->launcher.on_this_machine()) return nullptr;
    options.gpus = state_->gpus;
    options.cores = state_->options.cores;
    options.before = state_->gpu_memory_before;
    return std::make_unique<MachineWatch>(WatchedProcesses{process_id(), state_->options.mark},
                                          std::move(options));
}

std::vector<std::string> Deployment::decisive() const {
    state_->log.read();
    return state_->log.decisive();
}

bool Deployment::same_server() const {
    const State& state = *state_;
    const auto now = running_process(state.process.id());
    if (!state.process.running() || !now || now->start_ticks != state.process.start_ticks())
        return false;
    const ServerProbe probe(state.engine, state.endpoint, [&] { return !state.process.running(); });
    return probe.why_not_listed().empty() &&
           (!state.server_began || probe.process_start_seconds() == state.server_began);
}

std::optional<Failure> Deployment::died() const {
    State& state = *state_;
    if (state.started.failure) return state.started.failure;
    if (state.stopping) return std::nullopt;
    const bool runs = state.process.running();
    state.log.read();
    const auto line = state.log.under_load();
    const auto exception = state.log.exception_under_load();
    if (runs && !line) return std::nullopt;
    if (const auto fault = state.machines_fault())
        return state.failure(fault->kind,
                             state.engine.name + " is gone under load: " + fault->message);
    const int code = state.process.exit_code().value_or(0);
    const std::string what =
        runs ? state.engine.name + " broke under load and is still there"
             : state.engine.name + " ended with " + text_of_exit(code) + " under load";
    if (!runs && !line)
        if (const auto known = state.launcher.ended(state.launch, code, state.process.lines()))
            return state.failure(
                known->kind == FailureKind::other ? FailureKind::crashed_under_load : known->kind,
                what + ": " + known->message);
    const bool machine = line && line->kind == FailureKind::infrastructure;
    return state.failure(
        machine ? FailureKind::infrastructure : FailureKind::crashed_under_load,
        what + (exception && (!line || line->kind == FailureKind::crashed_under_load)
                    ? ": " + *exception
                : line ? ": " + line->line
                       : last_line_text(state.log)));
}

std::optional<Failure> Deployment::lost() const {
    const auto found = state_->launcher.lost(state_->launch);
    return found ? std::optional(state_->failure(found->kind, found->message)) : std::nullopt;
}

std::optional<Failure> Deployment::changed() const {
    if (auto failure = died()) return failure;
    if (auto failure = state_->ignored_flag()) return failure;  // said late
    if (same_server()) return std::nullopt;
    if (auto failure = died()) return failure;  // meanwhile
    if (auto elsewhere = lost()) return elsewhere;
    if (auto failure = died()) return failure;  // while others were asked
    return state_->failure(FailureKind::crashed_under_load,
                           "another process answers than the one that was started, or none");
}

bool Deployment::reset_cache() {
    const State& state = *state_;
    constexpr double patience_seconds = 30;
    bool all = !state.engine.between_runs.empty();
    for (const auto& [path, needs] : state.engine.between_runs) {
        const Reply reply = post(state.endpoint, path, "{}", patience_seconds,
                                 [&] { return !state.process.running(); });
        all = all && reply.error.empty() && reply.status == 200;
    }
    return all;
}

std::vector<std::string> Deployment::not_in_force() const {
    std::vector<std::string> result =
        flags_not_in_force(state_->engine, state_->endpoint, state_->command.argv).perhaps;
    state_->log.read();
    for (const std::string& line : state_->log.unsupported()) result.push_back(line);
    return result;
}

std::string DeployOptions::why_invalid() const {
    OptionCheck check;
    check.seconds("ready_within_seconds", ready_within_seconds.value_or(1))
        .within("stop_within_seconds", stop_within_seconds, 0, longest_seconds)
        .within("failed_line_grace_seconds", failed_line_grace_seconds, 0, longest_seconds);
    check_cores(check, cores);
    check_environment(check, environment);
    check.that(!launcher || !launcher->in_containers() || folder.empty() || folder.is_absolute(),
               "folder", "an absolute path", "'" + folder.string() + "'");
    return check.text();
}

}  // namespace servetune
