// SPDX-License-Identifier: Apache-2.0
// What README.md says: no telemetry. strace sees every connection of autotune, whatever opens it.
#include "base/files.hpp"
#include "support/deployed_study.hpp"

#include <iostream>
#include <regex>
#include <set>

using namespace servetune;
using namespace servetune::test;

TEST_CASE("network: autotune connects to the servers that a study names, and to nobody else") {
    const DeployedStudy study;  // its engines serve on the loopback
    const auto addresses = [&](std::vector<std::string> words) {
        const TemporaryFolder folder;
        const fs::path calls = folder.path() / "calls";
        const std::vector<std::string> strace{
            "/usr/bin/env", "strace", "-f", "-e", "connect,sendto,sendmsg,sendmmsg", "-o", calls};
        words.insert(words.begin(), strace.begin(), strace.end());
        const Ran said = ran(words, folder.path());
        INFO(said.err);
        CHECK(said.code == 0);
        static const std::regex internet(R"re((?:inet_addr\(|AF_INET6, )"([^"]+)")re");
        const std::string text = read_file(calls);
        std::set<std::string> result;
        for (std::sregex_iterator at(text.begin(), text.end(), internet), end; at != end; ++at)
            result.insert((*at)[1]);
        return result;
    };
    if (ran({"/usr/bin/env", "strace", "true"}, study.folder()).code != 0) {
        std::cout << "skipped: there is no strace, or it may not trace here\n";
        return;
    }
    CHECK(addresses(study.words("run")) == std::set<std::string>{"127.0.0.1"});
    CHECK(addresses(study.words("report")).empty());
    // A model that no file here knows is looked up nowhere.
    CHECK(addresses({SERVETUNE_PROGRAM, "init", "--yes", "--engine=vllm", "--model=some/model",
                     "--hardware=h100-sxm", "--output=new.yaml"})
              .empty());
}
