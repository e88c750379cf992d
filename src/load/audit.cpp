// SPDX-License-Identifier: Apache-2.0
#include "servetune/audit.hpp"

#include "audit_parts.hpp"
#include "base/present.hpp"
#include "perf/roofline.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/ranges.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace servetune {
namespace {

using namespace audit_tolerances;

std::string share_text(double value) { return percent_text(value, 1); }

/// The middle of the values that are there; the first of fewer than three.
std::optional<double> yardstick(std::vector<double> values) {
    if (values.empty()) return std::nullopt;
    if (values.size() < 3) return values.front();
    const auto middle = values.begin() + std::ptrdiff_t((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

class Auditor {
public:
    Auditor(const BenchmarkResult& result, const AuditContext& context)
        : r_(result),
          c_(context),
          n_(result.successful_requests.value_or(0)),
          D_(result.duration_seconds.value_or(0)),
          F_(result.time_to_first_token.mean),
          T_(result.time_per_output_token.mean),
          G_(result.inter_token_latency.mean),
          L_(result.latency.mean) {
        if (n_ > 0 && result.output_tokens)
            o_ = (*result.output_tokens - context.hidden_output_tokens) / n_;
        equal_ = lengths_are_equal();
        dialect_ = spoken();
    }

    void check() {
        window();
        decomposition();
        hidden_decode();
        chunks();
        little();
        add(validity, audit_order(r_));
        peak();
        complete();
        lengths();
        counts();
        load_bound();
        client();
        server();
        physics_of_decode();
        physics_of_prefill();
    }

    Validity validity{};
    std::vector<NotChecked> skipped{};

private:
    void find(Verdict verdict, const char* id, std::string left, std::string right,
              std::string cause) {
        add_finding(validity, verdict, id, std::move(left), std::move(right), std::move(cause));
    }
    void skip(const char* id, std::string reason) { skipped.push_back({id, std::move(reason)}); }

    /// Told, or seen from the figures: a whole number of tokens per request over a hundred requests
    /// is no accident.
    [[nodiscard]] std::optional<bool> lengths_are_equal() const {
        if (c_.hidden_output_tokens > 0) return false;  // how much an answer hides differs
        if (c_.equal_output_lengths) return c_.equal_output_lengths;
        if (o_ > 0 && n_ >= lengths_shown_by && o_ == std::floor(o_)) return true;
        return std::nullopt;
    }

    /// guidellm's figures satisfy T o = F + G (o-1) whatever was seen of the stream, because both
    /// sides are its latency; vLLM's satisfy it only when F is small. So that is asked first: the
    /// other way round a guidellm block can fit vLLM's by accident.
    [[nodiscard]] Dialect spoken() const {
        if (c_.dialect != Dialect::unknown) return c_.dialect;
        if (!F_ || !T_ || !G_ || !(o_ > 1)) return Dialect::unknown;
        const double whole = *T_ * o_;
        const double parts = *F_ + *G_ * (o_ - 1);
        const double slack = dialect_tolerance * whole + 0.005 * in_milliseconds * 2 * o_;
        const bool as_guidellm = std::abs(whole - parts) <= slack;
        // vLLM's gaps count the chunk that opens an answer: between (o - 1) / o of the TPOT and all
        // of it.
        const bool as_vllm =
            *G_ <= *T_ * (1 + exact_tolerance) + 0.01 * in_milliseconds &&
            *G_ >= *T_ * (1 - exact_tolerance) * (o_ - 1) / o_ - 0.01 * in_milliseconds;
        if (as_guidellm && !as_vllm) return Dialect::guidellm;
        if (as_vllm && !as_guidellm) return Dialect::vllm;
        return Dialect::unknown;
    }

    // ---------------------------------------------------------------------------------------------
    // identities

    void window() {
        if (!(D_ > 0)) return skip("window", "no duration");
        struct Rate {
            const char* name;
            const char* formula;
            double printed;
            double amount;
        };
        std::vector<Rate> rates;
        const auto add = [&](const char* name, const char* formula,
                             const std::optional<double>& printed,
                             const std::optional<double>& amount) {
            if (printed && amount && *amount > 0)
                rates.push_back({name, formula, *printed, *amount});
        };
        if (r_.input_tokens && r_.output_tokens)
            add("total_tokens_per_second", "(I + O) / D", r_.total_tokens_per_second,
                *r_.input_tokens + *r_.output_tokens);
        add("output_tokens_per_second", "O / D", r_.output_tokens_per_second, r_.output_tokens);
        add("input_tokens_per_second", "I / D", r_.input_tokens_per_second, r_.input_tokens);
        add("requests_per_second", "n / D", r_.requests_per_second, r_.successful_requests);
        const Rate* worst = nullptr;
        double furthest = 0;
        for (const Rate& rate : rates) {
            // Half a printed unit is an amount, however small the true rate is: 0.02 is what 0.0150
            // is printed as.
            const double computed = rate.amount / D_;
            const double off =
                (std::abs(rate.printed - computed) - half_a_unit) / computed - rounding(D_);
            if (off > window_tolerance && off > furthest) {
                worst = &rate;
                furthest = off;
            }
        }
        if (rates.empty()) return skip("window", "no rate beside its amount");
        if (worst == nullptr) return;
        const double computed = worst->amount / D_;
        const std::string implied = worst->printed > 0
                                        ? figure_shown(worst->amount / worst->printed) + " s"
                                        : "no time at all";
        find(furthest > window_unsound ? Verdict::unsound : Verdict::suspect, "window",
             std::string(worst->name) + " = " + figure_shown(worst->printed),
             std::string(worst->formula) + " = " + figure_shown(computed),
             "rates over another window: the rate is that of " + implied + ", the run took " +
                 figure_shown(D_) + " s (" + (worst->printed > computed ? "+" : "") +
                 share_text(worst->printed / computed - 1) +
                 "); the client leaves out the start or the end of the run, or counts tokens when "
                 "it first sees the request");
    }

    void decomposition() {
        if (!L_ || !F_ || !T_ || !(o_ > 0))
            return skip("decomposition", "no mean latency beside TTFT and TPOT");
        const bool equal = equal_.value_or(false);
        const double printed_error = rounding(*L_) + 0.005 * in_milliseconds * o_ / *L_;
        const double slack = (equal ? exact_tolerance : mixed_tolerance) + printed_error;
        const double vllm = (*F_ + *T_ * (o_ - 1)) / *L_;
        const double guidellm = *T_ * o_ / *L_;
        // With mixed lengths vLLM's unweighted mean TPOT is that of the short requests, which queue
        // most: too much is no fault.
        const bool fits_vllm = vllm >= 1 - slack && (vllm <= 1 + slack || !equal);
        const bool fits_guidellm = std::abs(guidellm - 1) <= slack;
        if (dialect_ == Dialect::guidellm ? fits_guidellm : fits_vllm) return;
        if (dialect_ == Dialect::unknown && fits_guidellm) return;
        const bool as_guidellm = dialect_ == Dialect::guidellm;
        const double ratio = as_guidellm ? guidellm : vllm;
        const std::string tool = dialect_ == Dialect::unknown
                                     ? "neither vLLM's definition nor guidellm's fits"
                                 : as_guidellm ? "guidellm's definition of TPOT"
                                               : "vLLM's definition of TPOT";
        find(Verdict::unsound, "decomposition",
             (as_guidellm ? "T o = " : "F + T (o - 1) = ") + figure_shown(ratio * *L_) + " s",
             "mean latency L = " + figure_shown(*L_) + " s",
             ratio < 1 ? "tokens not observed: the printed times explain " + share_text(ratio) +
                             " of the latency (" + tool +
                             "); the client did not see most of the stream, as when chunks of "
                             "reasoning are not counted"
                       : "the printed times exceed the latency (" + tool +
                             "): tokens or latencies are counted wrong");
    }

    void hidden_decode() {
        if (!L_ || !F_ || !G_) return skip("hidden_decode", "no mean latency beside TTFT and ITL");
        if (!equal_.value_or(false) || o_ < fewest_tokens)
            return skip("hidden_decode",
                        "answers are not known to have equal lengths of 16 tokens or more");
        const double seen = *F_ + *G_ * (o_ - 1);
        const double hidden = 1 - seen / *L_ - rounding(*L_) - 0.005 * in_milliseconds * o_ / *L_;
        // Chunks without tokens make small gaps, but nothing is hidden when TPOT explains the
        // latency.
        const bool empty_chunks = T_ && *G_ < *T_ * (1 - chunk_tolerance) &&
                                  std::abs(*F_ + *T_ * (o_ - 1) - *L_) <= exact_tolerance * *L_;
        if (hidden <= hidden_tolerance || empty_chunks) return;
        find(Verdict::unsound, "hidden_decode", "F + G (o - 1) = " + figure_shown(seen) + " s",
             "mean latency L = " + figure_shown(*L_) + " s",
             "part of the stream was not seen: " + share_text(1 - seen / *L_) +
                 " of a request's time lies between no two tokens that the client counted, as when "
                 "chunks of reasoning are not counted");
    }

    void chunks() {
        if (!G_ || !T_ || !(*T_ > 0)) return skip("chunks", "no mean ITL beside the mean TPOT");
        if (!equal_.value_or(false) || o_ < fewest_tokens)
            return skip("chunks",
                        "answers are not known to have equal lengths of 16 tokens or more");
        if (dialect_ == Dialect::guidellm)
            return skip("chunks", "guidellm prints no gaps between chunks");
        const double ratio = *G_ / *T_;
        const double error = half_a_unit * in_milliseconds;  // of both
        const bool counted =
            r_.tokens_per_chunk &&
            !c_.tokens_are_estimated;  // so TPOT is right, whatever the chunks hold
        if (counted && *r_.tokens_per_chunk < few_tokens_a_chunk && ratio > 1 + chunk_tolerance &&
            ratio < few_tokens_a_chunk)
            find(Verdict::sound, "chunks", "mean ITL = " + milliseconds_shown(*G_),
                 "mean TPOT = " + milliseconds_shown(*T_),
                 "a note: the ITL is per chunk, and some chunks hold several tokens (" +
                     figure_shown(*r_.tokens_per_chunk) +
                     " on average), as where characters of several tokens are sent whole");
        else if (*G_ - error > (1 + chunk_tolerance) * (*T_ + error))
            find(Verdict::suspect, "chunks", "mean ITL = " + milliseconds_shown(*G_),
                 "mean TPOT = " + milliseconds_shown(*T_),
                 "the ITL is per chunk: about " + figure_shown(ratio) +
                     " tokens came in each (speculation, a server that sends in groups, or tokens "
                     "that are counted and not sent)");
        // A chunk that only opens the answer adds one gap of nothing: (o - 1) / o.
        else if (*G_ + error < (1 - chunk_tolerance) * (o_ - 1) / o_ * (*T_ - error))
            find(Verdict::suspect, "chunks", "mean ITL = " + milliseconds_shown(*G_),
                 "mean TPOT = " + milliseconds_shown(*T_),
                 "the ITL is per chunk: chunks without tokens are counted, or tokens share chunks "
                 "that were read at once");
    }

    void little() {
        const auto cap = c_.concurrency_cap ? c_.concurrency_cap : r_.maximum_concurrency;
        if (!cap || !(*cap > 0)) return skip("little", "no cap on concurrency");
        std::optional<double> in_flight = r_.mean_concurrency;
        std::string formula = "mean concurrency";
        if (L_ && n_ > 0 && D_ > 0) {
            in_flight = n_ * *L_ / D_;
            formula = "n L / D";
        }
        if (!in_flight) return skip("little", "no mean latency");
        const double slack = L_ ? rounding(*L_) + rounding(D_) : 0;
        if (*in_flight * (1 - slack) > *cap * cap_tolerance)
            find(*in_flight * (1 - slack) > *cap * in_flight_unsound ? Verdict::unsound
                                                                     : Verdict::suspect,
                 "little", formula + " = " + figure_shown(*in_flight),
                 "cap = " + figure_shown(*cap),
                 "more requests in flight than allowed (Little's law): latency, duration or the "
                 "cap is printed wrong");
        else if (c_.closed_loop && n_ >= cap_rounds * *cap && D_ > 0 &&
                 *in_flight <
                     *cap * (std::min(cap_used, 1 - cap_drain * r_.latency.p99.value_or(0) / D_) -
                             slack))
            find(Verdict::suspect, "little", formula + " = " + figure_shown(*in_flight),
                 "cap = " + figure_shown(*cap),
                 "the closed loop did not keep its slots busy: the client waited, or latency "
                 "leaves out time in the client's queue");
    }

    void peak() {
        const auto& highest = r_.peak_output_tokens_per_second;
        if (!highest) return skip("peak", "no peak rate");
        std::optional<double> mean = r_.output_tokens_per_second;
        if (r_.output_tokens && D_ > 0) mean = *r_.output_tokens / D_;
        if (!mean || !(*mean > 0)) return skip("peak", "no mean rate beside the peak");
        if (D_ > 0 && D_ < peak_shortest_seconds)
            return skip("peak", "the run took less than two seconds");
        const std::string left = "peak = " + figure_shown(*highest) + " tok/s";
        const std::string right = "mean = " + figure_shown(*mean) + " tok/s";
        if (*highest > peak_times_mean * *mean || *highest > peak_highest)
            find(Verdict::suspect, "peak", left, right,
                 "time collapsed: many tokens carry one time stamp, so the peak is a rate over an "
                 "instant, not over a second");
        // A peak of chunks lies below a mean of tokens by as many as come in a chunk: ITL / TPOT
        // says how many.
        else if (const double in_chunk = G_ && T_ && *T_ > 0 ? std::max(1.0, *G_ / *T_) : 1;
                 *highest * in_chunk <
                 *mean * (1 - (in_chunk > 1 ? chunk_tolerance : window_tolerance)))
            find(Verdict::suspect, "peak", left, right,
                 "the peak lies below the mean: it counts chunks, or another window");
    }

    [[nodiscard]] std::string failures() const {
        return c_.failures.empty() ? "" : "; " + c_.failures;
    }

    void complete() {
        std::optional<double> requested;
        if (r_.requested_requests) requested = r_.requested_requests;
        else if (c_.requested_requests) requested = c_.requested_requests;
        else if (r_.failed_requests && r_.successful_requests) requested = n_ + *r_.failed_requests;
        if (r_.successful_requests && !(n_ > 0))
            find(Verdict::unsound, "complete", "0 requests succeeded",
                 requested ? figure_shown(*requested) + " were asked for" : "at least one must",
                 "nothing was measured: every figure is of requests that failed" + failures());
        else if (!requested || !(*requested > 0) || !r_.successful_requests)
            skip("complete", "how many requests were sent is not known");
        else if (n_ / *requested < success_wanted)
            find(Verdict::unsound, "complete", figure_shown(n_) + " requests succeeded",
                 figure_shown(*requested) + " were asked for",
                 "survivors' bias: the figures are those of " + share_text(n_ / *requested) +
                     " of the requests; those that failed (often the long ones) took their work "
                     "and their latencies with them" +
                     failures());
        else if (r_.failed_requests && n_ + *r_.failed_requests > *requested)
            find(Verdict::suspect, "complete",
                 figure_shown(n_ + *r_.failed_requests) + " requests ended",
                 figure_shown(*requested) + " were asked for",
                 "more requests than were asked for: another run's figures, or warm-up counted");
        if (!c_.mean_input_tokens || !r_.input_tokens || !(n_ > 0)) return;
        const double mean = *r_.input_tokens / n_;
        const double off = std::abs(mean - *c_.mean_input_tokens);
        if (off > input_tolerance * *c_.mean_input_tokens + template_tokens)
            find(Verdict::suspect, "complete", "mean input = " + figure_shown(mean) + " tokens",
                 "data set: " + figure_shown(*c_.mean_input_tokens) + " tokens",
                 "the requests that succeeded are not the data set's: some lengths failed, or "
                 "other prompts were sent");
    }

    void lengths() {
        if (!c_.asked_output_tokens || !r_.output_tokens || !(n_ > 0)) return;
        const double mean = *r_.output_tokens / n_;
        if (std::abs(mean / *c_.asked_output_tokens - 1) <= work_tolerance) return;
        find(Verdict::suspect, "lengths", "mean output = " + figure_shown(mean) + " tokens",
             figure_shown(*c_.asked_output_tokens) + " were asked for",
             "the server refuses or ignores ignore_eos, so answers ended by themselves: another "
             "run does other work, and cannot be "
             "compared token by token");
    }

    void counts() {
        if (!c_.tokens_are_estimated || !r_.output_tokens) return;
        find(Verdict::suspect, "counts",
             "output = " + figure_shown(*r_.output_tokens) + " tokens, estimated",
             "the server counted none",
             "answers have no usage, so all figures in tokens are estimates "
             "(docs/explanation/measuring.md); requests per second, TTFT and "
             "latency are "
             "measured");
    }

    void load_bound() {
        const auto rate = c_.requested_rate_per_second ? c_.requested_rate_per_second
                                                       : r_.requested_rate_per_second;
        if (!rate || !(*rate > 0)) return skip("load_bound", "no finite request rate is known");
        if (!(n_ > 0) || !(D_ > 0)) return skip("load_bound", "no duration");
        if (c_.rate_is_chosen) return skip("load_bound", "the rate is what is searched");
        const double arriving = n_ / *rate;
        double latency = 0;
        if (L_) latency = *L_;
        else if (F_ && T_ && o_ > 0) latency = *F_ + *T_ * (o_ - 1);
        if (latency > arriving)
            return;  // all came before one was answered: a burst, whatever its rate
        // The last answers end after the last arrival. But a latency under overload is the queue
        // itself, and would explain any duration.
        const double expected = n_ / (arriving + std::min(latency, tail_longest * arriving));
        if (n_ / D_ < rate_reached * expected) return;
        find(c_.rate_is_intended ? Verdict::sound : Verdict::suspect, "load_bound",
             "n / D = " + figure_shown(n_ / D_) + " requests/s",
             "offered: " + figure_shown(*rate) + " requests/s",
             std::string(c_.rate_is_intended ? "a note: " : "") +
                 "the server kept up with the rate offered: throughput says what was sent, not "
                 "what the server can do; compare latencies");
    }

    void client() {
        const ClientHealth& health = r_.client;
        if (!health.loop_lag_p99 && !health.loop_lag_max && !health.coalesced_share &&
            !health.processor_share && !health.send_lag_p99)
            return skip("client", "the tool does not say how well it kept up");
        const double longest =
            G_ && *G_ > 0 ? std::min(lag_longest, lag_of_gap * *G_) : lag_longest;
        if (health.loop_lag_p99 && *health.loop_lag_p99 > longest)
            find(*health.loop_lag_p99 > lag_unsound ? Verdict::unsound : Verdict::suspect, "client",
                 "loop lag p99 = " + milliseconds_shown(*health.loop_lag_p99),
                 "at most " + milliseconds_shown(longest),
                 "client-limited: the load generator's own loop was late, so its latencies are its "
                 "own");
        if (health.loop_lag_max && *health.loop_lag_max > client_stops_at)
            find(*health.loop_lag_max > window_unsound * D_ ? Verdict::unsound : Verdict::suspect,
                 "client_stopped",
                 "the load generator stood still for " + figure_shown(*health.loop_lag_max) +
                     " s of " + figure_shown(D_) + " s",
                 "at most " + figure_shown(client_stops_at) + " s at a time",
                 "the program was stopped (Ctrl-Z), or its machine or container slept: nothing was "
                 "sent or read meanwhile");
        if (health.coalesced_share && *health.coalesced_share > coalesced_most)
            find(Verdict::suspect, "client",
                 share_text(*health.coalesced_share) +
                     " of the chunks came in one read with another",
                 "at most " + share_text(coalesced_most),
                 "client-limited: tokens waited for the client, or the network groups them");
        if (health.processor_share && *health.processor_share > processor_most)
            find(Verdict::suspect, "client",
                 share_text(*health.processor_share) + " of a core used",
                 "at most " + share_text(processor_most),
                 "client-limited: its busiest loop has no time to spare, so it stamps tokens late");
    }

    void server() {
        const ServerCounters& counters = r_.server;
        if (!counters.output_tokens && !counters.prefix_hit_tokens)
            return skip("server", "the server's own counters were not read");
        if (counters.output_tokens && r_.output_tokens && *r_.output_tokens > 0) {
            const double ratio = *counters.output_tokens / *r_.output_tokens;
            // What failed requests had generated is in the server's count only.
            const double failed = n_ > 0 ? r_.failed_requests.value_or(0) / n_ : 0;
            if (ratio < 1 - server_tolerance || ratio > 1 + server_tolerance + failed)
                find(Verdict::unsound, "server",
                     "server generated " + figure_shown(*counters.output_tokens) + " tokens",
                     "client counted " + figure_shown(*r_.output_tokens),
                     ratio < 1 ? "the client counts tokens that the server did not generate: "
                                 "another server answered, or the count is wrong"
                               : "the server generated more than the client counts: others used "
                                 "it, or tokens were not observed");
        }
        if (!counters.prefix_hit_tokens || c_.prefix_cache_intended.value_or(false)) return;
        // Some engines count prompt tokens without those from the cache, so the client's count may
        // be the larger one.
        const double sent =
            std::max(counters.input_tokens.value_or(0), r_.input_tokens.value_or(0));
        // All prompts begin with the words of the chat template, which the run's own first request
        // leaves in the cache.
        const double most = prefix_hits_most * sent + template_tokens * n_;
        if (sent > 0 && *counters.prefix_hit_tokens > most)
            find(Verdict::suspect, "server",
                 figure_shown(*counters.prefix_hit_tokens) + " of " + figure_shown(sent) +
                     " prompt tokens came from the prefix cache",
                 "at most " + figure_shown(most) + ": " + share_text(prefix_hits_most) +
                     ", and the chat template of each",
                 "cache contamination: an earlier run left these prompts in the prefix cache");
    }

    // ---------------------------------------------------------------------------------------------
    // physics

    /// The weights served; nothing, with the reason, where they are not known.
    [[nodiscard]] const ModelWeights* weights(std::string& missing) const {
        if (!c_.served) missing = "the model is not known";
        else if (!c_.hardware) missing = "the hardware is not known";
        else if (const auto found = c_.served->model.weights.find(c_.served->quantization);
                 found != c_.served->model.weights.end())
            return &found->second;
        else
            missing = "the bytes of " + c_.served->model.name + " as " + c_.served->quantization +
                      " are not known";
        return nullptr;
    }

    /// Nothing says that the server does not: no command, and no stream of single tokens at even
    /// distances.
    [[nodiscard]] bool may_guess_tokens() const {
        // What is guessed and sent one by one comes at no distance: most gaps, or a mean below the
        // median.
        const auto& median = r_.inter_token_latency.p50;
        const bool one_by_one = r_.tokens_per_chunk && *r_.tokens_per_chunk < few_tokens_a_chunk &&
                                !c_.tokens_are_estimated && G_ && median && *median > *G_ / 4 &&
                                *median < *G_ * few_tokens_a_chunk;
        return !c_.command_is_known && !one_by_one;
    }

    /// The mean TPOT has a floor under any load.
    void physics_of_decode() {
        std::string missing;
        const ModelWeights* of = weights(missing);
        if (of == nullptr) return skip("physics", missing);
        if (!T_ || !(o_ > 1)) return skip("physics", "no mean TPOT");
        if (!c_.tokens_per_step)
            return skip("physics",
                        "how many tokens a step of speculation gives is not known (decode)");
        const HardwareSpec& hardware = present(c_.hardware);
        const double floor =
            least_seconds_per_token(*of, hardware, c_.devices, *c_.tokens_per_step);
        // Where the first token took longer than all the others, later ones may have waited behind
        // it: then the whole answer is bound.
        const bool held_back = F_ && *F_ > *T_ * (o_ - 1);
        const double per_token = held_back ? (*F_ + *T_ * (o_ - 1)) / o_ : *T_;
        // F and T are printed in milliseconds, so their mean by tokens is as far off as each.
        if (per_token * (1 + physics_tolerance) + half_a_unit * in_milliseconds >= floor) return;
        const double bandwidth = hardware.memory_bandwidth_bytes_per_second * c_.devices;
        const bool guesses = may_guess_tokens();
        find(guesses ? Verdict::suspect : Verdict::unsound, "physics",
             "mean TPOT = " + milliseconds_shown(*T_),
             "at least " + milliseconds_shown(floor) + ": " + figure_shown(of->per_token / 1e9) +
                 " GB of weights at " + figure_shown(bandwidth / 1e9) + " GB/s" +
                 (*c_.tokens_per_step > 1
                      ? ", " + figure_shown(*c_.tokens_per_step) + " tokens a step"
                      : ""),
             (guesses ? "most likely speculation: nothing here says that the server guesses no "
                        "tokens; if it guesses none, a token would need "
                      : "impossible: a token would need ") +
                 (*T_ > 0 ? figure_shown(of->per_token / *T_ / *c_.tokens_per_step / 1e9)
                          : "endless") +
                 " GB/s; another model or checkpoint answered, kernels did not do their work, or "
                 "tokens are counted wrong");
    }

    void physics_of_prefill() {
        std::string missing;
        const ModelWeights* of = weights(missing);
        if (of == nullptr || c_.prefix_cache_intended.value_or(false))
            return;  // said by physics_of_decode; or as it should be
        const ModelSpec& model = present(c_.served).model;
        const HardwareSpec& hardware = present(c_.hardware);
        const auto most = most_prompt_tokens_per_second(model, *of, hardware, c_.devices);
        if (!most || !r_.input_tokens || !(n_ > 0))
            return skip("physics",
                        "no input tokens, or no FLOP/s in " + of->computes_in + " (prefill)");
        const double per_request = F_ && *F_ > 0 ? *r_.input_tokens / n_ / *F_ : 0;
        const double per_run = D_ > 0 ? *r_.input_tokens / D_ : 0;
        const double rate = std::max(per_request, per_run / c_.servers);
        if (rate <= *most * (1 + physics_tolerance)) return;
        const double flops = present(hardware.flops(of->computes_in)) * c_.devices;
        const double parameters = model.parameters_active - model.parameters_embedding;
        find(Verdict::suspect, "physics",
             "prefill = " + figure_shown(std::round(rate)) + " tok/s" +
                 (rate == per_request ? " (mean input / mean TTFT)" : ""),
             "at most " + figure_shown(std::round(*most)) +
                 " tok/s: " + figure_shown(flops / 1e12) + " TFLOP/s in " + of->computes_in +
                 " for " + figure_shown(parameters / 1e9) + "e9 parameters",
             c_.prefix_cache_intended ? "prompts were computed faster than the chip computes, "
                                        "though the prefix cache is off: "
                                        "another model answered, or TTFT is not the first token's"
                                      : "most likely the prefix cache answered: these prompts had "
                                        "been sent before, so TTFT says "
                                        "nothing of the prefill");
    }

    const BenchmarkResult& r_;
    const AuditContext& c_;
    // As in docs/explanation/measuring.md: successes, duration, mean TTFT, TPOT, ITL and latency,
    // tokens out per success.
    double n_;
    double D_;
    std::optional<double> F_;
    std::optional<double> T_;
    std::optional<double> G_;
    std::optional<double> L_;
    double o_ = 0;
    std::optional<bool> equal_;
    Dialect dialect_ = Dialect::unknown;
};

}  // namespace

std::string figure_shown(double value) {
    const double size = std::abs(value);
    if (size == std::floor(size) && size < 1e12) return fixed_text(value, 0);
    return size >= 100 && size < 1e6 ? fixed_text(value, 2) : significant_text(value, 4);
}

Validity audit(const BenchmarkResult& result, const AuditContext& context) {
    Auditor auditor(result, context);
    auditor.check();
    add(auditor.validity, falling_behind(result, context));
    if (nothing_checked(result, auditor.skipped)) add(auditor.validity, {Verdict::unchecked, {}});
    return std::move(auditor.validity);
}

std::vector<NotChecked> not_checked(const BenchmarkResult& result, const AuditContext& context) {
    Auditor auditor(result, context);
    auditor.check();
    return std::move(auditor.skipped);
}

void add(Validity& to, const Validity& more) {
    const bool graver = more.verdict > to.verdict;
    std::vector<Finding> all = graver ? more.findings : to.findings;
    for (const Finding& finding : graver ? to.findings : more.findings) {
        const auto same = [&](const Finding& known) { return known.id == finding.id; };
        const auto bare =
            std::find(all.begin(), all.end(), Finding{finding.id});  // a table has the id alone
        if (bare != all.end()) *bare = finding;
        else if (finding != Finding{finding.id} || none_of(all, same)) all.push_back(finding);
    }
    to = {std::max(to.verdict, more.verdict), std::move(all)};
}

void describe(AuditContext& context, const Workload& workload, const BenchmarkResult& result) {
    const Dataset& data = workload.dataset;
    if (workload.arrival.kind == Arrival::Kind::concurrency) {
        context.concurrency_cap = double(workload.arrival.in_flight);
        context.closed_loop = true;
    } else if (workload.arrival.kind == Arrival::Kind::rate)
        context.requested_rate_per_second = workload.arrival.requests_per_second;
    if (data.kind == Dataset::Kind::random) {
        context.mean_input_tokens = double(present(data.input_tokens));
        // Without ignore_eos answers may end early: equal enough when hardly any did.
        const double requests = result.successful_requests.value_or(0);
        const double printed = requests > 0 ? result.output_tokens.value_or(0) / requests : 0;
        const auto asked = double(present(data.output_tokens));
        if (data.range_ratio == 0 &&
            (workload.ignore_eos || std::abs(printed - asked) <= 0.02 * asked))
            context.equal_output_lengths = true;
        else if (data.range_ratio > 0) context.equal_output_lengths = false;
    } else if (data.kind == Dataset::Kind::sharegpt) context.equal_output_lengths = false;
    else if (data.kind == Dataset::Kind::shared_prefix || data.kind == Dataset::Kind::multi_turn)
        context.prefix_cache_intended = true;
    context.turns_wait_for_answers = data.kind == Dataset::Kind::multi_turn;
}

std::vector<Validity> audit_together(std::span<const BenchmarkResult> results) {
    std::vector<Validity> found(results.size());
    using Amount = std::optional<double> (*)(const BenchmarkResult&);
    const auto usual_of = [&](Amount amount) {
        std::vector<double> values;
        for (const BenchmarkResult& result : results)
            if (const auto value = amount(result)) values.push_back(*value);
        return yardstick(std::move(values)).value_or(0);
    };
    const Amount input = [](const BenchmarkResult& result) { return result.input_tokens; };
    const Amount output = [](const BenchmarkResult& result) { return result.output_tokens; };
    const Amount total = [](const BenchmarkResult& result) -> std::optional<double> {
        if (!result.input_tokens || !result.output_tokens) return std::nullopt;
        return *result.input_tokens + *result.output_tokens;
    };
    // A hundred answers that end a little earlier beside millions of prompt tokens are the same
    // work.
    const double all = usual_of(total);
    const auto compare = [&](const char* what, Amount amount) {
        const double usual = usual_of(amount);
        if (!(usual > 0)) return;
        const double tolerance =
            all > 0 && usual < small_part * all ? small_part_tolerance : work_tolerance;
        for (std::size_t i = 0; i < results.size(); ++i) {
            const auto value = amount(results[i]);
            if (!value || std::abs(*value / usual - 1) <= tolerance) continue;
            const std::string requests =
                results[i].successful_requests
                    ? " in " + figure_shown(*results[i].successful_requests) + " requests"
                    : "";
            add(found[i], {Verdict::suspect,
                           {{"equal_work", figure_shown(*value) + " " + what + requests,
                             figure_shown(usual) + " in the other runs",
                             "not comparable: this run did other work than those it is compared "
                             "with (other requests, or answers "
                             "that ended by themselves)"}}});
        }
    };
    compare("input tokens", input);
    compare("output tokens", output);
    return found;
}

}  // namespace servetune
