// SPDX-License-Identifier: Apache-2.0
#include "live_page.hpp"

#include "output.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "study/clocks.hpp"
#include "servetune/standings.hpp"
#include "servetune/error.hpp"
#include "servetune/recommendation.hpp"
#include "servetune/report.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/verdict.hpp"
#include "trial/metric_text.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

/// When the journal's files were last written: cheap to look at, and different after every event.
using JournalStamp = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

JournalStamp stamp_of(const std::filesystem::path& folder) {
    const std::string file = SqliteJournal::file_of(folder).string();
    struct stat of_file {};
    struct stat of_log {};
    constexpr std::int64_t a_second = 1'000'000'000;
    const auto time = [](const struct stat& one) {
        return one.st_mtim.tv_sec * a_second + one.st_mtim.tv_nsec;
    };
    if (stat(file.c_str(), &of_file) != 0) of_file = {};
    if (stat((file + "-wal").c_str(), &of_log) != 0) of_log = {};
    return {time(of_file), of_file.st_size, time(of_log), of_log.st_size};
}

double seconds_in(const std::vector<Trial>& trials) {
    double sum = 0;
    for (const Trial& trial : trials) sum += trial.cost_seconds();
    return sum;
}

std::size_t told_in(const std::vector<Trial>& trials) {
    return static_cast<std::size_t>(
        std::count_if(trials.begin(), trials.end(), [](const Trial& one) { return one.told(); }));
}

std::size_t failed_in(const std::vector<Trial>& trials) {
    return static_cast<std::size_t>(std::count_if(
        trials.begin(), trials.end(), [](const Trial& one) { return one.failure() != nullptr; }));
}

std::string tried_text(const Trial& trial, const StudySetup& setup) {
    const std::string changes =
        difference_text(trial.configuration, setup.problem->space.default_configuration());
    return (trial.workload.empty() ? "" : trial.workload + ": ") +
           (changes.empty() ? "the default" : changes);
}

/// The best that passes so far, and what it gains over the default where that passes too.
struct BestSoFar {
    std::string metric{};
    double value = 0;
    std::optional<double> of_default{};
    std::optional<Gain> gain{};
    bool is_ratio = false;
};

std::optional<BestSoFar> best_in(const StudySetup& setup, const std::vector<Trial>& trials) {
    const Problem& problem = *setup.problem;
    const std::vector<Trial> search = search_history(problem, trials);
    const Standings standings = standings_of(problem, search);
    const Standing* best = standings.best();
    if (best == nullptr) return std::nullopt;
    BestSoFar result{problem.objective.leading().metric,
                     best->estimate().mean,
                     {},
                     {},
                     standings.scale().ratios()};
    const Standing* base = standings.find(problem.space.default_configuration());
    if (base == nullptr || !base->passes()) return result;
    result.of_default = base->estimate().mean;
    if (base != best) result.gain = judged_gain(problem, standings, *best, *base);
    return result;
}

std::string best_text(const std::optional<BestSoFar>& best) {
    if (!best) return "";
    const std::string text = "best " + figure_text(best->metric, best->value);
    if (!best->gain) return text;
    const Gain& gain = *best->gain;
    return fmt::format("{}, {} over the default ({})", text, gain_text(gain.value, gain.scale),
                       gain.has_interval()
                           ? fmt::format("95 % interval {} to {}", gain_text(gain.low, gain.scale),
                                         gain_text(gain.high, gain.scale))
                           : "not confirmed yet");
}

/// Metrics of ours as Prometheus reads them.
class PrometheusText {
public:
    explicit PrometheusText(const std::string& study) : study_("study=\"" + label(study) + "\"") {}

    void gauge(const char* name, const char* help, double value, const std::string& labels = "") {
        if (name != last_)
            text_ +=
                fmt::format("# HELP servetune_{0} {1}\n# TYPE servetune_{0} gauge\n", name, help);
        last_ = name;
        text_ += fmt::format("servetune_{}{{{}{}}} {:.10g}\n", name, study_,
                             labels.empty() ? "" : "," + labels, value);
    }
    [[nodiscard]] std::string text() && { return std::move(text_); }

    /// The value of a label: without secrets and control characters, escaped.
    static std::string label(const std::string& value) {
        std::string result;
        for (const char c : printable_line(secrets()(value))) {
            if (c == '"' || c == '\\') result += '\\';
            result += c;
        }
        return result;
    }

private:
    std::string study_, text_{};
    std::string_view last_{};
};

std::string prometheus_text(const StudySetup& setup, const std::vector<Trial>& trials, bool running,
                            std::optional<double> seconds_left) {
    PrometheusText out(setup.file.name);
    const std::size_t told = told_in(trials), failed = failed_in(trials);
    const auto started =
        static_cast<std::size_t>(std::count_if(trials.begin(), trials.end(), [](const Trial& one) {
            return !one.told() && one.started_at;
        }));
    for (const auto& [state, count] : {std::pair{"measured", told - failed},
                                       {"failed", failed},
                                       {"running", started},
                                       {"waiting", trials.size() - told - started}})
        out.gauge("trials", "Trials of the study by their state.", static_cast<double>(count),
                  fmt::format("state=\"{}\"", state));
    std::map<std::string_view, std::size_t> failures;
    for (const Trial& trial : trials)
        if (const Failure* failure = trial.failure())
            ++failures[name_in(failure_kinds, failure->kind)];
    for (const auto& [kind, count] : failures)
        out.gauge("failures", "Failed trials by kind.", static_cast<double>(count),
                  fmt::format("kind=\"{}\"", kind));
    out.gauge("running", "1 while a process measures the study.", running ? 1 : 0);
    out.gauge("measuring_seconds", "What the told trials took.", seconds_in(trials));
    if (seconds_left)
        out.gauge("left_seconds", "At most so long until the study ends.", *seconds_left);
    const std::optional<BestSoFar> best = best_in(setup, trials);
    if (!best) return std::move(out).text();
    const std::string metric = "metric=\"" + PrometheusText::label(best->metric) + "\"";
    out.gauge("best", "The goal's metric, of the best that keeps all limits.", best->value, metric);
    if (best->of_default)
        out.gauge("default", "The same of the default.", *best->of_default, metric);
    if (!best->gain || !best->is_ratio) return std::move(out).text();
    const auto gain = [&](const char* bound, double value) {
        out.gauge("gain_ratio",
                  "Gain of the best over the default: 0.1 is 10 %, with its 95 % interval.", value,
                  fmt::format("bound=\"{}\"", bound));
    };
    gain("value", best->gain->value);
    if (!best->gain->has_interval()) return std::move(out).text();
    gain("low", best->gain->low);
    gain("high", best->gain->high);
    return std::move(out).text();
}

}  // namespace

LiveOptions live_options(const std::string& address,
                         const std::optional<std::filesystem::path>& token_file) {
    LiveOptions result;
    if (!address.empty()) result.address = LiveAddress::parse(address);
    std::string from = "SERVETUNE_TOKEN";
    if (token_file) {
        from = token_file->string();
        result.token = read_file(*token_file);
        while (!result.token.empty() &&
               (result.token.back() == '\n' || result.token.back() == '\r'))
            result.token.pop_back();
        if (result.token.empty())
            throw UsageError(from + " is empty: it is to hold the page's token");
        struct stat seen {};
        if (stat(token_file->c_str(), &seen) == 0 && (seen.st_mode & (S_IRGRP | S_IROTH)) != 0)
            complain("warning: others on this machine can read the token in {}: chmod 600", from);
    } else if (const char* known = std::getenv("SERVETUNE_TOKEN")) result.token = known;
    secrets().add(result.token, "TOKEN");
    if (!result.token.empty())
        if (const std::string wrong = wrong_with_token(result.token); !wrong.empty())
            throw UsageError(from + ": " + wrong);
    if (result.token.empty() && !result.address.loopback())
        throw UsageError("others reach " + result.address.host +
                         ": a page there wants a token of 16 characters or more, in "
                         "SERVETUNE_TOKEN or in the file of --token-file");
    return result;
}

/// Reads, renders and tells, one thing after the other.
class LivePage::Worker {
public:
    Worker(StudySetup setup, std::filesystem::path folder, const Budget& budget,
           std::function<bool()> running)
        : setup_(std::move(setup)),
          folder_(std::move(folder)),
          budget_(budget),
          running_(std::move(running)),
          began_(steady_seconds()),
          boot_(fmt::format("{:.3f}", unix_seconds())) {}

    void start(LiveServer& server) {
        server_ = &server;
        thread_ = std::jthread([this](const std::stop_token& over) { work(over); });
    }
    void stop() { thread_ = {}; }

    void ask(const std::string& path, LiveServer::Reply reply) {
        const std::scoped_lock lock(mutex_);
        asked_.emplace_back(path, std::move(reply));
        news_.notify_one();
    }
    void look() {
        const std::scoped_lock lock(mutex_);
        look_ = true;
        news_.notify_one();
    }
    void phase(const std::string& what) {
        const std::scoped_lock lock(mutex_);
        phase_ = what;
        phase_at_ = unix_seconds();
    }
    /// The last event, told at once.
    void ended(const std::string& how) {
        Lock lock(mutex_);
        ended_ = printable_line(secrets()(how));
        look_ = true;
        news_.notify_one();
        told_end_.wait_for(lock, std::chrono::seconds(1), [this] { return end_is_told_; });
        // Whoever looks is shown the last trial too: their pages ask for it once they hear of the
        // end.
        constexpr std::chrono::seconds patience{3};
        if (server_->readers() == 0) return;
        if (!told_end_.wait_for(lock, patience, [this] { return last_page_is_given_; })) return;
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the answer is on its way
    }

private:
    using Lock = std::unique_lock<std::mutex>;

    void work(const std::stop_token& over) {
        constexpr int lower = 10;
        (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()),
                          lower);  // the load generator goes first
        while (!over.stop_requested()) {
            std::deque<std::pair<std::string, LiveServer::Reply>> asked;
            bool looked = false;
            {
                Lock lock(mutex_);
                news_.wait_for(lock, over, std::chrono::seconds(1),
                               [this] { return look_ || !asked_.empty(); });
                asked.swap(asked_);
                looked = std::exchange(look_, false);
            }
            if (over.stop_requested()) return;
            try {
                if (!asked.empty() || looked || server_->readers() > 0) refresh();
                for (auto& [path, reply] : asked) reply(answer(path));
                told_end_.notify_all();
                if (looked || server_->readers() > 0) tell();
            } catch (const std::exception&
                         error) {  // a page that cannot be made is no reason to lose a study
                const std::string why = printable_line(secrets()(error.what()));
                for (auto& [path, reply] : asked)
                    reply(text(500, "text/plain; charset=utf-8",
                               "this page cannot be made: " + why + "\n"));
            }
        }
    }

    static LiveServer::Answer text(int status, const char* type, std::string body) {
        return {status, type, std::make_shared<const std::string>(std::move(body))};
    }

    void refresh() {
        const JournalStamp now = stamp_of(folder_);
        if (now == stamp_ && version_ > 0) return;
        try {
            trials_ = std::get<1>(now) == 0 ? std::vector<Trial>{}
                                            : SqliteJournal::read(folder_).trials();
        } catch (const IoError&) {
            if (version_ > 0)
                return;  // being made or moved at this moment; what was read last stays
            trials_.clear();
        }
        stamp_ = now;
        ++version_;
        best_ = best_text(best_in(setup_, trials_));
    }

    /// Another one after a restart of the server, so that a page that is open is renewed.
    [[nodiscard]] std::string version() const { return boot_ + "-" + std::to_string(version_); }

    [[nodiscard]] std::optional<double> left() const {
        if (!running_()) return std::nullopt;
        Spent spent = spent_in(setup_, budget_, trials_);
        spent.run_seconds = steady_seconds() - began_;
        const auto runs = [](const Trial& trial) { return trial.started_at && !trial.told(); };
        spent.at_once = std::max<std::size_t>(
            1, static_cast<std::size_t>(std::count_if(trials_.begin(), trials_.end(), runs)));
        const double seconds = seconds_left(budget_, spent, unix_seconds());
        return std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
    }

    LiveServer::Answer answer(const std::string& path) {
        if (path == "/metrics")
            return text(200, "text/plain; version=0.0.4; charset=utf-8",
                        prometheus_text(setup_, trials_, running_(), left()));
        if (path != "/")
            return text(404, "text/plain; charset=utf-8", "there are /, /events and /metrics\n");
        const bool running = running_();
        if (!page_ || page_of_ != std::pair(version_, running)) {
            // Fitting the models takes seconds of a core, which a running load test would miss.
            page_ = std::make_shared<const std::string>(
                live_page(setup_, trials_, "", !running, version()));
            page_of_ = {version_, running};
        }
        const Lock lock(mutex_);
        given_ = version_;
        last_page_is_given_ = end_is_told_;
        return {200, "text/html; charset=utf-8", page_};
    }

    void tell() {
        std::string phase;
        double phase_at = 0;
        std::string end;
        {
            const Lock lock(mutex_);
            phase = phase_;
            phase_at = phase_at_;
            end = ended_;
        }
        OrderedJson event{{"version", version()},
                          {"told", told_in(trials_)},
                          {"failed", failed_in(trials_)},
                          {"best", best_},
                          {"running", running_()},
                          {"trial", ""},
                          {"tried", ""},
                          {"phase", ""},
                          {"began", nullptr},
                          {"left", nullptr},
                          {"ended", end}};
        if (const auto seconds = left())
            event["left"] = std::round(*seconds / 10) * 10;  // else it is news every second
        std::vector<const Trial*> pending;
        for (const Trial& trial : trials_)
            if (!trial.told() && trial.started_at) pending.push_back(&trial);
        if (!pending.empty() && running_()) {
            const Trial& trial = *pending.back();
            event["trial"] = fmt::format("trial {}", trial.id);
            event["tried"] = tried_text(trial, setup_);
            event["began"] = *trial.started_at;
            if (phase_at >= *trial.started_at && pending.size() == 1) event["phase"] = phase;
        }
        for (auto& [name, value] : event.items())
            if (value.is_string()) value = printable_line(secrets()(value.get<std::string>()));
        if (const std::string line =
                event.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
            line != said_) {
            said_ = line;
            server_->broadcast(line);
        }
        if (end.empty()) return;
        const Lock lock(mutex_);
        end_is_told_ = true;
        last_page_is_given_ = last_page_is_given_ || given_ == version_;
        told_end_.notify_all();
    }

    StudySetup setup_;
    std::filesystem::path folder_;
    Budget budget_;
    std::function<bool()> running_;
    double began_;
    std::string boot_;
    LiveServer* server_ = nullptr;

    // Of the thread.
    JournalStamp stamp_{};
    std::vector<Trial> trials_{};
    std::size_t version_ = 0;
    std::string best_{};
    std::string said_{};
    std::shared_ptr<const std::string> page_{};
    std::pair<std::size_t, bool> page_of_{};

    std::mutex mutex_{};  ///< of what follows
    std::condition_variable_any news_{};
    std::condition_variable told_end_{};
    std::deque<std::pair<std::string, LiveServer::Reply>> asked_{};
    bool look_ = false;
    bool end_is_told_ = false;
    bool last_page_is_given_ = false;
    std::size_t given_ = 0;  ///< the version of the page that was given out last
    std::string phase_{}, ended_{};
    double phase_at_ = 0;
    std::jthread thread_{};  // last: ends before what it uses
};

LivePage::LivePage(StudySetup setup, std::filesystem::path folder, const Budget& budget,
                   const LiveOptions& options, std::function<bool()> running)
    : worker_(std::make_unique<Worker>(std::move(setup), std::move(folder), budget,
                                       std::move(running))),
      server_(
          std::make_unique<LiveServer>(LiveServer::Options{options.address, options.token},
                                       [this](const std::string& path, LiveServer::Reply reply) {
                                           worker_->ask(path, std::move(reply));
                                       })) {
    worker_->start(*server_);
    server_->start([this] { worker_->look(); });
}

LivePage::~LivePage() {
    worker_->stop();  // asks of the server that still come are kept, and go with it
    server_.reset();
}

void LivePage::phase(const std::string& what) { worker_->phase(what); }
void LivePage::ended(const std::string& how) { worker_->ended(how); }
std::string LivePage::url() const { return server_->url(); }

}  // namespace autotune
