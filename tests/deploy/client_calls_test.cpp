// SPDX-License-Identifier: Apache-2.0
#include "support/in_child.hpp"
#include "support/test.hpp"

#include "deploy/client_calls.hpp"

#include <cstdlib>
#include <filesystem>

using namespace servetune;
using namespace servetune::test;

TEST_CASE("client calls: those of this process and of its children count, once somebody counts") {
    ClientCalls::add_one();
    std::filesystem::path file;
    {
        const ClientCalls calls;
        CHECK(calls.count() == 0);
        ClientCalls::add_one();
        CHECK(in_child([] {
                  ClientCalls::add_one();
                  return std::string("done");
              }) == "done");
        CHECK(calls.count() == 2);
        file = std::getenv("SERVETUNE_CALLS");
        CHECK(std::filesystem::exists(file));
    }
    CHECK_FALSE(std::filesystem::exists(file));
    ClientCalls::add_one();
    CHECK_FALSE(std::filesystem::exists(file));
}
