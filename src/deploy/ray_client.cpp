// SPDX-License-Identifier: Apache-2.0
#include "ray_client.hpp"

#include "base/nesting.hpp"
#include "ray_jobs.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/error.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <optional>
#include <string>

namespace servetune {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using RayClock = std::chrono::steady_clock;

volatile std::sig_atomic_t ray_told_to_end = 0;
void on_ray_term(int /*signal*/) { ray_told_to_end = 1; }

void own_word(const std::string& text) { std::cerr << ray_client_says << printable_line(text) << std::endl; }

/// Standard input: its first line, then beats.
class HeardInput {
public:
    /// Reads for so long at most, less where a signal comes.
    void hear(std::chrono::milliseconds time) {
        pollfd waiting{STDIN_FILENO, POLLIN, 0};
        if (::poll(&waiting, ended_ ? 0 : 1, static_cast<int>(time.count())) != 1) return;
        std::array<char, 65536> buffer{};
        const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
        if (got <= 0) {
            ended_ = true;
            return;
        }
        last_ = RayClock::now();
        if (!line_) begun_.append(buffer.data(), static_cast<std::size_t>(got));
        if (const auto end = begun_.find('\n'); !line_ && end != std::string::npos) {
            line_ = begun_.substr(0, end);
            begun_.clear();
        }
    }
    [[nodiscard]] const std::optional<std::string>& line() const { return line_; }
    [[nodiscard]] bool silent_for(std::chrono::duration<double> time) const { return ended_ || RayClock::now() - last_ > time; }

private:
    std::string begun_{};
    std::optional<std::string> line_{};
    RayClock::time_point last_ = RayClock::now();
    bool ended_ = false;
};

/// What a job prints, each line once, though Ray tells all of it each time.
class PrintedLog {
public:
    /// `own`: what Ray writes into it by itself (RayJobs tells of no other).
    explicit PrintedLog(std::string own) : own_(std::move(own)) {}
    void show(const std::string& all, bool whole) {
        if (all.size() < seen_) seen_ = 0;  // it begins anew: another file
        std::string text = all.substr(seen_);
        if (!whole) text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
        seen_ += text.size();
        if (const auto at = text.find(own_); !own_gone_ && at != std::string::npos) {
            text.erase(at, own_.size());
            own_gone_ = true;
        }
        for (std::size_t from = 0; from < text.size();) {
            const std::size_t end = std::min(text.find('\n', from), text.size() - 1) + 1;
            const std::string_view line = std::string_view(text).substr(from, end - from);
            if (line.find("\tINFO job_manager.py:") == std::string_view::npos) std::cout << line;
            from = end;
        }
        std::cout.flush();
    }

private:
    const std::string own_;
    bool own_gone_ = false;
    std::size_t seen_ = 0;
};

class RayClient {
public:
    explicit RayClient(const Json& told)
        : jobs_(told.at("address"), told.at("token")),
          job_(told.at("job")),
          id_(job_.at("submission_id")),
          unheard_(told.at("unheard_within_seconds").get<double>()),
          log_("Running entrypoint for job " + id_ + ": " + job_.at("entrypoint").get<std::string>() + "\n") {}

    int run(HeardInput& input) {
        bool submitted = false;
        for (auto next_log = RayClock::now();;) {
            input.hear(submitted ? 500ms : 0ms);
            const bool alone = input.silent_for(unheard_);
            if ((ray_told_to_end != 0 || alone) && !submitted) return 128 + SIGTERM;
            try {
                if (!submitted) jobs_.submit(job_);
                submitted = true;
                if ((ray_told_to_end != 0 || alone) && !asked_to_end_) {
                    jobs_.stop(id_);
                    asked_to_end_ = true;
                }
                const auto now = jobs_.find(id_);
                answered_ = RayClock::now();
                if (!now) {
                    own_word("Ray knows of no job " + id_ + " any more: it was deleted by somebody, or the head was restarted");
                    return ray_client_failed;
                }
                const bool over = !now->is_there();
                if (over || (now->status == "RUNNING" && RayClock::now() >= next_log)) {
                    const auto begin = RayClock::now();
                    show_log(over);
                    // Ray sends all of it each time: a long one is asked for less often.
                    next_log = RayClock::now() + std::max<RayClock::duration>(2s, 20 * (RayClock::now() - begin));
                }
                if (over) return end(*now, input);
            } catch (const IoError& error) {
                if (RayClock::now() - answered_ > ray_patience) {
                    own_word(error.what());
                    return ray_client_failed;
                }
                input.hear(1s);
            }
        }
    }

private:
    void show_log(bool over) {
        const auto all = jobs_.log(id_);
        if (all) log_.show(*all, over);
        else if (++without_log_ == 10) own_word("the log cannot be had, or has more than 8 MiB: what follows is not shown");
    }

    int end(const RayJob& job, HeardInput& input) {
        // The kernel's TERM and the input's end come at the same time when autotune is killed.
        if (ray_told_to_end != 0) input.hear(500ms);
        if (input.silent_for(unheard_)) jobs_.forget(id_);
        if (job.exit_code) return *job.exit_code;
        if (job.status == "SUCCEEDED") return 0;
        if (job.status == "STOPPED") return 128 + SIGTERM;
        own_word(job.status + " " + job.error_type + ": " + job.message);
        return ray_client_failed;
    }

    const RayJobs jobs_;
    const Json job_;
    const std::string id_;
    const std::chrono::duration<double> unheard_;
    PrintedLog log_;
    RayClock::time_point answered_ = RayClock::now();
    bool asked_to_end_ = false;
    int without_log_ = 0;
};

}  // namespace

int ray_client() {
    struct sigaction action {};
    action.sa_handler = on_ray_term;  // without SA_RESTART: what waits is interrupted
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaction(signal, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    HeardInput input;
    while (!input.line() && !input.silent_for(30s) && ray_told_to_end == 0) input.hear(1s);
    const Json told = shallow_json<Json>(input.line().value_or(""));
    if (!told.is_object()) {
        own_word("one line of JSON wanted on standard input, which `autotune run` writes");
        return ray_client_failed;
    }
    try {
        return RayClient(told).run(input);
    } catch (const Json::exception& error) {
        own_word(error.what());
    } catch (const Error& error) {
        own_word(error.what());
    }
    return ray_client_failed;
}

}  // namespace servetune
