// SPDX-License-Identifier: Apache-2.0
// Ctrl-Z and fg in the middle of a load test.
#include "support/in_child.hpp"
#include "support/stand_in.hpp"
#include "support/test.hpp"

#include "servetune/load_test.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>

using namespace servetune;
using namespace servetune::test;

namespace {

void wait_milliseconds(int time) { usleep(static_cast<useconds_t>(time) * 1000); }

/// Stops this process after 150 ms for 800 ms.
void stop_a_while() {
    const pid_t here = getpid();
    if (fork() != 0) return;
    wait_milliseconds(150);
    kill(here, SIGSTOP);
    wait_milliseconds(800);
    kill(here, SIGCONT);
    _exit(0);
}

}  // namespace

TEST_CASE("a load test that is stopped for a while says so, and blames no server") {
    const StandIn server({.first = 0.01, .gap = 0.005});
    // Longer than the time after which an answer has stalled: what came meanwhile lies in the
    // sockets.
    const std::string said = in_child([&] {
        LoadTest test{.endpoint = {server.url(), "m"}};
        test.workload.name = "w";
        test.workload.dataset.input_tokens = 8;
        test.workload.dataset.output_tokens = 20;
        test.workload.requests = 60;
        test.workload.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = 6};
        test.options.stall_timeout_seconds = 0.5;
        test.handshake = Handshake{};
        test.calibration = Calibration{};
        stop_a_while();
        const LoadTestResult result = run_load_test(test);
        std::string text = "failed " +
                           std::to_string(static_cast<int>(
                               result.statistics.result.failed_requests.value_or(-1))) +
                           ", " + std::string(name_in(verdicts, result.validity.verdict));
        if (result.statistics.result.client.loop_lag_max.value_or(0) > 0.7) text += ", stood still";
        for (const Finding& finding : result.validity.findings)
            if (finding.id == "client_stopped") text += ", " + finding.id;
        return text;
    });
    CHECK(said == "failed 0, unsound, stood still, client_stopped");
}
