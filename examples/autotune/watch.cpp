// SPDX-License-Identifier: Apache-2.0
// `autotune watch`: whether a server in production still has the traffic and speed of its study.
#include "commands.hpp"
#include "live_page.hpp"
#include "live_server.hpp"
#include "output.hpp"
#include "stop_signals.hpp"
#include "study_journal.hpp"
#include "watch_state.hpp"

#include "base/url.hpp"
#include "load/http.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/detail/study/clocks.hpp"
#include "servetune/error.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr double longest_reading_seconds = 10;

/// `http://host:8000/metrics` and `http://host:8000` are the same server.
Endpoint endpoint_to_watch(const WatchArguments& arguments, const std::string& path) {
    Endpoint endpoint;
    add_user_info(secrets(), arguments.url);
    std::string url = arguments.url;
    if (url.ends_with(path)) url.resize(url.size() - path.size());
    endpoint.url = server_url(url);
    endpoint.metrics_path = path;
    if (!arguments.api_key_environment.empty())
        endpoint.api_key = api_key_in(arguments.api_key_environment);
    return endpoint;
}

/// A line of JSON, whole or not at all.
void put_event(const char* name, OrderedJson event) {
    OrderedJson line{{"event", name}, {"at", unix_seconds()}};
    line.update(event);
    redact(line, secrets());
    put_controls(
        stdout, printable(line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)) + "\n");
    (void)std::fflush(stdout);
}

std::string time_of_day() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    return fmt::format("{:%H:%M:%S}", local);
}

/// Serves the last text at /metrics, on a thread of its own.
class WatchPage {
public:
    explicit WatchPage(const LiveOptions& options)
        : server_({options.address, options.token}, [this](const std::string& path,
                                                           const LiveServer::Reply& reply) {
              const std::scoped_lock lock(mutex_);
              const bool found = path == "/metrics";
              reply(
                  {found ? 200 : 404,
                   found ? "text/plain; version=0.0.4; charset=utf-8" : "text/plain; charset=utf-8",
                   std::make_shared<const std::string>(found ? text_ : "there is /metrics\n")});
          }) {
        server_.start({});
    }
    void set(std::string text) {
        const std::scoped_lock lock(mutex_);
        text_ = std::move(text);
    }
    [[nodiscard]] std::string url() const { return server_.url(); }

private:
    std::mutex mutex_{};
    std::string text_{};
    LiveServer server_;  // last: ends before what it uses
};

class Watch {
public:
    Watch(const WatchArguments& arguments, const WatchedStudy& study, std::string name,
          std::stop_token stop)
        : arguments_(arguments),
          study_(study),
          name_(std::move(name)),
          stop_(std::move(stop)),
          endpoint_(endpoint_to_watch(arguments, study.engine->counters.at("url"))),
          judge_(study.expected) {
        if (arguments.metrics)
            page_ =
                std::make_unique<WatchPage>(live_options(*arguments.metrics, arguments.token_file));
        if (page_) complain("autotune: metrics at {}metrics\n", page_->url());
        judge();
    }

    /// False: the first page cannot be read, or has none of the engine's names.
    bool begin() {
        const auto first = read();
        if (!first) return false;
        if (first->empty()) {
            complain(
                "autotune: the page has none of the metrics of {}: is this its server, and does it "
                "publish them?\n",
                study_.engine->name);
            return false;
        }
        before_ = *first;
        return true;
    }

    void run() {
        const double began = steady_seconds();
        const auto count = static_cast<std::size_t>(
            arguments_.once ? 1
                            : std::max(1.0, std::round(arguments_.for_seconds.value_or(
                                                           20 * arguments_.interval_seconds) /
                                                       arguments_.interval_seconds)));
        for (std::size_t i = 1;
             i <= count && wait_until(began + static_cast<double>(i) * arguments_.interval_seconds);
             ++i)
            step();
    }

    [[nodiscard]] const WatchState& state() const { return state_; }
    [[nodiscard]] ServerWindow recent() const {
        return judge_.batches() > 0 ? judge_.recent() : state_.whole;
    }

private:
    /// False: stopped.
    bool wait_until(double steady) {
        std::unique_lock lock(mutex_);
        const double left = steady - steady_seconds();
        if (left > 0)
            never_.wait_for(lock, stop_, std::chrono::duration<double>(left), [] { return false; });
        return !stop_.stop_requested();
    }

    std::optional<ServerReading> read() {
        const double timeout =
            std::min(longest_reading_seconds, std::max(1.0, arguments_.interval_seconds));
        const Reply reply = get(endpoint_, endpoint_.metrics_path, timeout,
                                [this] { return stop_.stop_requested(); });
        if (stop_.stop_requested()) return std::nullopt;
        if (!reply.error.empty() || reply.status != 200) {
            ++state_.failed;
            const std::string why = endpoint_.metrics_path + trouble_text(reply);
            if (arguments_.json_lines) put_event("failed", {{"error", why}});
            else if (why != trouble_) complain("autotune: {}\n", why);
            trouble_ = why;
            return std::nullopt;
        }
        trouble_.clear();
        ++state_.readings;
        return ServerReading::of(reply.body, study_.engine->counters, steady_seconds());
    }

    void step() {
        const auto reading = read();
        if (!reading) return publish();
        const auto window = ServerWindow::between(std::exchange(before_, *reading), *reading);
        if (!window) {
            ++state_.restarts;
            judge_.interrupted();
            if (arguments_.json_lines) put_event("restarted", OrderedJson::object());
            else complain("autotune: the server restarted: its counters began again\n");
            return publish();
        }
        state_.last = *window;
        state_.whole += *window;
        judge_.add(*window);
        judge();
        if (arguments_.json_lines) put_event("window", window_json(state_));
        else put(stdout, "{}", window_line(state_, time_of_day()));
        (void)std::fflush(stdout);
    }

    void judge() {
        state_.traits = judge_.traffic();
        state_.speed = judge_.speed();
        publish();
    }

    void publish() {
        if (page_) page_->set(watch_metrics(state_, name_));
    }

    const WatchArguments& arguments_;
    const WatchedStudy& study_;
    std::string name_;
    std::stop_token stop_;
    Endpoint endpoint_;
    TrafficJudge judge_;
    WatchState state_{};
    ServerReading before_{};
    std::string trouble_{};
    std::mutex mutex_{};
    std::condition_variable_any never_{};
    std::unique_ptr<WatchPage> page_{};
};

int exit_code_of(WatchVerdict verdict) {
    if (verdict == WatchVerdict::as_recommended) return done;
    return verdict == WatchVerdict::undecided ? undecided : answer_is_no;
}

}  // namespace

int watch(const WatchArguments& arguments) {
    const StopSignals signals("what was seen so far is judged");
    StudyFile file = arguments.load_to_read();
    const std::filesystem::path folder = arguments.folder(file);
    StudySetup setup = set_up(std::move(file), folder);
    setup.evaluator.reset();
    const std::vector<Trial> trials = read_journal(setup, folder).trials();
    const WatchedStudy study = watched_study(setup, trials);
    Watch watch(arguments, study, setup.file.name, signals.token());
    if (!watch.begin()) return signals.token().stop_requested() ? stopped : environment_error;
    watch.run();
    const WatchState& state = watch.state();
    const bool is_stopped = signals.token().stop_requested();
    if (!(state.whole.seconds > 0)) {
        complain(
            "autotune: no two pages of the same start of the server were read: nothing can be "
            "said\n");
        return is_stopped ? stopped : environment_error;
    }
    OrderedJson verdict = verdict_json(state);
    if (!arguments.json_lines) put(stdout, "\n{}", watch_text(state, study));
    if (state.verdict() == WatchVerdict::tune_again && !is_stopped) {
        const RetuneAdvice advice =
            retune_advice(setup, trials, study, watch.recent(), signals.token());
        verdict["advice"] = advice.json;
        if (!arguments.json_lines) {
            put(stdout, "\n");
            for (const std::string& line : advice.lines) put(stdout, "{}\n", line);
            put(stdout,
                "Put the workload into a copy of the study and run it with --learn-from {}.\n",
                folder.string());
        }
    }
    if (arguments.json_lines) {
        verdict["notes"] = study.notes;
        put_event("verdict", verdict);
    }
    if (signals.token().stop_requested()) return stopped;
    return arguments.once ? done : exit_code_of(state.verdict());
}

}  // namespace autotune
