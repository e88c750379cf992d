// SPDX-License-Identifier: Apache-2.0
#include "support/stream_server.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

namespace {

using servetune::test::StreamServerOptions;

constexpr const char* usage =
    "usage: stream_server [--port N] [--threads N] [--core N] [--pace exact|staggered|lockstep] "
    "[--tokens N] [--behave WORDS] [--for "
    "SECONDS]\n"
    "Serves on the loopback until --for SECONDS (default 600) are over or a signal comes; prints "
    "its address.\n"
    "WORDS, separated by commas; also per request, in the header X-Behave or in the model's name "
    "after 'behave:':\n";

StreamServerOptions::Pace pace_of(const std::string& name) {
    if (name == "exact") return StreamServerOptions::Pace::exact;
    if (name == "staggered") return StreamServerOptions::Pace::staggered;
    if (name == "lockstep") return StreamServerOptions::Pace::lockstep;
    throw std::invalid_argument("--pace wants exact, staggered or lockstep, got '" + name + "'");
}

int serve(int count, char** words) {
    StreamServerOptions options;
    options.keep_requests = false;
    double seconds = 600;
    for (int i = 1; i < count; i += 2) {
        const std::string flag = words[i];
        if (flag == "--help" || i + 1 == count) {
            std::fputs((usage + servetune::test::describe_behaviour_words()).c_str(),
                       flag == "--help" ? stdout : stderr);
            return flag == "--help" ? 0 : 2;
        }
        const std::string value = words[i + 1];
        if (flag == "--port") options.port = static_cast<std::uint16_t>(std::stoul(value));
        else if (flag == "--threads") options.threads = std::stoul(value);
        else if (flag == "--core") options.core = std::stoi(value);
        else if (flag == "--pace") options.pace = pace_of(value);
        else if (flag == "--tokens") options.tokens = std::stoul(value);
        else if (flag == "--behave") options.behaviour = servetune::test::parse_behaviour(value);
        else if (flag == "--for") seconds = std::stod(value);
        else throw std::invalid_argument("unknown flag '" + flag + "'; see --help");
    }
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        files.rlim_cur = files.rlim_max, setrlimit(RLIMIT_NOFILE, &files);
    sigset_t ends;
    sigemptyset(&ends);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
    sigprocmask(SIG_BLOCK, &ends, nullptr);  // before the threads start: they inherit it
    prctl(PR_SET_PDEATHSIG, SIGTERM);        // nothing outlives its owner
    const servetune::test::StreamServer server(options);
    std::printf("%s\n", server.url().c_str());
    std::fflush(stdout);
    const auto whole = static_cast<time_t>(seconds);
    const timespec time{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
    sigtimedwait(&ends, nullptr, &time);
    return 0;
}

}  // namespace

int main(int count, char** words) {
    try {
        return serve(count, words);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "stream_server: %s\n", error.what());
        return 2;
    }
}
