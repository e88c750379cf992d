// SPDX-License-Identifier: Apache-2.0
#include "deploy/kubectl.hpp"

#include "deploy/client_calls.hpp"
#include "deploy/stamped_log.hpp"
#include "support/script.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

/// What a log has printed from readings of it.
class Readings {
public:
    void again(const std::string& bytes, std::size_t piece = 7) {
        log.begin();
        for (std::size_t at = 0; at < bytes.size(); at += piece)
            log.take(std::string_view(bytes).substr(at, piece));
    }
    std::string printed{};
    StampedLog log{[this](std::string_view line) { printed += std::string(line) + "|"; }};
};

std::string stamped(const std::string& second, const std::string& line) {
    return "2026-11-26T15:02:" + second + "Z " + line + "\n";
}

}  // namespace

TEST_CASE("kubectl: what may be otherwise in a moment is told from what stays") {
    for (const char* temporary :
         {"Error from server (Forbidden): pods is forbidden: User \"u\" cannot list resource "
          "\"pods\"",
          "Error from server (NotFound): the server could not find the requested resource",
          "error: unexpected EOF",
          "The connection to the server 192.0.2.1:6443 was refused - did you specify the right "
          "host or port?",
          "error: the server doesn't have a resource type \"jobs\"",
          "error: You must be logged in to the server (Unauthorized)",
          "Unable to connect to the server: net/http: TLS handshake timeout"})
        CHECK(is_temporary_complaint(temporary));
    for (const char* lasting :
         {"Error from server (NotFound): pods \"x\" not found",
          "Error from server (AlreadyExists): jobs.batch \"x\" already exists",
          "The Job \"x\" is invalid: spec.template.spec.containers[0].image: Required value",
          "Error from server (Forbidden): jobs.batch \"x\" is forbidden: exceeded quota: q, "
          "requested: count/jobs.batch=1",
          "error: context \"nobody\" does not exist"})
        CHECK_FALSE(is_temporary_complaint(lasting));
}

TEST_CASE("kubectl: what is temporary is asked again, the rest is not") {
    const TemporaryFolder folder;
    const std::string calls = (folder.path() / "calls").string();
    const auto answering = [&](const std::string& complaint) {
        return Kubectl(
            {script(folder, "echo \"$@\" >>" + calls + "\n[ \"$(wc -l <" + calls +
                                ")\" -gt 2 ] && cat && echo '{\"a\": 1}' && exit 0\n" +
                                "echo 'Warning: old' >&2\necho '" + complaint + "' >&2\nexit 1\n")
                 .string(),
             "--own=1"},
            "there", "mine");
    };
    const ClientCalls counted;
    const Kubectl restarted = answering("Error from server (Forbidden): x is forbidden");
    CHECK(restarted.ask({"create"}, "manifest ") == "manifest {\"a\": 1}\n");
    CHECK(counted.count() == 3);
    CHECK(restarted.json({"get", "x"}) == nlohmann::json{{"a", 1}});
    std::filesystem::remove(calls);
    const Kubectl wrong = answering("Error from server (Invalid): no");
    try {
        (void)wrong.ask({"create", "it"});
        FAIL("it was accepted");
    } catch (const KubectlError& error) {
        CHECK(std::string(error.what()) ==
              "kubectl create failed: Error from server (Invalid): no");
        CHECK_FALSE(error.temporary);
    }
    std::ifstream stream(calls);
    std::string line;
    std::getline(stream, line);
    CHECK(line == "--own=1 --context=there --namespace=mine create it --request-timeout=10s");
    CHECK_FALSE(std::getline(stream, line));  // once
}

TEST_CASE("kubectl: it gets the variables of its user and no mark of a trial") {
    const TemporaryFolder folder;
    setenv("SERVETUNE_GROUP", "1-2-3", 1);
    setenv("CLOUD_SECRET_KEY", "planted", 1);
    const Kubectl kubectl({script(folder, "echo \"$CLOUD_SECRET_KEY$SERVETUNE_GROUP\"\n").string()},
                          "", "");
    CHECK(kubectl.ask({"get"}) == "planted\n");
    unsetenv("SERVETUNE_GROUP");
    unsetenv("CLOUD_SECRET_KEY");
    CHECK_THROWS_WITH(
        Kubectl({"no-such-kubectl"}, "", "").ask({"get"}),
        "there is no program 'no-such-kubectl' in $PATH to start jobs of Kubernetes with");
}

TEST_CASE("kubectl: times of a log are read as RFC 3339 has them") {
    CHECK(nanoseconds_of("1970-01-01T00:00:01Z") == 1'000'000'000);
    CHECK(nanoseconds_of("2026-11-26T15:02:01.5Z") == 1'795'705'321'500'000'000);
    CHECK(nanoseconds_of("2026-11-26T15:02:01.123456789Z") == 1'795'705'321'123'456'789);
    CHECK(nanoseconds_of("2026-11-26T17:32:01.5+02:30") == 1'795'705'321'500'000'000);
    for (const char* none :
         {"", "unable", "2026-11-26", "2026-11-26T15:02:01", "2026-13-26T15:02:01Z",
          "2026-11-26 15:02:01Z", "2026-11-26T15:02:01.5", "2026-11-26T15:02:01+2:30"})
        CHECK_FALSE(nanoseconds_of(none));
}

TEST_CASE("kubectl: each line of a log is printed once, wherever readings of it break off") {
    const std::string all = stamped("01.1", "a") + stamped("01.1", "a") + stamped("01.1", "b") +
                            stamped("01.100000001", "") + stamped("02", "a") + stamped("04", "c") +
                            stamped("09.5", "last");
    for (std::size_t broken = 0; broken <= all.size(); ++broken) {
        Readings one;
        one.again(all.substr(0, broken));
        one.again(all);
        one.again(all);
        CHECK(one.printed == "a|a|b||a|c|last|");
    }
}

TEST_CASE("kubectl: a log goes on after a new file was begun, whose lines before are not there") {
    Readings one;
    one.again(stamped("01", "a") + stamped("05", "b") + stamped("05", "b"));
    CHECK(one.log.since() == "2026-11-26T15:02:03Z");
    one.again(stamped("05", "b") + stamped("06", "c"));  // the first of two was in the old file
    CHECK(one.printed == "a|b|b|c|");
}

TEST_CASE("kubectl: lines of two outputs may be stamped out of order") {
    Readings one;
    one.again(stamped("05", "out 1") + stamped("04.9", "err 1"));
    one.again(stamped("05", "out 1") + stamped("04.9", "err 1") + stamped("04.95", "err 2") +
              stamped("06", "out 2"));
    CHECK(one.printed == "out 1|err 1|err 2|out 2|");
}

TEST_CASE("kubectl: an unfinished line is one at the end, and words of the node are none") {
    Readings one;
    one.again("unable to retrieve container logs for containerd://x\n" + stamped("01", "a") +
              "2026-11-26T15:02:02Z no line fe");
    CHECK(one.printed == "a|");
    one.log.finish();
    CHECK(one.printed == "a|no line fe|");
    CHECK(one.log.complaint() == "unable to retrieve container logs for containerd://x");
}
