// SPDX-License-Identifier: Apache-2.0
#pragma once

// A dashboard of Ray that is none: an HTTP server on the loopback that knows the jobs REST API as
// Ray 2.60.0 was seen to answer it, and runs jobs as processes of this machine.

#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/host/process.hpp"
#include "support/http.hpp"
#include "support/temporary_folder.hpp"

#include <nlohmann/json.hpp>

#include <poll.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace servetune::test {

class RayDashboard {
public:
    explicit RayDashboard(std::string token = "") : token_(std::move(token)) {
        sockaddr_in address = loopback(0);
        socklen_t size = sizeof address;
        if (bind(server_.id(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
            listen(server_.id(), 64) != 0 ||
            getsockname(server_.id(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
            throw std::runtime_error("the dashboard of the test cannot listen");
        port_ = ntohs(address.sin_port);
        thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
    }
    ~RayDashboard() {
        thread_.request_stop();
        thread_.join();
    }
    RayDashboard(const RayDashboard&) = delete;
    RayDashboard& operator=(const RayDashboard&) = delete;

    [[nodiscard]] std::string address() const {
        return "http://127.0.0.1:" + std::to_string(port_);
    }
    /// Jobs wait from now on, or no more.
    void hold(bool held) { held_ = held; }
    /// Nobody answers: connections are closed.
    void silent(bool is) { silent_ = is; }
    /// As after a restart of a head without a store.
    void forget_all() {
        const std::scoped_lock lock(mutex_);
        jobs_.clear();
    }
    /// Says of every job that its supervisor died; its process lives on.
    void lose_supervisors() {
        const std::scoped_lock lock(mutex_);
        for (auto& [id, job] : jobs_) job->lost = true;
    }
    /// Somebody stops every job.
    void stop_all() {
        const std::scoped_lock lock(mutex_);
        for (auto& [id, job] : jobs_) job->stop();
    }
    [[nodiscard]] std::size_t count() const {
        const std::scoped_lock lock(mutex_);
        return jobs_.size();
    }
    /// Without those that Ray only remembers.
    [[nodiscard]] std::size_t running() const {
        const std::scoped_lock lock(mutex_);
        return std::size_t(count_if(jobs_, [](const auto& one) {
            const std::string status = one.second->told().at("status");
            return status == "PENDING" || status == "RUNNING";
        }));
    }
    /// What was submitted last.
    [[nodiscard]] nlohmann::json last() const {
        const std::scoped_lock lock(mutex_);
        return last_;
    }
    std::atomic<std::size_t> log_requests = 0;

private:
    struct Job {
        explicit Job(nlohmann::json asked) : body(std::move(asked)) {}
        ~Job() {
            if (stopping.joinable()) stopping.join();  // one ends it
            else if (process) (void)process->end(std::chrono::milliseconds(0));
        }
        Job(const Job&) = delete;
        Job& operator=(const Job&) = delete;
        void begin(const std::string& log) {
            file = log;
            ProcessOptions options;
            options.argv = {"/bin/sh", "-c", body.at("entrypoint")};
            options.log = file + ".out";
            if (body.contains("runtime_env"))
                for (const auto& [name, value] : body["runtime_env"]["env_vars"].items())
                    options.environment[name] = value.get<std::string>();
            options.environment["RAY_ADDRESS"] = "192.0.2.1:6399";
            process = std::make_unique<Process>(options);
        }
        void stop() {
            stopped = true;
            if (!process || stopping.joinable()) return;
            const double patience =
                std::stod(body["runtime_env"]["env_vars"].value("RAY_JOB_STOP_WAIT_TIME_S", "3"));
            stopping = std::jthread([this, patience] {
                (void)process->end(std::chrono::milliseconds(static_cast<int>(patience * 1000)));
            });
        }
        [[nodiscard]] nlohmann::json told() const {
            nlohmann::json result{{"type", "SUBMISSION"},
                                  {"submission_id", body["submission_id"]},
                                  {"entrypoint", body["entrypoint"]},
                                  {"metadata", body.value("metadata", nlohmann::json())},
                                  {"message", "Job is currently running."},
                                  {"error_type", nullptr},
                                  {"driver_exit_code", nullptr},
                                  {"start_time", began * 1000},
                                  {"driver_agent_http_address", nullptr}};
            std::string status = process ? "RUNNING" : "PENDING";
            if (process) result["driver_agent_http_address"] = "http://127.0.0.1:52365";
            else
                result["message"] =
                    "Job has not started yet. It may be waiting for resources (CPUs, GPUs, memory, "
                    "custom resources) to become available.";
            if (lost) {
                status = "FAILED";
                result["error_type"] = "JOB_SUPERVISOR_ACTOR_DIED";
                result["message"] =
                    "Job supervisor actor died: The actor died unexpectedly before finishing this "
                    "task.\n\tclass_name: JobSupervisor";
            } else if (process && !process->running()) {
                const int code = process->exit_code().value_or(1);
                status = stopped ? "STOPPED" : code == 0 ? "SUCCEEDED" : "FAILED";
                if (!stopped) result["driver_exit_code"] = code > 128 ? 128 - code : code;
                if (status == "FAILED") result["error_type"] = "JOB_ENTRYPOINT_COMMAND_ERROR";
            } else if (!process && stopped) status = "STOPPED";
            result["status"] = status;
            return result;
        }
        [[nodiscard]] std::string log() const {
            std::ifstream stream(file + ".out", std::ios::binary);
            return "2026-11-28 05:04:58,183\tINFO job_manager.py:581 -- Runtime env is setting "
                   "up.\nRunning entrypoint for job " +
                   body["submission_id"].get<std::string>() + ": " +
                   body["entrypoint"].get<std::string>() + "\n" +
                   std::string(std::istreambuf_iterator<char>(stream), {});
        }
        nlohmann::json body;
        std::string file{};
        std::unique_ptr<Process> process{};
        bool stopped = false;
        bool lost = false;
        double began = double(std::time(nullptr));
        std::jthread stopping{};
    };

    void serve(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            {
                const std::scoped_lock lock(mutex_);
                for (auto& [id, job] : jobs_)
                    if (!job->process && !job->stopped && !held_)
                        job->begin((folder_.path() / id).string());
            }
            pollfd waiting{server_.id(), POLLIN, 0};
            if (poll(&waiting, 1, 20) != 1) continue;
            const int connection = accept4(server_.id(), nullptr, nullptr, SOCK_CLOEXEC);
            if (connection < 0) continue;
            if (!silent_) answer(connection);
            close(connection);
        }
    }

    void answer(int connection) {
        const timeval patience{5, 0};
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        std::string request;
        std::array<char, 65536> buffer{};
        std::size_t wanted = std::string::npos;
        while (request.size() < wanted) {
            const ssize_t got = recv(connection, buffer.data(), buffer.size(), 0);
            if (got <= 0) return;
            request.append(buffer.data(), std::size_t(got));
            const auto head = request.find("\r\n\r\n");
            if (head == std::string::npos) continue;
            const auto length = request.find("Content-Length: ");
            wanted = head + 4 + (length < head ? std::stoul(request.substr(length + 16)) : 0);
        }
        const std::string head = request.substr(0, request.find("\r\n\r\n"));
        const std::string method = head.substr(0, head.find(' '));
        const std::string path =
            head.substr(method.size() + 1, head.find(' ', method.size() + 1) - method.size() - 1);
        int status = 200;
        std::string body;
        if (!token_.empty() && path != "/api/version" &&
            (head + "\r\n").find("Authorization: Bearer " + token_ + "\r\n") == std::string::npos) {
            const bool given = head.find("Authorization: ") != std::string::npos;
            status = given ? 403 : 401;
            body = given ? "Forbidden: Invalid authentication token"
                         : "Unauthorized: Missing authentication token";
        } else {
            const std::scoped_lock lock(mutex_);
            std::tie(status, body) =
                answer_to(method, path, request.substr(request.find("\r\n\r\n") + 4));
        }
        const std::string all =
            "HTTP/1.1 " + std::to_string(status) +
            " x\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
            "\r\n\r\n" + body;
        for (std::size_t sent = 0; sent < all.size();) {
            const ssize_t count =
                send(connection, all.data() + sent, all.size() - sent, MSG_NOSIGNAL);
            if (count <= 0) return;
            sent += std::size_t(count);
        }
    }

    std::pair<int, std::string> answer_to(const std::string& method, const std::string& path,
                                          const std::string& body) {
        using Json = nlohmann::json;
        if (path == "/api/version")
            return {200, Json{{"version", "4"}, {"ray_version", "2.60.0"}}.dump()};
        if (path.starts_with("/nodes"))
            return {200, Json{{"data",
                               {{"summary",
                                 {{{"raylet",
                                    {{"state", "ALIVE"},
                                     {"nodeManagerAddress", "127.0.0.1"},
                                     {"resourcesTotal", {{"GPU", 2.0}, {"CPU", 2.0}}}}}}}}}}}
                             .dump()};
        const std::string jobs = "/api/jobs/";
        if (!path.starts_with(jobs)) return {404, "404: Not Found"};
        if (path == jobs && method == "POST") {
            const Json asked = Json::parse(body);
            const std::string id = asked.at("submission_id");
            if (jobs_.contains(id))
                return {500, "Traceback (most recent call last):\nRuntimeError: taken"};
            jobs_[id] = std::make_unique<Job>(asked);
            last_ = asked;
            return {200, Json{{"submission_id", id}}.dump()};
        }
        if (path == jobs) {
            Json all = Json::array();
            for (const auto& [id, job] : jobs_) all.push_back(job->told());
            return {200, all.dump()};
        }
        std::string id = path.substr(jobs.size());
        const std::string what = id.find('/') == std::string::npos ? "" : id.substr(id.find('/'));
        id.resize(id.size() - what.size());
        const auto found = jobs_.find(id);
        if (found == jobs_.end()) return {404, "Job " + id + " does not exist"};
        Job& job = *found->second;
        if (what == "/logs") {
            ++log_requests;
            return {200, Json{{"logs", job.log()}}.dump()};
        }
        if (what == "/stop") {
            job.stop();
            return {200, Json{{"stopped", true}}.dump()};
        }
        if (method == "DELETE") {
            const std::string status = job.told()["status"];
            if (status == "RUNNING" || status == "PENDING")
                return {500, "Traceback: it is not in a terminal state"};
            if (!job.lost) jobs_.erase(found);
            else kept_.push_back(std::move(found->second)), jobs_.erase(found);
            return {200, Json{{"deleted", true}}.dump()};
        }
        return {200, job.told().dump()};
    }

    const std::string token_;
    const TemporaryFolder folder_;
    Socket server_;
    std::uint16_t port_ = 0;
    std::atomic<bool> held_ = false, silent_ = false;
    mutable std::mutex mutex_{};
    std::map<std::string, std::unique_ptr<Job>> jobs_;
    std::vector<std::unique_ptr<Job>> kept_;  ///< Ray lost sight of them
    nlohmann::json last_;
    std::jthread thread_;
};

}  // namespace servetune::test
