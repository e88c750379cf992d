// SPDX-License-Identifier: Apache-2.0
#include "watch_state.hpp"

#include "prometheus_text.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "servetune/outcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr std::array<std::pair<WatchVerdict, std::string_view>, 4> watch_verdicts{
    {{WatchVerdict::as_recommended, "as_recommended"},
     {WatchVerdict::tune_again, "tune_again"},
     {WatchVerdict::slower, "slower"},
     {WatchVerdict::undecided, "undecided"}}};

OrderedJson or_null(const std::optional<double>& value) {
    return value ? OrderedJson(*value) : OrderedJson();
}

std::string or_dash(const std::optional<double>& value, double factor = 1) {
    if (!value) return "-";
    constexpr double whole_from = 100;
    return *value * factor >= whole_from ? fixed_text(*value * factor, 0)
                                         : significant_text(*value * factor, 3);
}

/// Shown name, name in the window, name in JSON.
constexpr std::array<std::array<const char*, 3>, 4> times{
    {{"time to first token", "first_token_seconds", "time_to_first_token"},
     {"gap between tokens", "token_gap_seconds", "inter_token_latency"},
     {"time per output token", "per_token_seconds", "time_per_output_token"},
     {"latency", "latency_seconds", "latency"}}};

std::string quantile_text(const Histogram& histogram, double q) {
    const auto found = quantile_of(histogram, q);
    if (!found) return "-";
    if (!found->high) return "above " + seconds_text(found->low);
    return fmt::format("{} ({} to {})", seconds_text(found->value), significant_text(found->low, 3),
                       significant_text(*found->high, 3));
}

OrderedJson quantile_json(const Histogram& histogram, double q) {
    const auto found = quantile_of(histogram, q);
    if (!found) return {};
    return {{"value", found->value}, {"low", found->low}, {"high", or_null(found->high)}};
}

std::vector<const JudgedTrait*> all_judged(const WatchState& state) {
    std::vector<const JudgedTrait*> result;
    for (const JudgedTrait& trait : state.traits) result.push_back(&trait);
    if (!state.speed.name.empty()) result.push_back(&state.speed);
    return result;
}

std::string names_that_are(const std::vector<JudgedTrait>& traits, Likeness likeness) {
    std::string result;
    for (const JudgedTrait& trait : traits)
        if (trait.likeness == likeness) result += (result.empty() ? "" : ", ") + trait.name;
    return result;
}

std::string trait_text(const JudgedTrait& trait) {
    std::string interval;
    if (trait.low && trait.high)
        interval = fmt::format("{} to {}", significant_text(*trait.low, 3),
                               significant_text(*trait.high, 3));
    return fmt::format("  {:<44} {:>9} {:>9}  {:<16} {}: {}\n", trait.name, or_dash(trait.study),
                       or_dash(trait.now), interval, name_in(likenesses, trait.likeness),
                       trait.because);
}

}  // namespace

std::string_view name_of(WatchVerdict verdict) { return name_in(watch_verdicts, verdict); }

WatchVerdict WatchState::verdict() const {
    const Likeness traffic = likeness_of(traits);
    if (traffic == Likeness::changed) return WatchVerdict::tune_again;
    if (speed.likeness == Likeness::changed) return WatchVerdict::slower;
    if (traffic == Likeness::undecided || speed.likeness == Likeness::undecided)
        return WatchVerdict::undecided;
    return WatchVerdict::as_recommended;
}

std::string WatchState::verdict_text() const {
    switch (verdict()) {
        case WatchVerdict::tune_again:
            return "Tune again: the traffic is not the study's any more (" +
                   names_that_are(traits, Likeness::changed) + ").";
        case WatchVerdict::slower:
            return "Slower than the study measured, under the same traffic: look for another "
                   "version, other flags or a throttled device "
                   "(autotune bench compares), before a new study.";
        case WatchVerdict::as_recommended: {
            const std::string unknown = names_that_are(traits, Likeness::not_known);
            return "As recommended: the traffic is that of the study" +
                   (unknown.empty() ? "." : ", as far as it is known (not: " + unknown + ").");
        }
        case WatchVerdict::undecided: break;
    }
    for (const JudgedTrait* trait : all_judged(*this))
        if (trait->likeness == Likeness::undecided)
            return "Inconclusive, because of " + trait->name + ": " + trait->because +
                   ". Watch longer.";
    return "Inconclusive, because neither the study nor the page says anything of the traffic that "
           "can be compared.";
}

std::string window_line(const WatchState& state, std::string_view clock) {
    const ServerWindow& last = state.last;
    const auto requests = last.requests();
    return fmt::format(
        "{}  {} requests/s  prompt {} output {} tokens/s  running {} waiting {}  cache {} % full, "
        "{} % hits  preempted {}  {}\n",
        clock, or_dash(requests ? std::optional(*requests / last.seconds) : std::nullopt),
        or_dash(last.per_second("prompt_tokens")), or_dash(last.per_second("generated_tokens")),
        or_dash(last.gauge("running_requests")), or_dash(last.gauge("waiting_requests")),
        or_dash(last.gauge("cache_used_share"), 100), or_dash(last.hit_share(), 100),
        or_dash(last.counter("preemptions")), name_of(state.verdict()));
}

std::string watch_text(const WatchState& state, const WatchedStudy& study) {
    const auto requests = state.whole.requests();
    std::string out =
        fmt::format("{} of {} in {}",
                    requests ? counted_text(static_cast<std::size_t>(*requests), "request")
                             : "requests, which are not counted,",
                    study.engine->name, seconds_text(state.whole.seconds));
    if (state.failed > 0) out += ", " + counted_text(state.failed, "page") + " not read";
    if (state.restarts > 0) out += ", the server restarted " + counted_text(state.restarts, "time");
    out += "\n";
    bool any = false;
    for (const auto& [shown, name, json] : times)
        if (const Histogram* histogram = state.whole.histogram(name)) {
            out += fmt::format("  {:<22} p50 {}  p95 {}  p99 {}  mean {}\n", shown,
                               quantile_text(*histogram, 0.5), quantile_text(*histogram, 0.95),
                               quantile_text(*histogram, 0.99), seconds_text(histogram->mean()));
            any = true;
        }
    out += any ? "  (in brackets: the bucket, which is all that the page knows of a percentile)\n"
               : "  no latencies: no request has ended, or the page has no histograms\n";
    out += fmt::format("\n  {:<44} {:>9} {:>9}  {:<16}\n", "against the study", "study", "now",
                       "99 % interval");
    for (const JudgedTrait* trait : all_judged(state)) out += trait_text(*trait);
    out += fmt::format(
        "  (the interval is of now / study, of a share now - study; margins: a factor of {}, of "
        "the load {}, of a share {})\n",
        1 + TrafficJudge::margin, 1 + TrafficJudge::load_margin, TrafficJudge::share_margin);
    for (const std::string& note : study.notes) out += "  note: " + note + "\n";
    return out + "\n" + state.verdict_text() + "\n";
}

nlohmann::ordered_json window_json(const WatchState& state) {
    const ServerWindow& last = state.last;
    const auto requests = last.requests();
    OrderedJson result{{"seconds", last.seconds},
                       {"requests_per_second",
                        or_null(requests ? std::optional(*requests / last.seconds) : std::nullopt)},
                       {"prompt_tokens_per_second", or_null(last.per_second("prompt_tokens"))},
                       {"output_tokens_per_second", or_null(last.per_second("generated_tokens"))},
                       {"running_requests", or_null(last.gauge("running_requests"))},
                       {"waiting_requests", or_null(last.gauge("waiting_requests"))},
                       {"cache_used_share", or_null(last.gauge("cache_used_share"))},
                       {"prefix_hit_share", or_null(last.hit_share())},
                       {"preemptions", or_null(last.counter("preemptions"))}};
    for (const auto& [shown, name, json] : times) {
        result[json] = nullptr;
        if (const Histogram* histogram = last.histogram(name))
            result[json] = {{"mean", histogram->mean()},
                            {"p50", quantile_json(*histogram, 0.5)},
                            {"p95", quantile_json(*histogram, 0.95)},
                            {"p99", quantile_json(*histogram, 0.99)}};
    }
    result["verdict"] = name_of(state.verdict());
    return result;
}

nlohmann::ordered_json verdict_json(const WatchState& state) {
    OrderedJson traits = OrderedJson::array();
    for (const JudgedTrait* trait : all_judged(state))
        traits.push_back({{"name", trait->name},
                          {"likeness", std::string(name_in(likenesses, trait->likeness))},
                          {"study", or_null(trait->study)},
                          {"now", or_null(trait->now)},
                          {"low", or_null(trait->low)},
                          {"high", or_null(trait->high)},
                          {"because", trait->because}});
    return {{"verdict", name_of(state.verdict())}, {"text", state.verdict_text()},
            {"seconds", state.whole.seconds},      {"requests", or_null(state.whole.requests())},
            {"readings", state.readings},          {"failed", state.failed},
            {"restarts", state.restarts},          {"traits", traits}};
}

std::string watch_metrics(const WatchState& state, const std::string& study) {
    PrometheusText out(study);
    out.family("watch_verdict", "gauge", "1 for what the watch comes to.");
    for (const auto& [verdict, name] : watch_verdicts)
        out.sample("watch_verdict", fmt::format("verdict=\"{}\"", name),
                   state.verdict() == verdict ? 1 : 0);
    out.family("watch_trait", "gauge",
               "A trait of the traffic or the speed now, over the study's; of a share the "
               "difference. With its 99 % interval.");
    for (const JudgedTrait* trait : all_judged(state)) {
        if (!trait->low || !trait->high || !trait->now || !trait->study) continue;
        const bool is_share = trait->name.starts_with("share");
        const std::string labels = fmt::format("trait=\"{}\",bound=", trait->name);
        out.sample("watch_trait", labels + "\"value\"",
                   is_share ? *trait->now - *trait->study : *trait->now / *trait->study);
        out.sample("watch_trait", labels + "\"low\"", *trait->low);
        out.sample("watch_trait", labels + "\"high\"", *trait->high);
    }
    out.family("watch_readings_total", "counter", "Pages of the server that were read.");
    out.sample("watch_readings_total", "", static_cast<double>(state.readings));
    out.family("watch_failed_readings_total", "counter", "Pages that could not be read.");
    out.sample("watch_failed_readings_total", "", static_cast<double>(state.failed));
    out.family("watch_restarts_total", "counter", "Restarts of the server that the watch saw.");
    out.sample("watch_restarts_total", "", static_cast<double>(state.restarts));
    return std::move(out).text();
}

}  // namespace autotune
