// SPDX-License-Identifier: Apache-2.0
#pragma once

// Podman in a place of its own (images, containers, settings), with an image of simengine and a
// shell.

#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include "servetune/launcher.hpp"

#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace servetune::test {

inline std::string program_in_path(const std::string& name) {
    std::istringstream path(std::getenv("PATH"));  // NOLINT(concurrency-mt-unsafe)
    for (std::string folder; std::getline(path, folder, ':');)
        if (access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
    return {};
}

class PodmanWorld {
public:
    static constexpr const char* image = "localhost/servetune-test:1";
    static constexpr const char* other_image = "localhost/servetune-test:2";
    static constexpr const char* llama_image = "localhost/servetune-llama:1";

    PodmanWorld() {
        program = {program_in_path("podman"), "--root", (folder_.path() / "root").string(),
                   "--runroot", (folder_.path() / "run").string()};
        if (program.front().empty()) {
            why_not_ = "there is no podman in $PATH";
            return;
        }
        // A pod has no words for bounds; a machine that may not raise them needs them here.
        setenv(
            "CONTAINERS_CONF",
            folder_
                .write(
                    "containers.conf",
                    "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n")
                .c_str(),
            1);
        // Where both are there: crun refuses machines with both versions of control groups mounted.
        if (!program_in_path("runc").empty())
            program.insert(program.end(), {"--runtime", "runc", "--cgroup-manager", "cgroupfs"});
        if (make_image()) return;
        if (const Ran hello = podman([&] {
                std::vector<std::string> words{"run", "--rm", "--network=host",
                                               "--log-driver=none"};
                words.insert(words.end(), options.begin(), options.end());
                words.insert(words.end(), {image, "/bin/sh", "-c", "echo hello"});
                return words;
            }());
            hello.code != 0 || hello.out != "hello\n")
            why_not_ = "podman cannot run a container here: " + hello.err;
    }
    ~PodmanWorld() {
        if (!program.front().empty()) (void)podman({"rm", "--all", "--force", "--time=0"});
        (void)umount2((folder_.path() / "root/overlay").c_str(), MNT_DETACH);
        (void)umount2((folder_.path() / "root").c_str(), MNT_DETACH);
    }
    PodmanWorld(const PodmanWorld&) = delete;
    PodmanWorld& operator=(const PodmanWorld&) = delete;

    /// Empty, and said so (ctest looks for this line to call the test skipped), where containers
    /// cannot run.
    [[nodiscard]] bool works() const {
        if (why_not_.empty()) return true;
        WARN("skipped: podman does not run here: " << why_not_);
        return false;
    }
    [[nodiscard]] Ran podman(std::vector<std::string> words) const {
        words.insert(words.begin(), program.begin(), program.end());
        return ran(words, folder_.path());
    }
    [[nodiscard]] ContainerOptions launching() const {
        ContainerOptions result;
        result.program = program;
        result.images = {image};
        result.options = options;
        return result;
    }
    /// The same in a study file.
    [[nodiscard]] std::string container_key(const std::string& images = image,
                                            const std::string& more = "") const {
        return "container: {image: " + images + ", program: " + list(program) +
               ", options: " + list(options) + more + "}";
    }
    /// Names of all containers, whatever their state.
    [[nodiscard]] std::string containers() const {
        return podman({"ps", "--all", "--format", "{{.Names}} {{.Status}}"}).out;
    }

    /// An image of a real llama-server, from the folder that scripts/get-llama-server makes.
    Ran make_llama_image(const std::filesystem::path& llama) {
        namespace fs = std::filesystem;
        const fs::path root = folder_.path() / "llama-image";
        for (const char* name : {"bin", "tmp", "run"}) fs::create_directories(root / name);
        for (const char* name : {"sh", "dirname", "readlink"})
            add(root, std::string("/usr/bin/") + name, std::string("bin/") + name);
        fs::copy(llama, root / "llama",
                 fs::copy_options::recursive | fs::copy_options::copy_symlinks);
        fs::create_symlink("/llama/llama-server", root / "bin/llama-server");
        const Ran packed =
            ran({"/bin/tar", "--create", "--file", "llama.tar", "--directory", "llama-image", "."},
                folder_.path());
        return packed.code != 0
                   ? packed
                   : podman({"import", "--change", "ENV=PATH=/bin", "llama.tar", llama_image});
    }

    std::vector<std::string> program;  ///< with its global options
    const std::vector<std::string> options{"--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"};

private:
    static std::string list(const std::vector<std::string>& words) {
        std::string result;
        for (const std::string& word : words)
            result += (result.empty() ? "[\"" : ", \"") + word + "\"";
        return result + "]";
    }
    /// A program with the libraries that it loads.
    void add(const std::filesystem::path& root, const std::string& from, const std::string& to) {
        namespace fs = std::filesystem;
        fs::create_directories((root / to).parent_path());
        fs::copy_file(from, root / to, fs::copy_options::overwrite_existing);
        std::istringstream lines(ran({"/usr/bin/ldd", from}, folder_.path()).out);
        for (std::string line; std::getline(lines, line);) {
            const auto begin = line.find('/');
            if (begin == std::string::npos) continue;
            const std::string library = line.substr(begin, line.find(' ', begin) - begin);
            fs::create_directories((root / library.substr(1)).parent_path());
            fs::copy_file(library, root / library.substr(1), fs::copy_options::skip_existing);
        }
    }
    /// Programs with the libraries that they load, and the search spaces; false: `why_not_` is
    /// empty.
    bool make_image() {
        namespace fs = std::filesystem;
        const fs::path root = folder_.path() / "image";
        for (const char* name : {"bin", "tmp", "run", "usr/lib", "share"})
            fs::create_directories(root / name);
        add(root, "/bin/sh", "bin/sh");
        add(root, "/bin/sleep", "bin/sleep");
        add(root, SIMENGINE_PROGRAM, "bin/vllm");
        fs::copy(std::filesystem::path(SERVETUNE_SOURCE) / "search_spaces",
                 root / "share/search_spaces", fs::copy_options::recursive);
        const Ran packed =
            ran({"/bin/tar", "--create", "--file", "image.tar", "--directory", "image", "."},
                folder_.path());
        for (const char* name : {image, other_image}) {
            const Ran made =
                podman({"import", "--change", "ENV=SERVETUNE_SEARCH_SPACES=/share/search_spaces",
                        "--change", std::string("LABEL=version=") + name, "--change",
                        "ENV=PATH=/bin", "image.tar", name});
            if (packed.code == 0 && made.code == 0) continue;
            why_not_ = "podman makes no image here: " + packed.err + made.err;
            return true;
        }
        return false;
    }

    TemporaryFolder folder_;
    std::string why_not_{};
};

/// One for all tests of a program.
inline PodmanWorld& podman_world() {
    static PodmanWorld world;
    return world;
}

}  // namespace servetune::test
