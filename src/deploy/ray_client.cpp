// SPDX-License-Identifier: Apache-2.0
#include "ray_client.hpp"

#include "base/nesting.hpp"
#include "ray_jobs.hpp"
#include "servetune/error.hpp"
#include "stand_in.hpp"

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>

namespace servetune {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using RayClock = std::chrono::steady_clock;

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
          log_("Running entrypoint for job " + id_ + ": " +
               job_.at("entrypoint").get<std::string>() + "\n") {}

    int run(Wanted& wanted) {
        bool submitted = false;
        std::optional<RayClock::time_point> tried;  // what was sent and not answered may arrive yet
        std::optional<RayClock::time_point> over_since;
        for (auto next_log = RayClock::now();;) {
            const bool goes_on = wanted.still_after(tried ? 500ms : 0ms);
            if (!goes_on && !tried) return stand_in_ended;
            try {
                if (goes_on && !submitted) {
                    tried = RayClock::now();
                    jobs_.submit(job_);
                    submitted = true;
                }
                if (!goes_on && !asked_to_end_) {
                    jobs_.stop(id_);
                    asked_to_end_ = submitted;
                }
                const auto now = jobs_.find(id_);
                answered_ = RayClock::now();
                if (now) submitted = true;
                if (!now && !submitted) {
                    if (RayClock::now() - *tried > last_answers) return stand_in_ended;
                    continue;
                }
                if (!now) {
                    stand_in_speaks(
                        "Ray knows of no job " + id_ +
                        " any more: it was deleted by somebody, or the head was restarted");
                    return stand_in_failed;
                }
                const bool over = !now->is_there();
                if (over && !over_since) over_since = RayClock::now();
                bool shown = true;
                if (over || (now->status == "RUNNING" && RayClock::now() >= next_log)) {
                    const auto begin = RayClock::now();
                    shown = show_log(over);
                    // Ray sends all of it each time: a long one is asked for less often.
                    next_log = RayClock::now() +
                               std::max<RayClock::duration>(2s, 20 * (RayClock::now() - begin));
                }
                if (over && (shown || RayClock::now() - *over_since > last_answers))
                    return end(*now, wanted);
            } catch (const IoError& error) {
                if (RayClock::now() - answered_ > cluster_patience) {
                    stand_in_speaks(error.what());
                    return stand_in_failed;
                }
                (void)wanted.still_after(1s);
            }
        }
    }

private:
    /// Whether there was one.
    bool show_log(bool over) {
        const auto all = jobs_.log(id_);
        if (all) {
            log_.show(*all, over);
            without_log_ = 0;
        } else if (++without_log_ == 10)
            stand_in_speaks(
                "the log cannot be had, or has more than 8 MiB: what follows is not shown");
        return all.has_value();
    }

    int end(const RayJob& job, Wanted& wanted) {
        if (!wanted.still()) {
            // The kernel's TERM and the input's end come at the same time when autotune is killed.
            (void)wanted.still_after(500ms);
            if (wanted.alone()) jobs_.forget(id_);
        }
        if (job.exit_code) return *job.exit_code;
        if (job.status == "SUCCEEDED") return 0;
        if (job.status == "STOPPED") return stand_in_ended;
        stand_in_speaks(job.status + " " + job.error_type + ": " + job.message);
        return stand_in_failed;
    }

    /// At the end: for the log, and for an order of which nobody knows whether it arrived.
    static constexpr std::chrono::seconds last_answers{10};

    const RayJobs jobs_;
    const Json job_;
    const std::string id_;
    PrintedLog log_;
    RayClock::time_point answered_ = RayClock::now();
    bool asked_to_end_ = false;
    int without_log_ = 0;
};

}  // namespace

int ray_client() {
    Wanted wanted;
    const Json told = shallow_json<Json>(wanted.line().value_or(""));
    if (!told.is_object()) {
        stand_in_speaks("one line of JSON wanted on standard input, which `autotune run` writes");
        return stand_in_failed;
    }
    try {
        return RayClient(told).run(wanted);
    } catch (const Json::exception& error) {
        stand_in_speaks(error.what());
    } catch (const Error& error) {
        stand_in_speaks(error.what());
    }
    return stand_in_failed;
}

}  // namespace servetune
