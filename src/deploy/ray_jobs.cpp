// SPDX-License-Identifier: Apache-2.0
#include "ray_jobs.hpp"

#include "base/nesting.hpp"
#include "load/http.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/error.hpp"

#include <chrono>
#include <cstdlib>
#include <thread>

namespace servetune {
namespace {

using Json = nlohmann::json;

constexpr const char* jobs_path = "/api/jobs/";
constexpr double answer_seconds =
    20;  // Ray itself waits 10 s for a node's agent (job_head.py, WAIT_AVAILABLE_AGENT_TIMEOUT)

std::string ray_text(const Json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double ray_number(const Json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end()) return 0;
    if (found->is_string()) return std::strtod(found->get<std::string>().c_str(), nullptr);
    return found->is_number() ? found->get<double>() : 0;
}

/// The host of `http://HOST:PORT`, without the brackets of IPv6.
std::string host_of(const std::string& url) {
    const auto begin = url.find("://");
    const auto end = url.rfind(':');
    if (begin == std::string::npos || end == std::string::npos || end < begin + 3) return {};
    std::string host = url.substr(begin + 3, end - begin - 3);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    return host;
}

RayJob ray_job_in(const Json& told) {
    RayJob job;
    job.id = ray_text(told, "submission_id");
    job.status = ray_text(told, "status");
    job.message = printable_line(ray_text(told, "message").substr(0, 500));
    job.error_type = ray_text(told, "error_type");
    job.host = host_of(ray_text(told, "driver_agent_http_address"));
    job.begun = ray_number(told, "start_time") / 1000;
    if (const auto code = told.find("driver_exit_code");
        code != told.end() && code->is_number_integer()) {
        const int value = code->get<int>();
        job.exit_code = value < 0 ? 128 - value : value;  // Python's form of a signal
    }
    if (const auto metadata = told.find("metadata");
        metadata != told.end() && metadata->is_object()) {
        job.label = ray_text(*metadata, "servetune");
        job.port = static_cast<int>(ray_number(*metadata, "servetune_port"));
        job.bound_seconds = ray_number(*metadata, "servetune_bound");
    }
    return job;
}

/// Why an answer is none of Ray's; empty: it is one. `known`: a further status that is one.
void check_answer(const Endpoint& server, const std::string& asked, const Reply& reply,
                  long known = 200) {
    if (reply.error.empty() && (reply.status == 200 || reply.status == known)) return;
    const std::string what = "Ray's dashboard " + server.url + ": " + asked + trouble_text(reply);
    if (reply.error.empty() && reply.status == 401)
        throw UsageError("Ray's dashboard " + server.url +
                         " wants a token (401): let `token_file` or `token_env` of `ray` name "
                         "where it is; `ray get-auth-token` prints it");
    if (reply.error.empty() && reply.status == 403)
        throw UsageError("Ray's dashboard " + server.url +
                         " refuses the token (403): compare what `token_file` or `token_env` of "
                         "`ray` names with `ray get-auth-token` there");
    throw IoError(what);
}

Json json_of(const Endpoint& server, const std::string& asked, const Reply& reply) {
    check_answer(server, asked, reply);
    Json told = shallow_json<Json>(reply.body);
    if (!told.is_structured())
        throw IoError(
            "Ray's dashboard " + server.url + ": " + asked +
            " is answered with what is no JSON: " + printable_line(reply.body.substr(0, 200)));
    return told;
}

/// The nodes that Ray tells of: `raylet` of each.
std::vector<Json> raylets_in(const Json& told) {
    std::vector<Json> result;
    const Json data = told.value("data", Json::object());
    const Json summary = data.is_object() ? data.value("summary", Json::array()) : Json::array();
    for (const Json& node : summary)
        if (node.is_object() && node.contains("raylet") && node["raylet"].is_object())
            result.push_back(node["raylet"]);
    return result;
}

}  // namespace

RayJobs::RayJobs(const std::string& address, const std::string& token) {
    server_.url = address;
    server_.api_key = token;
}

std::string RayJobs::version() const {
    const std::string asked = "GET /api/version";
    const Json told = json_of(server_, asked, get(server_, "/api/version", answer_seconds));
    const std::string result = told.is_object() ? ray_text(told, "ray_version") : "";
    if (result.empty())
        throw IoError(server_.url + " is no dashboard of Ray: " + asked +
                      " tells no `ray_version`");
    return result;
}

void RayJobs::submit(const Json& job) const {
    const Reply reply = post(server_, jobs_path, job.dump(), answer_seconds);
    // What was sent and not answered may have arrived, and a name is taken once.
    if (reply.error.empty() && reply.status != 200 && reply.status != 401 && reply.status != 403 &&
        find(job.at("submission_id")))
        return;
    check_answer(server_, "POST /api/jobs/", reply);
}

std::optional<RayJob> RayJobs::find(const std::string& id) const {
    const Reply reply = get(server_, jobs_path + id, answer_seconds);
    if (reply.error.empty() && reply.status == 404) return std::nullopt;
    return ray_job_in(json_of(server_, "GET /api/jobs/ID", reply));
}

std::vector<RayJob> RayJobs::of_label(const std::string& label) const {
    std::vector<RayJob> result;
    const Json told = json_of(server_, "GET /api/jobs/", get(server_, jobs_path, answer_seconds));
    for (const Json& one : told)
        if (one.is_object())
            if (RayJob job = ray_job_in(one); job.label == label && !job.id.empty())
                result.push_back(std::move(job));
    return result;
}

std::optional<std::string> RayJobs::log(const std::string& id) const {
    const Reply reply = get(server_, jobs_path + id + "/logs", answer_seconds);
    if (!reply.error.empty() || reply.status != 200) return std::nullopt;
    const Json told = shallow_json<Json>(reply.body);
    if (!told.is_object()) return std::nullopt;
    return ray_text(told, "logs");
}

void RayJobs::stop(const std::string& id) const {
    check_answer(server_, "POST /api/jobs/ID/stop",
                 post(server_, jobs_path + id + "/stop", "", answer_seconds), 404);
}

void RayJobs::forget(const std::string& id) const {
    // Ray looks at its jobs once a second (JOB_MONITOR_LOOP_PERIOD_S of job_manager.py). One that
    // is forgotten before the look that sees its end is written down again, as FAILED.
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    check_answer(server_, "DELETE /api/jobs/ID", delete_at(server_, jobs_path + id, answer_seconds),
                 404);
}

std::vector<std::map<std::string, double>> RayJobs::nodes() const {
    std::vector<std::map<std::string, double>> result;
    const std::string path = "/nodes?view=summary";
    for (const Json& raylet :
         raylets_in(json_of(server_, "GET " + path, get(server_, path, answer_seconds)))) {
        if (ray_text(raylet, "state") != "ALIVE") continue;
        auto& node = result.emplace_back();
        if (const auto total = raylet.find("resourcesTotal");
            total != raylet.end() && total->is_object())
            for (const auto& [name, amount] : total->items())
                if (amount.is_number()) node[name] = amount.get<double>();
    }
    return result;
}

std::optional<bool> RayJobs::node_lives(const std::string& host) const {
    const std::string path = "/nodes?view=summary";
    std::optional<bool> result;
    for (const Json& raylet :
         raylets_in(json_of(server_, "GET " + path, get(server_, path, answer_seconds))))
        if (ray_text(raylet, "nodeManagerAddress") == host)
            result = result.value_or(false) || ray_text(raylet, "state") == "ALIVE";
    return result;
}

}  // namespace servetune
