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

namespace servetune::test {

class FakeCluster {
public:
    FakeCluster() {
        const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
        path_ = path == nullptr ? "" : path;
        setenv("PATH", (programs().string() + ":" + path_).c_str(), 1);  // the client in the foreground
    }
    ~FakeCluster() { setenv("PATH", path_.c_str(), 1); }
    FakeCluster(const FakeCluster&) = delete;
    FakeCluster& operator=(const FakeCluster&) = delete;

    [[nodiscard]] KubernetesOptions options() const {
        KubernetesOptions result;
        result.program = {(programs() / "fake_kubectl").string(), "--cluster=" + folder_.path().string()};
        result.pod_template =
            R"({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "engine", "image": "localhost/engine:1"}]}})";
        result.reach = KubernetesReach::pod;
        return result;
    }
    /// A file of the folder that says what happens there.
    void set(const std::string& name, const std::string& content = "yes") const { folder_.write(name, content); }
    void unset(const std::string& name) const { std::filesystem::remove(folder_.path() / name); }
    [[nodiscard]] std::string content(const std::string& name) const {
        std::ifstream stream(folder_.path() / name, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }

private:
    static std::filesystem::path programs() { return std::filesystem::path(SERVETUNE_PROGRAM).parent_path(); }
    TemporaryFolder folder_;
    std::string path_;
};

}  // namespace servetune::test
