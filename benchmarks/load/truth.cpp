// SPDX-License-Identifier: Apache-2.0
#include "load/truth.hpp"

#include "support/http.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace servetune::benchmark {

double Truth::mean_first_token_seconds() const {
    double sum = 0;
    for (const TrueRequest& request : requests) sum += request.sent.front() - request.received;
    return sum / static_cast<double>(requests.size());
}

double Truth::mean_gap_seconds() const {
    double sum = 0, count = 0;
    for (const TrueRequest& request : requests) {
        sum += request.sent.back() - request.sent.front();
        count += static_cast<double>(request.sent.size() - 1);
    }
    return sum / count;
}

std::string beside_this_program(const std::string& name) {
    return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

Server::Server(const std::string& program, const std::vector<std::string>& flags) {
    std::vector<char*> words{const_cast<char*>(program.c_str())};
    for (const std::string& flag : flags) words.push_back(const_cast<char*>(flag.c_str()));
    words.push_back(nullptr);
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
    pid_ = fork();
    if (pid_ == 0) {
        dup2(ends[1], 1);
        close(ends[0]), close(ends[1]);
        execv(words[0], words.data());
        _exit(127);
    }
    close(ends[1]);
    for (char byte = 0; read(ends[0], &byte, 1) == 1 && byte != '\n';) url_ += byte;
    close(ends[0]);
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
    const nlohmann::json document = nlohmann::json::parse(test::http(port, "/truth").body);
    Truth result;
    result.late_p99_seconds = document.at("late_p99_seconds").get<double>();
    for (const auto& request : document.at("requests")) {
        TrueRequest& one = result.requests.emplace_back();
        one.label = request.at("label").get<std::string>();
        one.received = static_cast<double>(request.at("received_ns").get<std::int64_t>()) / 1e9;
        for (const auto& stamp : request.at("chunk_sent_ns"))
            one.sent.push_back(static_cast<double>(stamp.get<std::int64_t>()) / 1e9);
        if (one.sent.empty()) result.requests.pop_back();
    }
    return result;
}

}  // namespace servetune::benchmark
