// SPDX-License-Identifier: Apache-2.0
#include "host/environment.hpp"
#include "support/test.hpp"

using namespace servetune;
using namespace servetune::test;

TEST_CASE("processor: its model by the kernel's list, its architecture where that has none") {
    const TemporaryFolder proc;
    proc.write("cpuinfo",
               "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763 64-Core "
               "Processor\nflags\t: a b\nmodel name\t: other\n");
    CHECK(processor_text(proc.path()).ends_with(" x AMD EPYC 7763 64-Core Processor"));
    proc.write("cpuinfo", "processor\t: 0\nCPU part\t: 0xd0c\n");
    const std::string without = processor_text(proc.path());
    CHECK(has(without, " x "));
    CHECK_FALSE(without.ends_with(" x "));
}
