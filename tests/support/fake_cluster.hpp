// SPDX-License-Identifier: Apache-2.0
#pragma once

// A cluster of Kubernetes that is a folder: tests/support/fake_kubectl.cpp.

#include "support/elsewhere.hpp"
#include "support/temporary_folder.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

namespace servetune::test {

class FakeCluster {
public:
    FakeCluster() = default;

    /// Of `kubernetes`; `more`: further settings.
    [[nodiscard]] WrappedOptions options(const std::vector<std::string>& more = {}) const {
        WrappedOptions result = launching(
            "kubernetes", {"program " + kubectl(), "program " + where(), "template pod.json"});
        for (const std::string& setting : more) result.lines.emplace_back("set", setting);
        if (more.empty()) result.lines.emplace_back("set", "reach pod");
        result.lines.emplace_back("data", std::string("template ") + pod_template);
        return result;
    }
    static constexpr const char* pod_template =
        R"({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "engine", "image": "localhost/engine:1"}]}})";
    /// The client, and its word that names this cluster.
    [[nodiscard]] static std::string kubectl() {
        return (std::filesystem::path(SERVETUNE_PROGRAM).parent_path() / "fake_kubectl").string();
    }
    [[nodiscard]] std::string where() const { return "--cluster=" + folder_.path().string(); }
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
    TemporaryFolder folder_;
};

}  // namespace servetune::test
