// SPDX-License-Identifier: Apache-2.0
#pragma once

// A cluster of Kubernetes that is a folder: tests/support/fake_kubectl.cpp.

#include "support/temporary_folder.hpp"

#include "servetune/detail/deploy/remote_launchers.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

namespace servetune::test {

class FakeCluster {
public:
    FakeCluster() {
        const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
        path_ = path == nullptr ? "" : path;
        setenv("PATH", (programs().string() + ":" + path_).c_str(),
               1);  // the client in the foreground
    }
    ~FakeCluster() { setenv("PATH", path_.c_str(), 1); }
    FakeCluster(const FakeCluster&) = delete;
    FakeCluster& operator=(const FakeCluster&) = delete;

    [[nodiscard]] KubernetesOptions options() const {
        KubernetesOptions result;
        result.program = {(programs() / "fake_kubectl").string(),
                          "--cluster=" + folder_.path().string()};
        result.pod_template =
            R"({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "engine", "image": "localhost/engine:1"}]}})";
        result.reach = KubernetesReach::pod;
        return result;
    }
    /// A file of the folder that says what happens there.
    void set(const std::string& name, const std::string& content = "yes") const {
        folder_.write(name, content);
    }
    void unset(const std::string& name) const { std::filesystem::remove(folder_.path() / name); }
    /// Names of Jobs that are there.
    [[nodiscard]] std::vector<std::string> jobs() const {
        std::vector<std::string> result;
        std::error_code none;
        for (const auto& one : std::filesystem::directory_iterator(folder_.path() / "jobs", none))
            result.push_back(one.path().filename());
        return result;
    }
    /// A folder for the PATH of pods, and a program in it.
    [[nodiscard]] std::string programs_of_pods() const {
        return (folder_.path() / "programs").string();
    }
    void put_program(const std::string& name, const std::filesystem::path& file) const {
        std::filesystem::create_directories(programs_of_pods());
        std::filesystem::create_symlink(file, std::filesystem::path(programs_of_pods()) / name);
    }
    [[nodiscard]] std::string content(const std::string& name) const {
        std::ifstream stream(folder_.path() / name, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }

private:
    static std::filesystem::path programs() {
        return std::filesystem::path(SERVETUNE_PROGRAM).parent_path();
    }
    TemporaryFolder folder_;
    std::string path_;
};

}  // namespace servetune::test
