// SPDX-License-Identifier: Apache-2.0
#include "load/truth.hpp"

#include "support/http.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace servetune::benchmark {

double Truth::mean_first_token_seconds() const {
    double sum = 0;
    for (const TrueRequest& request : requests) sum += request.sent.front() - request.received;
    return sum / double(requests.size());
}

double Truth::mean_gap_seconds() const {
    double sum = 0, count = 0;
    for (const TrueRequest& request : requests) {
        sum += request.sent.back() - request.sent.front();
        count += double(request.sent.size() - 1);
    }
    return sum / count;
}

std::string beside_this_program(const std::string& name) {
    return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

Server::Server(const std::string& program, const std::string& pace) {
    const std::vector<std::string> said{program, "--start-scale",    "100000", "--log-level",
                                        "error", "--pace",           pace,     "vllm",
                                        "serve", std::string(model), "--port", "0"};
    std::vector<char*> words;
    for (const std::string& word : said) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
    pid_ = fork();
    if (pid_ == 0) {
        dup2(ends[1], 1);
        close(ends[0]), close(ends[1]);
        cpu_set_t first;
        CPU_ZERO(&first);
        CPU_SET(0, &first);
        sched_setaffinity(0, sizeof first, &first);
        execv(words[0], words.data());
        _exit(127);
    }
    close(ends[1]);
    for (char byte = 0; read(ends[0], &byte, 1) == 1 && byte != '\n';) url_ += byte;
    close(ends[0]);
    url_.erase(0, std::min(url_.size(), url_.find("http://")));
    if (!url_.starts_with("http://")) {
        if (pid_ > 0) waitpid(pid_, nullptr, 0);
        throw std::runtime_error("cannot start " + program);
    }
}

Server::~Server() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
}

Truth Server::truth() const {
    const auto port = static_cast<std::uint16_t>(std::stoul(url_.substr(url_.rfind(':') + 1)));
    const auto asked = [&](const char* path) {
        return nlohmann::json::parse(test::http(port, path).body);
    };
    Truth result;
    result.late_p99_seconds = asked("/simengine").at("late_p99_seconds").get<double>();
    for (const auto& request : asked("/simengine/requests")) {
        TrueRequest& one = result.requests.emplace_back();
        one.label = request.at("label").get<std::string>();
        one.received = double(request.at("received_ns").get<std::int64_t>()) / 1e9;
        for (const auto& stamp : request.at("sent_ns"))
            one.sent.push_back(double(stamp.get<std::int64_t>()) / 1e9);
        if (one.sent.empty()) result.requests.pop_back();
    }
    return result;
}

}  // namespace servetune::benchmark
