// SPDX-License-Identifier: Apache-2.0
// What a trial costs beside its engine's own time: from asking for it to the first request of its
// load, and from the word to stop until nothing of the engine is left. The engine is simengine,
// ready as soon as it has read its catalogue.
#include "support/temporary_folder.hpp"

#include "servetune/catalogue.hpp"
#include "servetune/deployment.hpp"
#include "servetune/detail/load/load_generator.hpp"
#include "servetune/error.hpp"

#include <time.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace servetune::benchmark {
namespace {

const std::string model = "Qwen/Qwen3-8B";

double now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);  // what LoadRun has
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Times {
    double ready, first_request, stopped;
};

Times one_trial(const Engine& engine, const std::filesystem::path& folder) {
    const double asked = now();
    const ReservedPort port;
    const Command command{{SIMENGINE_PROGRAM, "--start-scale", "100000", "--time-scale", "100",
                           "vllm", "serve", model, "--port", std::to_string(port.number())}};
    Deployment deployment(engine, command, model, port, {.folder = folder / "trial"});
    if (const auto& failure = deployment.started().failure) throw UsageError(failure->message);
    const double ready = now();
    const std::vector<PlannedRequest> plan(4, {.text = "the in to of", .output_tokens = 4});
    const LoadRun run =
        generate_load(deployment.endpoint(), plan, {.kind = Arrival::Kind::all_at_once});
    const double sent = run.started_at_monotonic_seconds + run.records.front().sent;
    const double told = now();
    deployment.stop();
    return {ready - asked, sent - asked, now() - told};
}

/// simengine's own part of `ready`: until it has said what is wrong with its words, which it does
/// after reading its catalogue.
double own_start(const std::filesystem::path& folder) {
    const double begin = now();
    Process process({.argv = {SIMENGINE_PROGRAM, "--fault", "exit_at_once", "vllm", "serve", model},
                     .folder = folder / "own"});
    (void)process.wait(std::chrono::seconds(10));
    return now() - begin;
}

void print(const char* what, std::vector<double> seconds) {
    std::sort(seconds.begin(), seconds.end());
    fmt::print("{:34} {:>8.1f} {:>8.1f}\n", what, 1000 * seconds[seconds.size() / 2],
               1000 * seconds.back());
}

void run(std::size_t trials) {
    const test::TemporaryFolder folder;
    const std::vector<Engine> engines = Catalogue{SERVETUNE_SOURCE "/search_spaces"}.engines();
    const auto vllm = std::find_if(engines.begin(), engines.end(),
                                   [](const Engine& engine) { return engine.name == "vllm"; });
    std::vector<double> own, ready, first_request, stopped;
    for (std::size_t i = 0; i < trials; ++i) {
        own.push_back(own_start(folder.path()));
        const Times times = one_trial(*vllm, folder.path());
        ready.push_back(times.ready);
        first_request.push_back(times.first_request);
        stopped.push_back(times.stopped);
    }
    fmt::print("{:34} {:>8} {:>8}\n", fmt::format("ms, {} trials", trials), "median", "most");
    print("simengine alone, to its first word", own);
    print("asked to ready", ready);
    print("asked to the first load request", first_request);
    print("told to stop to nothing left", stopped);
}

}  // namespace
}  // namespace servetune::benchmark

int main(int argc, char** argv) {
    try {
        servetune::benchmark::run(argc > 1 ? std::stoul(argv[1]) : 30);
    } catch (const std::exception& error) {
        fmt::print(stderr, "deployment_benchmark: {}\n", error.what());
        return 1;
    }
}
