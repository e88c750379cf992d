// SPDX-License-Identifier: Apache-2.0
// Whether the load that was offered arrived at the server, and whether the server kept up with it.
#include "audit_parts.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/ranges.hpp"

#include <algorithm>
#include <string>

namespace servetune {
namespace {

using namespace audit_tolerances;

std::string seconds_shown(double seconds) {
    return seconds < 1 ? figure_shown(seconds * 1e3) + " ms" : figure_shown(seconds) + " s";
}

class Behind {
public:
    Behind(const BenchmarkResult& result, const AuditContext& context) : r_(result), c_(context) {
        rate_ = c_.requested_rate_per_second ? *c_.requested_rate_per_second
                                             : r_.requested_rate_per_second.value_or(0);
        n_ = r_.successful_requests.value_or(0) + r_.failed_requests.value_or(0);
        first_ = r_.time_to_first_token.mean;
        const double tokens = n_ > 0 ? r_.output_tokens.value_or(0) /
                                           std::max(1.0, r_.successful_requests.value_or(0))
                                     : 0;
        if (r_.time_per_output_token.mean && tokens > 1)
            decoding_ = *r_.time_per_output_token.mean * (tokens - 1);
    }

    Validity found() {
        if (c_.turns_wait_for_answers) return {};
        sent_late();
        served_late();
        return std::move(validity_);
    }

private:
    /// The median wait before a request was sent.
    [[nodiscard]] double wait() const { return std::max(0.0, r_.client.send_lag_p50.value_or(0)); }

    void sent_late() {
        const double usual = wait();
        const double longest = std::max(usual, r_.client.send_lag_p99.value_or(0));
        const double first = first_.value_or(0);
        if (!(usual > std::max(sent_late_least, sent_late_share * first)) &&
            !(longest > std::max(sent_late_most, first)))
            return;
        std::string user;
        if (r_.time_to_first_token_from_schedule.mean && first_)
            user = ": from the schedule the mean TTFT is " +
                   seconds_shown(*r_.time_to_first_token_from_schedule.mean) + ", not " +
                   seconds_shown(first);
        else if (first_)
            user = ": from the schedule the TTFT is about " + seconds_shown(first + usual) +
                   ", not " + seconds_shown(first);
        find("sent_late",
             "requests were sent " + seconds_shown(usual) + " (median) and " +
                 seconds_shown(longest) + " (p99) after their schedule",
             "mean TTFT = " + (first_ ? seconds_shown(first) : "not known"),
             "the load asked for was not offered: requests waited in the client (too few may be in "
             "flight, or it is too slow), and "
             "TTFT and latency leave that wait out" +
                 user);
    }

    /// How long the run went on after the last arrival. An honest one ends about one answer later.
    void served_late() {
        if (!(rate_ > 0) || !(n_ > 0)) return;
        const double seconds = r_.duration_seconds.value_or(0) > 0 ? *r_.duration_seconds
                               : r_.requests_per_second.value_or(0) > 0
                                   ? r_.successful_requests.value_or(0) / *r_.requests_per_second
                                   : 0;
        const double arriving = n_ / rate_;
        const double behind = seconds - arriving;
        const auto answer = decoding_ ? decoding_ : r_.latency.mean;
        if (!answer || !(behind > 0)) return;
        const double longest =
            *answer *
            (c_.equal_output_lengths.value_or(false) ? longest_equal_answer : longest_answer);
        if (behind <= std::max(longest, behind_least * arriving)) return;
        // The queue is somewhere: in the server, where the TTFT holds it, or in the client.
        if (first_ && *first_ + wait() < behind * queue_least) return;
        const double waited = first_.value_or(0) + wait();
        find("rate", "served: " + figure_shown(n_ / seconds) + " requests/s",
             "offered: " + figure_shown(rate_) + " requests/s",
             "the rate was not reached: the last answer came " + seconds_shown(behind) +
                 " after the last arrival was due, and an answer takes " + seconds_shown(*answer) +
                 "; " +
                 (first_ ? "the mean wait for a first token, " + seconds_shown(waited) + ", is"
                         : std::string("waits are")) +
                 " the queue of a run of this length, and longer with more requests");
    }

    void find(const char* id, std::string left, std::string right, std::string cause) {
        // Where the load is what is looked for, its limits judge it.
        const Verdict verdict = c_.rate_is_chosen ? Verdict::sound : Verdict::suspect;
        add_finding(validity_, verdict, id, std::move(left), std::move(right),
                    (c_.rate_is_chosen ? "a note: " : "") + std::move(cause));
    }

    const BenchmarkResult& r_;
    const AuditContext& c_;
    double rate_ = 0;
    double n_ = 0;
    std::optional<double> first_{};
    std::optional<double> decoding_{};  ///< seconds of a mean answer behind its first token
    Validity validity_{};
};

bool has_two(const TimeSummary& times) {
    int there = 0;
    for (const auto& figure : {times.p50, times.p90, times.p95, times.p99}) there += figure ? 1 : 0;
    return there > 1 || (times.mean && times.p50);
}

}  // namespace

Validity falling_behind(const BenchmarkResult& result, const AuditContext& context) {
    return Behind(result, context).found();
}

bool nothing_checked(const BenchmarkResult& result, const std::vector<NotChecked>& skipped) {
    for (const char* id : {"window", "decomposition", "hidden_decode", "chunks", "little", "peak",
                           "complete", "load_bound", "client", "server", "physics"})
        if (none_of(skipped, [&](const NotChecked& one) { return one.id == id; })) return false;
    for (const TimeSummary* times : {&result.time_to_first_token, &result.time_per_output_token,
                                     &result.inter_token_latency, &result.latency})
        if (has_two(*times)) return false;
    return !(result.time_to_first_token.mean && result.latency.mean);
}

}  // namespace servetune
