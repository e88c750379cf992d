// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Jobs of fake_kubectl.cpp and their pods, as files of its folder.

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace fake_kubectl {

namespace fs = std::filesystem;
using Json = nlohmann::json;

inline fs::path cluster;

inline std::string content(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

/// Whole or not at all.
inline void put(const fs::path& file, const std::string& text) {
    const fs::path part = file.string() + "." + std::to_string(getpid());
    std::ofstream(part, std::ios::binary) << text;
    std::error_code gone;
    fs::rename(part, file, gone);
}

/// A Job and its pod, as their folder has them.
class Job {
public:
    explicit Job(fs::path folder) : folder_(std::move(folder)) {}
    [[nodiscard]] fs::path file(const std::string& name) const { return folder_ / name; }
    [[nodiscard]] std::string pod_name() const { return name() + "-abcde"; }
    /// What the node makes files of, again and again.
    void write_files() const {
        const Json job = manifest();
        if (!job.is_object()) return;
        const Json& inside = job["spec"]["template"];
        for (const Json& volume : inside["spec"].value("volumes", Json::array()))
            for (const Json& item :
                 volume.value("/downwardAPI/items"_json_pointer, Json::array())) {
                const std::string path =
                    item["fieldRef"]["fieldPath"];  // metadata.annotations['KEY']
                const auto begin = path.find('\'') + 1;
                const std::string key = path.substr(begin, path.rfind('\'') - begin);
                fs::create_directories(file("files"));
                put(file("files") / item["path"].get<std::string>(),
                    inside["metadata"].value("annotations", Json::object()).value(key, ""));
            }
    }
    [[nodiscard]] bool is_there() const { return fs::exists(file("job")); }
    [[nodiscard]] Json manifest() const {
        return Json::parse(content(file("job")), nullptr, false);
    }
    [[nodiscard]] Json pod() const { return Json::parse(content(file("pod")), nullptr, false); }
    [[nodiscard]] std::string name() const { return folder_.filename(); }

    /// The pod with another state of its container.
    void set(const std::string& phase, const Json& state, const std::string& message = "") const {
        const Json job = manifest();
        if (!job.is_object()) return;  // its folder is gone
        const Json& its_template = job.at("spec").at("template");
        const std::string disrupted = content(file("disrupted"));
        const bool placed = !state.is_null();
        Json conditions = Json::array();
        if (!disrupted.empty())
            conditions.push_back({{"type", "DisruptionTarget"},
                                  {"status", "True"},
                                  {"reason", disrupted},
                                  {"message", "by the test"}});
        if (placed) conditions.push_back({{"type", "PodScheduled"}, {"status", "True"}});
        else
            conditions.push_back({{"type", "PodScheduled"},
                                  {"status", "False"},
                                  {"reason", "Unschedulable"},
                                  {"message", message}});
        const std::string ready = phase == "Running" ? "True" : "False";
        for (const char* type : {"Ready", "ContainersReady"})
            conditions.push_back({{"type", type}, {"status", ready}});
        Json pod = {
            {"apiVersion", "v1"},
            {"kind", "Pod"},
            {"metadata", its_template.at("metadata")},
            {"spec", its_template.at("spec")},
            {"status",
             {{"phase", phase}, {"conditions", conditions}, {"containerStatuses", Json::array()}}}};
        pod["metadata"]["name"] = pod_name();
        if (fs::exists(file("deleted")) || !disrupted.empty())
            pod["metadata"]["deletionTimestamp"] = "2026-11-26T15:02:20Z";
        if (placed) {
            pod["spec"]["nodeName"] = "node-1";
            pod["status"]["podIP"] = pod["status"]["hostIP"] = "127.0.0.1";
            pod["status"]["containerStatuses"].push_back(
                {{"name", its_template["spec"]["containers"][0]["name"]}, {"state", state}});
        }
        put(file("pod"), pod.dump());
    }

private:
    fs::path folder_;
};

inline std::vector<Job> all_jobs() {
    std::vector<Job> result;
    std::error_code none;
    for (const auto& one : fs::directory_iterator(cluster / "jobs", none))
        if (Job job(one.path()); job.is_there()) result.push_back(job);
    return result;
}

}  // namespace fake_kubectl
