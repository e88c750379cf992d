// SPDX-License-Identifier: Apache-2.0
#include "kubernetes_client.hpp"

#include "base/nesting.hpp"
#include "host/elapsed.hpp"
#include "host/kept_output.hpp"
#include "kubectl.hpp"
#include "pod_manifest.hpp"
#include "pod_state.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/present.hpp"
#include "servetune/error.hpp"
#include "stamped_log.hpp"
#include "stand_in.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

namespace servetune {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

/// What the API server, the node and the network need beside the grace.
constexpr auto beside_grace = 30s;
/// Where nobody waits any more: so long it is tried to delete the job.
constexpr auto deletion_patience = 600s;

/// All of it, unless nobody reads.
void print_to(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t wrote = ::write(descriptor, text.data(), text.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(wrote));
    }
}

void say_failure(const Failure& failure) {
    stand_in_speaks(std::string(name_in(failure_kinds, failure.kind)) + ": " + failure.message);
}

class KubernetesClient {
public:
    KubernetesClient(KubernetesTask task, Wanted& wanted)
        : task_(std::move(task)),
          name_(task_.name()),
          kubectl_(task_.kubectl, "", ""),
          wanted_(wanted) {}

    int run() {
        if (!create()) return finished_without_job();
        for (;;) {
            wait_for_something();
            if (!wanted_.still() && !ending_since_) begin_to_end();
            if ((ending_since_ || is_broken()) && !deleted_) delete_job();
            read_watch();
            if (!announced_) announce();
            read_log();
            keep_forwarding();
            if (const auto code = over()) return *code;
        }
    }

private:
    bool create() {
        try {
            (void)kubectl_.ask({"create", "--validate=ignore", "--filename=-"}, task_.job.dump(),
                               Kubectl::usual_patience, [&] { return !wanted_.still(); });
        } catch (const KubectlError& error) {
            // Asked again, as the first answer was lost.
            if (std::string_view(error.what()).find("(AlreadyExists)") == std::string_view::npos) {
                create_error_ = error.what();
                return false;
            }
        }
        looked_ = Clock::now();
        return true;
    }

    /// An order that was given up may have been heard.
    int finished_without_job() {
        const bool asked_to_end = !wanted_.still();
        if (!asked_to_end)
            say_failure({FailureKind::infrastructure,
                         "the job " + name_ + " cannot be made: " + create_error_});
        ending_since_ = Clock::now();
        while (asked_to_end && !deleted_ && Clock::now() - *ending_since_ < deletion_patience) {
            delete_job();
            if (!deleted_) std::this_thread::sleep_for(100ms);
        }
        return asked_to_end ? stand_in_ended : stand_in_failed;
    }

    void wait_for_something() const {
        std::array<pollfd, 8> waiting{};
        std::size_t n = 0;
        const auto add = [&](int descriptor) { waiting.at(n++) = {descriptor, POLLIN, 0}; };
        add(wanted_.input());
        add(wanted_.signals());
        for (const RunningKubectl* one : {watch_.get(), log_reader_.get(), forward_.get()}) {
            add(one == nullptr ? -1 : one->output());
            add(one == nullptr ? -1 : one->errors());
        }
        constexpr int so_often_milliseconds = 100;
        (void)poll(waiting.data(), n, so_often_milliseconds);
    }

    void begin_to_end() {
        ending_since_ = Clock::now();
        forward_.reset();
    }

    void delete_job() {
        if (Clock::now() < next_delete_) return;
        try {
            (void)kubectl_.ask({"delete", "job", name_, "--cascade=foreground",
                                "--ignore-not-found", "--wait=false"},
                               "", 0ms);
            deleted_ = Clock::now();
        } catch (const KubectlError&) {
            next_delete_ = Clock::now() + 500ms;
        }
    }

    /// Starts it, and starts it again where it has ended: an API server ends a watch after a while.
    void read_watch() {
        if (watch_) {
            watched_ += watch_->read();
            std::size_t from = 0;
            for (std::size_t end = 0; (end = watched_.find('\n', from)) != std::string::npos;
                 from = end + 1)
                take_event(watched_.substr(from, end - from));
            watched_.erase(0, from);
            constexpr auto surely_connected =
                35s;  // a connection that is not answered is given up after 30 s
            if (Clock::now() - watch_since_ > surely_connected) api_answers();
            if (watch_->over()) {
                api_fails("kubectl get --watch: " + watch_->complaint());
                watch_.reset();
                watched_.clear();
                next_watch_ = Clock::now() + (gone_ ? 1h : 200ms);
            }
        } else if (Clock::now() >= next_watch_) {
            watch_ = std::make_unique<RunningKubectl>(
                kubectl_,
                std::vector<std::string>{"get", "pods", "--selector=job-name=" + name_, "--watch",
                                         "--output-watch-events", "--output=json"});
            watch_since_ = Clock::now();
        }
        look_whether_gone();
    }

    void take_event(const std::string& line) {
        const Json event = shallow_json<Json>(line);
        if (event.is_discarded() || !event.is_object()) return;
        const std::string type = event.value("type", "");
        if (type != "ADDED" && type != "MODIFIED" && type != "DELETED") return;
        api_answers();
        take_pod(event.at("object"));
        if (type != "DELETED") return;
        if (const std::int64_t index = index_of_pod(event.at("object")); index != 0) lose(index);
        else gone_ = true;
    }

    void take_pod(const Json& pod) {
        looked_ = Clock::now();
        if (const std::int64_t index = index_of_pod(pod); index != 0) return take_other(pod, index);
        const bool ran = pod_ && pod_->phase != PodState::Phase::waits;
        pod_name_ = pod.at("metadata").at("name").get<std::string>();
        pod_ = pod_state_of(pod, task_.container);
        const bool ended = pod_->phase == PodState::Phase::ended;
        // Of waiting: the launcher stops the run.
        if (pod_->failure && (ended || !pod_->hopeless) && !other_ended_by_itself_)
            failure_ = pod_->failure;
        if (ended && !pod_->deleted) ended_by_itself_ = true;
        if (pod_->deleted && !ended_by_itself_ && !ending_since_) note_deletion(pod_name_);
        if (!ran && pod_->phase != PodState::Phase::waits)
            stand_in_speaks("the pod " + pod_name_ + " runs on " + pod_->node);
    }

    /// A pod of an engine over several nodes, but the first one.
    struct Other {
        std::string name{};
        PodState state{};
    };

    void take_other(const Json& pod, std::int64_t index) {
        Other& other = others_[index];
        const bool ran = other.state.phase != PodState::Phase::waits;
        other.name = pod.at("metadata").at("name").get<std::string>();
        other.state = pod_state_of(pod, task_.container);
        if (ending_since_ || other_ended_by_itself_ || ended_by_itself_) return;
        if (!ran && other.state.phase == PodState::Phase::runs)
            stand_in_speaks("the pod " + other.name + " runs on " + other.state.node);
        if (other.state.failure && !other.state.hopeless) failure_ = other.state.failure;
        const bool ended = other.state.phase == PodState::Phase::ended;
        if (ended && !other_over_) other_over_ = Clock::now();
        if (other.state.deleted) note_deletion(other.name);
        else if (ended) take_end(other, index);
    }

    /// Where one pod has ended by itself, the cluster deletes the others: that comes after.
    void note_deletion(const std::string& pod) {
        deletion_ = Failure{FailureKind::infrastructure,
                            "somebody has deleted the pod " + pod + " or its job"};
    }

    void lose(std::int64_t index) {
        const Other& other = others_[index];
        if (ending_since_ || ended_by_itself_ || other.state.phase == PodState::Phase::ended)
            return;
        if (!other_over_) other_over_ = Clock::now();
        if (!deletion_)
            deletion_ =
                Failure{FailureKind::infrastructure,
                        "the pod " + other.name + " is gone: somebody has deleted it, or its node"};
    }

    /// It is over before the first pod, so the engine is broken.
    void take_end(const Other& other, std::int64_t index) {
        other_ended_by_itself_ = true;
        const std::string last = last_line_of(other);
        if (other.state.failure) failure_ = other.state.failure;
        else if (!failure_)
            failure_ = Failure{FailureKind::other,
                               "the pod " + other.name + ", rank " + std::to_string(index) +
                                   " of the engine, ended with exit code " +
                                   std::to_string(other.state.exit_code.value_or(0)) +
                                   (last.empty() ? "" : "; its last line: " + last)};
    }

    /// Whether the first pod has had time for words of its own on the end of another.
    [[nodiscard]] bool is_broken() const {
        constexpr auto for_its_words = 2s;
        return other_over_ && Clock::now() - *other_over_ > for_its_words;
    }

    /// Once all pods run: that starts the engine, which is to find nobody that is still fetched.
    void announce() {
        const auto runs = [](const PodState& state) {
            return state.phase == PodState::Phase::runs;
        };
        if (task_.pods() == 1 || others_.size() + 1 < task_.pods() || !pod_ || !runs(*pod_) ||
            pod_->pod_ip.empty())
            return;
        if (!std::all_of(others_.begin(), others_.end(),
                         [&](const auto& one) { return runs(one.second.state); }))
            return;
        if (ending_since_ || Clock::now() < next_announcement_) return;
        if (!announcing_since_) announcing_since_ = Clock::now();
        try {
            (void)kubectl_.ask(
                {"annotate", "pods", "--selector=job-name=" + name_,
                 std::string(pod_leader_annotation) + "=" + pod_->pod_ip, "--overwrite"},
                "", 0ms);
            announced_ = true;
        } catch (const KubectlError& error) {
            next_announcement_ = Clock::now() + 500ms;
            announcement_trouble_ = error.what();
        }
    }

    /// Prints what its log ends with.
    std::string last_line_of(const Other& other) const {
        const auto log = kubectl_.once(
            {"logs", other.name, "--container=" + task_.container, "--tail=100"}, "", 10s);
        if (log.exit_code != 0) {
            stand_in_speaks("the log of the pod " + other.name +
                            " cannot be read: " + log.complaint);
            return "";
        }
        const std::vector<std::string> lines = lines_of(log.output);
        stand_in_speaks("the last lines of the pod " + other.name + ":");
        for (const std::string& line : lines) print_to(STDOUT_FILENO, line + "\n");
        stand_in_speaks("the log of the pod " + pod_name_ + " goes on:");
        return lines.empty() ? "" : lines.back();
    }

    void api_answers() { trouble_since_.reset(); }
    void api_fails(const std::string& why) {
        trouble_ = why;
        if (!trouble_since_) trouble_since_ = Clock::now();
    }

    /// A watch says nothing of what went while there was none, nor of a job that makes no pod.
    void look_whether_gone() {
        const bool had_pod = pod_.has_value();
        const auto pause = had_pod || ending_since_ ? milliseconds(2000) : milliseconds(30'000);
        const bool watch_is_new = watch_ && watch_since_ > looked_;
        if (gone_ || Clock::now() - std::max(looked_, watch_ ? watch_since_ : looked_) < pause)
            return;
        if (had_pod && !watch_is_new && !deleted_) return;  // the watch has told of it
        looked_ = Clock::now();
        try {
            const Json pods = kubectl_.json({"get", "pods", "--selector=job-name=" + name_}, 0ms);
            const Json items =
                pods.is_object() ? pods.value("items", Json::array()) : Json::array();
            std::set<std::int64_t> listed;
            for (const Json& pod : items) listed.insert(index_of_pod(pod));
            for (const auto& [index, other] : others_)
                if (!listed.contains(index)) lose(index);
            for (const Json& pod : items) take_pod(pod);
            if (listed.contains(0)) return api_answers();
            if (had_pod ||
                kubectl_.json({"get", "job", name_, "--ignore-not-found"}, 0ms).is_null())
                gone_ = true;
            api_answers();
        } catch (const KubectlError& error) {
            api_fails(error.what());
        }
    }

    void read_log() {
        if (log_reader_) {
            const std::string read = log_reader_->read();
            log_.take(read);
            if (!read.empty()) log_pause_ = shortest_log_pause;
            if (!log_reader_->over()) return;
            const bool failed = log_reader_->exit_code() != 0;
            log_trouble_ = failed ? log_reader_->complaint() : "";
            if (log_after_end_ && !(failed && is_temporary_complaint(log_trouble_)))
                log_complete_ = true;
            log_reader_.reset();
            next_log_ = Clock::now() + log_pause_;
            log_pause_ = std::min(2 * log_pause_, milliseconds(5000));
            return;
        }
        if (!pod_ || pod_->phase == PodState::Phase::waits || log_complete_ || gone_) return;
        const bool first_after_end = pod_->phase == PodState::Phase::ended && !log_after_end_;
        if (Clock::now() < next_log_ && !first_after_end) return;
        if (first_after_end) log_pause_ = shortest_log_pause;
        std::vector<std::string> words{"logs", pod_name_, "--container=" + task_.container,
                                       "--follow", "--timestamps"};
        if (const std::string since = log_.since(); !since.empty())
            words.push_back("--since-time=" + since);
        log_.begin();
        log_after_end_ =
            pod_->phase == PodState::Phase::ended;  // what it brings now is all, unless it fails
        log_reader_ = std::make_unique<RunningKubectl>(kubectl_, words);
    }

    /// kubectl ends its forwarding when a connection of it is refused, as before the engine
    /// listens. Where it ends otherwise, requests that were under way are lost.
    void keep_forwarding() {
        if (task_.forwarded_port == 0 || ending_since_ || forward_broke_) return;
        if (forward_) {
            if (forward_->read().find("Forwarding from") != std::string::npos)
                forward_stands_ = true;
            if (!forward_->over()) return;
            const std::string why = forward_->complaint();
            if (forward_stands_ && !forward_->complains_of("onnection refused")) {
                forward_broke_ = Clock::now();
                forward_trouble_ = why;
                return;
            }
            if (why.find("unable to listen") != std::string::npos && why != forward_trouble_)
                stand_in_speaks("kubectl port-forward: " + why);
            forward_trouble_ = why;
            forward_.reset();
            next_forward_ = Clock::now() + 200ms;
        } else if (pod_ && pod_->phase == PodState::Phase::runs && Clock::now() >= next_forward_) {
            const std::string port = std::to_string(task_.forwarded_port);
            forward_stands_ = false;
            forward_ = std::make_unique<RunningKubectl>(
                kubectl_, std::vector<std::string>{"port-forward", "pod/" + pod_name_,
                                                   port + ":" + port, "--address=127.0.0.1"});
        }
    }

    /// The exit code, where nothing more is to come.
    std::optional<int> over() {
        const auto now = Clock::now();
        const bool ended = pod_ && pod_->phase == PodState::Phase::ended;
        if ((ended || gone_) && !end_known_) end_known_ = now;
        constexpr auto last_words = 10s;
        const bool log_is_done = log_complete_ || (gone_ && !log_reader_) ||
                                 (end_known_ && now - *end_known_ > last_words);
        if (end_known_ && log_is_done) {
            log_.finish();
            if (!ending_since_) say_end();
            const int without_code = ending_since_ ? stand_in_ended : 128 + SIGKILL;
            return pod_ ? pod_->exit_code.value_or(without_code) : without_code;
        }
        if (ending_since_) {
            const milliseconds grace(static_cast<std::int64_t>(task_.grace_seconds() * 1000));
            if (deleted_ ? now - *deleted_ > grace + beside_grace
                         : now - *ending_since_ > deletion_patience) {
                stand_in_speaks("the pod of the job " + name_ + " has not ended");
                return stand_in_ended;
            }
        } else if (announcing_since_ && !announced_ &&
                   seconds_since(*announcing_since_) > task_.unanswered_within_seconds) {
            say_failure(
                {FailureKind::infrastructure,
                 "the pods cannot be told the address of the first one: " + announcement_trouble_});
            return stand_in_failed;
        } else if (other_over_ && seconds_since(*other_over_) >
                                      task_.grace_seconds() +
                                          std::chrono::duration<double>(beside_grace).count()) {
            say_end();
            return stand_in_failed;
        } else if (constexpr auto end_is_known_within = 500ms;
                   forward_broke_ && !end_known_ && now - *forward_broke_ > end_is_known_within) {
            say_failure({FailureKind::infrastructure,
                         "the connection through the API server (kubectl port-forward) broke, and "
                         "requests with it: " +
                             forward_trouble_});
            return stand_in_failed;
        } else if (trouble_since_ &&
                   seconds_since(*trouble_since_) > task_.unanswered_within_seconds) {
            say_failure({FailureKind::infrastructure,
                         "the API server has not answered for " +
                             seconds_text(task_.unanswered_within_seconds) + ": " + trouble_});
            return stand_in_failed;
        }
        return std::nullopt;
    }

    void say_end() const {
        if (!log_trouble_.empty())
            stand_in_speaks("the log may lack lines: kubectl logs: " + log_trouble_);
        if (!log_.complaint().empty())
            stand_in_speaks("the node says of the log: " + log_.complaint());
        if (failure_) say_failure(*failure_);
        else if (deletion_) say_failure(*deletion_);
        else if (gone_ && !(pod_ && pod_->phase == PodState::Phase::ended))
            say_failure(
                {FailureKind::infrastructure,
                 pod_ ? "the pod " + pod_name_ + " is gone: somebody has deleted it, or its node"
                      : "the job " + name_ + " is gone: somebody has deleted it"});
    }

    const KubernetesTask task_;
    const std::string name_;
    const Kubectl kubectl_;
    Wanted& wanted_;
    std::string create_error_{};

    std::unique_ptr<RunningKubectl> watch_{};
    std::string watched_{};  ///< of an event, the part that has come
    Clock::time_point watch_since_{}, next_watch_{}, looked_{};
    std::optional<Clock::time_point>
        trouble_since_{};  ///< since when the API server does not answer
    std::string trouble_{};

    std::string pod_name_{};
    std::optional<PodState> pod_{};
    std::optional<Failure> failure_{};   ///< the last that was seen of the pod
    std::optional<Failure> deletion_{};  ///< of one, where nothing else is known
    bool gone_ = false, ended_by_itself_ = false;
    std::optional<Clock::time_point> end_known_{};

    StampedLog log_{
        [](std::string_view line) { print_to(STDOUT_FILENO, std::string(line) + "\n"); }};
    std::unique_ptr<RunningKubectl> log_reader_{};
    static constexpr milliseconds shortest_log_pause{300};
    milliseconds log_pause_ = shortest_log_pause;
    Clock::time_point next_log_{};
    bool log_after_end_ = false, log_complete_ = false;
    std::string log_trouble_{};  ///< why the last reading failed; empty: it did not

    std::map<std::int64_t, Other> others_{};  ///< by index
    bool announced_ = false;
    std::optional<Clock::time_point> announcing_since_{};
    Clock::time_point next_announcement_{};
    std::string announcement_trouble_{};
    std::optional<Clock::time_point>
        other_over_{};  ///< since when one of them is, before the first
    bool other_ended_by_itself_ = false;

    std::unique_ptr<RunningKubectl> forward_{};
    bool forward_stands_ = false;
    std::optional<Clock::time_point> forward_broke_{};
    std::string forward_trouble_{};
    Clock::time_point next_forward_{};

    std::optional<Clock::time_point> ending_since_{}, deleted_{};
    Clock::time_point next_delete_{};
};

}  // namespace

std::string KubernetesTask::text() const {
    return Json{{"kubectl", kubectl},
                {"job", job},
                {"container", container},
                {"forwarded_port", forwarded_port},
                {"silent_within_seconds", silent_within_seconds},
                {"unanswered_within_seconds", unanswered_within_seconds}}
        .dump();
}

KubernetesTask KubernetesTask::from(const std::string& line) {
    try {
        const Json all = Json::parse(line, RefuseDeep());
        KubernetesTask result{.kubectl = all.at("kubectl"),
                              .job = all.at("job"),
                              .container = all.at("container"),
                              .forwarded_port = all.at("forwarded_port"),
                              .silent_within_seconds = all.at("silent_within_seconds"),
                              .unanswered_within_seconds = all.at("unanswered_within_seconds")};
        (void)result.name();
        return result;
    } catch (const Json::exception& error) {
        throw ParseError(std::string("the task on standard input is none: ") + error.what());
    }
}

double KubernetesTask::grace_seconds() const {
    return job.at("spec")
        .at("template")
        .at("spec")
        .at("terminationGracePeriodSeconds")
        .get<double>();
}

int kubernetes_client() {
    Wanted wanted;
    const auto line = wanted.line();
    if (!line) return stand_in_ended;
    try {
        KubernetesTask task = KubernetesTask::from(*line);
        wanted.silent_within(std::chrono::duration<double>(task.silent_within_seconds));
        return KubernetesClient(std::move(task), wanted).run();
    } catch (const std::exception& error) {
        say_failure({FailureKind::infrastructure, error.what()});
        return stand_in_failed;
    }
}

}  // namespace servetune
