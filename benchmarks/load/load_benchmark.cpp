// SPDX-License-Identifier: Apache-2.0
// What the load generator measures, against what simengine at a known pace knows that it sent.
// Server and generator have a core each. benchmarks/README.md says what the columns mean.
#include "load/peers.hpp"
#include "load/truth.hpp"

#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/load_generator.hpp"

#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace servetune::benchmark {

namespace {

struct Case {
    std::string name;
    std::size_t streams = 0;
    double tokens_per_second = 50;  ///< of each stream
    std::string pace = "staggered";
    double seconds = 8;
};

/// The first four are the sizes of interest at 50 tok/s; 4096 streams at 12.5 tok/s offer what 1024
/// do at 50.
const std::vector<Case>& cases() {
    static const std::vector<Case> all{
        {"64", 64},
        {"256", 256},
        {"1024", 1024},
        {"1024 lockstep", 1024, 50, "lockstep"},
        {"4096 at 12.5", 4096, 12.5},
        {"burst of 1024", 1024, 4, "staggered", 4},  // 16 tokens each: the start is what counts
        {"60 000 tok/s", 1200, 50},
    };
    return all;
}

/// One run's figures, in the order of the table.
using Figures = std::vector<std::pair<std::string, double>>;

double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? std::nan("") : sum / double(values.size());
}

double quantile(std::vector<double>& values, double share) {
    if (values.empty()) return std::nan("");
    const auto at =
        std::ptrdiff_t(std::min(share * double(values.size()), double(values.size() - 1)));
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values[std::size_t(at)];
}

double processor_seconds() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return double(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           double(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/// A line of /proc/self/status, in bytes.
double memory_bytes(const std::string& line) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (double kilobytes = 0; word == line + ":" && status >> kilobytes)
            return kilobytes * 1024;
    return 0;
}

void pin(int core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(std::size_t(core), &cores);
    if (sched_setaffinity(0, sizeof cores, &cores) != 0)
        throw std::runtime_error("cannot run on core " + std::to_string(core) + " only");
}

/// Compares each token's stamp of the client with the server's.
struct Comparison {
    std::vector<double> first_token_error, send_lag, receive_lag, gaps, gap_error;
    std::size_t failed = 0, coalesced = 0;
};

Comparison compare(const LoadRun& run, const Truth& truth) {
    std::unordered_map<std::string, const TrueRequest*> by_label;
    for (const TrueRequest& request : truth.requests) by_label.emplace(request.label, &request);
    Comparison result;
    for (const RequestRecord& record : run.records) {
        const auto* found = entry_in(by_label, "r" + std::to_string(record.index));
        if (!record.succeeded() || found == nullptr || !record.first_token ||
            (*found)->sent.size() != record.gaps.size() + 1) {
            ++result.failed;
            continue;
        }
        const TrueRequest& request = **found;
        result.coalesced += record.coalesced_chunks;
        result.first_token_error.push_back((*record.first_token - record.sent) -
                                           (request.sent.front() - request.received));
        result.send_lag.push_back(request.received - run.started_at_monotonic_seconds -
                                  record.scheduled);
        double stamp = run.started_at_monotonic_seconds + *record.first_token;
        result.receive_lag.push_back(stamp - request.sent.front());
        for (std::size_t i = 0; i < record.gaps.size(); ++i) {
            const auto gap = double(record.gaps[i]);
            stamp += gap;
            result.receive_lag.push_back(stamp - request.sent[i + 1]);
            result.gaps.push_back(gap);
            result.gap_error.push_back(std::abs(gap - (request.sent[i + 1] - request.sent[i])));
        }
    }
    return result;
}

Figures measure(const Case& test, const std::string& server_program) {
    const double gap = 1 / test.tokens_per_second;
    const Server server(server_program, "0.2," + std::to_string(gap) + "," + test.pace);
    std::vector<PlannedRequest> plan(test.streams);
    const auto tokens = std::int64_t(std::llround(test.seconds * test.tokens_per_second));
    for (std::size_t i = 0; i < plan.size(); ++i) {
        plan[i].text = "r" + std::to_string(i);
        for (int word = 1; word < 32; ++word) plan[i].text += " word";
        plan[i].output_tokens = tokens;
    }
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << 5;  // the peak of the memory begins anew
    const double before_bytes = memory_bytes("VmRSS"), before = processor_seconds();
    const LoadRun run = generate_load({server.url(), std::string(Server::model)}, plan,
                                      {.kind = Arrival::Kind::all_at_once}, {.ignore_eos = true});
    const double used = processor_seconds() - before, bytes = memory_bytes("VmHWM") - before_bytes;
    const Truth truth = server.truth();
    Comparison seen = compare(run, truth);

    const double sent = double(tokens) * double(test.streams),
                 of_good = 1 - double(seen.failed) / double(test.streams);
    const double milli = 1e3;
    double short_gaps = 0;
    for (const double value : seen.gaps) short_gaps += value < 0.001 ? 1 : 0;
    return {
        {"tok/s offered", double(test.streams) * test.tokens_per_second},
        {"tok/s", sent * of_good / run.duration_seconds},
        {"CPU %", 100 * used / run.duration_seconds},
        {"us/token", used / sent * 1e6},
        {"TTFT error mean", mean(seen.first_token_error) * milli},
        {"p99", quantile(seen.first_token_error, 0.99) * milli},
        {"send lag p50", quantile(seen.send_lag, 0.5) * milli},
        {"p99 ", quantile(seen.send_lag, 0.99) * milli},
        {"receive lag p50", quantile(seen.receive_lag, 0.5) * milli},
        {"mean", mean(seen.receive_lag) * milli},
        {"p99  ", quantile(seen.receive_lag, 0.99) * milli},
        {"ITL p50", quantile(seen.gaps, 0.5) * milli},
        {"p99   ", quantile(seen.gaps, 0.99) * milli},
        {"mean abs. ITL error", mean(seen.gap_error) * milli},
        {"ITL < 1 ms", seen.gaps.empty() ? std::nan("") : short_gaps / double(seen.gaps.size())},
        {"KB/stream", bytes / 1024 / double(test.streams)},
        {"server late p99", truth.late_p99_seconds * milli},
        {"failed", double(seen.failed)}};
}

/// The median of each figure over the runs.
Figures median(std::vector<Figures>& runs) {
    Figures result = runs.front();
    for (std::size_t i = 0; i < result.size(); ++i) {
        std::vector<double> values;
        for (const Figures& run : runs) values.push_back(run[i].second);
        result[i].second = quantile(values, 0.5);
    }
    return result;
}

int run(int count, char** words) {
    std::size_t runs = 5;
    std::string only, server, tokenizer;
    bool with_peers = false;
    for (int i = 1; i < count; ++i) {
        const std::string flag = words[i];
        const auto value = [&]() -> std::string {
            if (i + 1 == count) throw std::invalid_argument(flag + " wants a value");
            return words[++i];
        };
        if (flag == "--runs") runs = std::max<std::size_t>(1, std::stoul(value()));
        else if (flag == "--case") only = value();
        else if (flag == "--server") server = value();
        else if (flag == "--peers") with_peers = true;
        else if (flag == "--tokenizer") tokenizer = value();
        else {
            std::fprintf(stderr,
                         "usage: load_benchmark [--runs N] [--case NAME] [--server PROGRAM] "
                         "[--peers] [--tokenizer NAME]\ncases:");
            for (const Case& test : cases()) std::fprintf(stderr, " '%s'", test.name.c_str());
            std::fprintf(stderr, "\n");
            return 2;
        }
    }
    if (server.empty()) server = beside_this_program("simengine");
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        files.rlim_cur = files.rlim_max, setrlimit(RLIMIT_NOFILE, &files);
    pin(1);
    bool head = true;
    for (const Case& test : cases()) {
        if (!only.empty() && test.name != only) continue;
        std::vector<Figures> all;
        for (std::size_t i = 0; i < runs; ++i) all.push_back(measure(test, server));
        const Figures figures = median(all);
        std::string names = "| case |", line = "|---|", values = "| " + test.name + " |";
        for (const auto& [name, value] : figures) {
            char text[32];
            std::snprintf(text, sizeof text, " %.*f |",
                          value >= 100  ? 0
                          : value >= 10 ? 1
                                        : 3,
                          value);
            names += " " + name + " |", line += "---|", values += text;
        }
        if (std::exchange(head, false))
            std::printf("Times in ms. Medians of %zu runs.\n\n%s\n%s\n", runs, names.c_str(),
                        line.c_str());
        std::printf("%s\n", values.c_str());
        std::fflush(stdout);
    }
    if (head) throw std::invalid_argument("there is no case '" + only + "'");
    if (with_peers) compare_peers(server, tokenizer);
    return 0;
}

}  // namespace

}  // namespace servetune::benchmark

int main(int count, char** words) {
    try {
        return servetune::benchmark::run(count, words);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "load_benchmark: %s\n", error.what());
        return 1;
    }
}
