// SPDX-License-Identifier: Apache-2.0
#include "deploy/restart_policy.hpp"

#include "support/test.hpp"

#include <cstddef>

using namespace servetune;

TEST_CASE("restarts: pauses double from a second, and after the last restart it is given up") {
    RestartPolicy policy(4);
    for (const double pause : {1.0, 2.0, 4.0, 8.0}) CHECK(policy.fell(0) == pause);
    CHECK_FALSE(policy.fell(0).has_value());
    CHECK_FALSE(RestartPolicy(0).fell(0).has_value());
    RestartPolicy patient(1000);
    for (int i = 0; i < 6; ++i) (void)patient.fell(0);
    CHECK(patient.fell(0) == 60.0);  // 64 would come
}

TEST_CASE("restarts: an hour of service makes up for one fall, minutes of it do not") {
    RestartPolicy good(4);
    for (int i = 0; i < 100; ++i) CHECK(good.fell(3600) == 1.0);
    RestartPolicy bad(4);
    std::size_t falls = 1;
    while (bad.fell(900)) ++falls;  // each quarter of an hour
    CHECK(falls == 6);              // 1, 1.75, 2.5, 3.25, 4, 4.75 > 4
}
