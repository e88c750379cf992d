// SPDX-License-Identifier: Apache-2.0
#include <servetune/detail/load/load_generator.hpp>

#include <cstdio>

int main() {
    using namespace servetune;
    // Nothing listens on port 1: a failed request is a record with a reason.
    Endpoint nobody{.url = "http://127.0.0.1:1", .model = "none"};
    const PlannedRequest request{};
    const LoadRun run =
        generate_load(nobody, std::span(&request, 1), Arrival{}, {.warm_connections = false});
    std::puts(run.records.front().error.c_str());
    return run.records.size() == 1 && !run.records.front().succeeded() ? 0 : 1;
}
