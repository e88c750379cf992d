// SPDX-License-Identifier: Apache-2.0
#include "support/made_up_runs.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>
#include <vector>

namespace servetune::test {
namespace {

struct Request {
    double arrives = 0;
    double prompt = 0;  ///< tokens
    double answer = 0;
    double prompt_left = 0;
    double given = 0;
};

}  // namespace

LoadRun made_up_run(const MadeUpEngine& engine, const MadeUpLoad& load, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    std::exponential_distribution<double> gap(1);
    const bool closed = load.arrival.kind == Arrival::Kind::concurrency;
    std::vector<Request> all(load.requests);
    double at = 0;
    for (Request& request : all) {
        const auto around = [&](double mean) {
            return std::max(1.0, std::round(mean * (1 + load.spread * (2 * uniform(random) - 1))));
        };
        request.prompt = request.prompt_left = around(load.prompt_tokens);
        request.answer = load.natural ? 1 + std::floor(gap(random) * load.answer_tokens)
                                      : around(load.answer_tokens);
        if (load.arrival.kind == Arrival::Kind::rate)
            request.arrives = at += gap(random) / load.arrival.requests_per_second;
    }
    LoadRun run;
    run.records.resize(all.size());
    const auto slow = std::size_t(std::lround(engine.slow_share * double(all.size())));
    std::size_t sent = 0;
    std::size_t ended = 0;
    std::deque<std::size_t> waiting;
    std::vector<std::size_t> running;
    double now = 0;
    double drift = normal(random);
    const auto send = [&](double when) {
        RequestRecord& record = run.records[sent];
        record.index = sent;
        record.scheduled = record.sent = when;
        waiting.push_back(sent++);
    };
    const std::size_t first =
        closed ? std::min<std::size_t>(std::size_t(load.arrival.in_flight), all.size())
               : all.size();
    if (load.arrival.kind != Arrival::Kind::rate)
        while (sent < first) send(0);
    while (ended < all.size()) {
        while (!closed && sent < all.size() && all[sent].arrives <= now) send(all[sent].arrives);
        if (waiting.empty() && running.empty()) {
            now = all[sent].arrives;
            continue;
        }
        auto budget = double(engine.prompt_tokens_a_step);
        const std::size_t decoding = running.size();
        double prompts = 0;
        while (!waiting.empty() && budget > 0 && running.size() < engine.most_requests) {
            Request& request = all[waiting.front()];
            const double piece = std::min(budget, request.prompt_left);
            budget -= piece;
            prompts += piece;
            request.prompt_left -= piece;
            if (request.prompt_left > 0) break;
            running.push_back(waiting.front());
            waiting.pop_front();
        }
        drift = engine.noise_stays * drift +
                std::sqrt(1 - engine.noise_stays * engine.noise_stays) * normal(random);
        const double seconds =
            (engine.step_seconds + engine.seconds_per_request * double(decoding) +
             engine.seconds_per_prompt_token * prompts) *
            std::exp(engine.noise * drift);
        now += seconds * (ended < slow ? engine.slow_times : 1);
        std::size_t kept = 0;
        std::size_t free = 0;
        for (const std::size_t i : running) {
            RequestRecord& record = run.records[i];
            if (!record.first_token) record.first_token = now;
            else record.gaps.push_back(static_cast<float>(now - *record.last_token));
            record.last_token = now;
            ++record.chunks;
            if (++all[i].given < all[i].answer) {
                running[kept++] = i;
                continue;
            }
            record.end = RequestEnd::success;
            record.done = now;
            record.input_tokens = std::int64_t(all[i].prompt);
            record.output_tokens = std::int64_t(all[i].answer);
            ++ended;
            ++free;
        }
        running.resize(kept);
        while (closed && free > 0 && sent < all.size()) {
            send(now);
            --free;
        }
    }
    run.duration_seconds = now;
    return run;
}

}  // namespace servetune::test
