// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/test.hpp"

#include "servetune/detail/host/process.hpp"
#include "servetune/sqlite_journal.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace servetune::test {

inline const std::string best_command = "vllm serve Qwen/Qwen3-8B --max-num-seqs=32";

/// Who listens on a port of this machine: the environments of the processes that hold the socket,
/// those of this user.
inline std::vector<std::string> listeners(std::uint16_t port) {
    std::vector<std::string> result;
    for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
        std::ifstream stream(table);
        for (std::string line; std::getline(stream, line);) {
            std::istringstream words(line);
            std::string slot, local, remote, state, inode;
            words >> slot >> local >> remote >> state;
            for (int i = 0; i < 6; ++i) words >> inode;
            const auto colon = local.find(':');
            if (state != "0A" || colon == std::string::npos ||
                std::stoul(local.substr(colon + 1), nullptr, 16) != port)
                continue;
            std::error_code none;
            for (const auto& process : std::filesystem::directory_iterator("/proc", none))
                for (std::filesystem::directory_iterator it(process.path() / "fd", none), end;
                     it != end; it.increment(none)) {
                    if (std::filesystem::read_symlink(it->path(), none) != "socket:[" + inode + "]")
                        continue;
                    std::ifstream environment(process.path() / "environ", std::ios::binary);
                    result.emplace_back(std::istreambuf_iterator<char>(environment),
                                        std::istreambuf_iterator<char>());
                    break;
                }
        }
    }
    return result;
}

/// The most trials that were under way at the same moment.
inline std::size_t most_trials_at_once(const std::vector<Trial>& trials) {
    std::size_t most = 0;
    for (const Trial& one : trials)
        most = std::max(most, std::size_t(count_if(trials, [&](const Trial& other) {
                            return other.started_at &&
                                   *other.started_at <= one.started_at.value_or(0) &&
                                   other.told_at.value_or(1e18) > one.started_at.value_or(0);
                        })));
    return most;
}

/// A study of three configurations of a simulated vLLM that `autotune run` deploys for real, in a
/// folder of its own. The second is the slowest, the third ten times faster, all requests come at
/// once and none waits for another: a machine that is busy changes no order. Without a fault the
/// recommendation is `--max-num-seqs=32`; the machine is not watched, so that what else it does
/// makes no verdict inconclusive. Each configuration is measured once: nothing is confirmed
/// (`decision: published`). `vllm` is a small script in front of simengine that lets engines with
/// certain flags go wrong, so that nothing of autotune's own path is replaced.
class DeployedStudy {
public:
    struct Text {
        std::string space = "{max_num_seqs: {choice: [4, 3, 32], default: 4}}";
        std::string workload =
            "{kind: random, input_tokens: 64, output_tokens: 96}, requests: 32, arrival: {rate: "
            "inf}";
        std::string objective =
            "{maximize: total_tokens_per_second, limits: [\"success_ratio >= 0.99\"]}";
        std::string deploy =
            "ready_within: 3s, stop_within: 1s, stall_timeout: 1s, trial_within: 20s, warm_up: 1";
        std::string more = "budget: {trials: 12}\n";               ///< lines of the study
        std::string clock = "--start-scale 1000 --time-scale 12";  ///< simengine's
    };

    explicit DeployedStudy(const Text& text) : clock_(text.clock) {
        folder_.write("study.yaml",
                      "study: deployed\nmodel: Qwen/Qwen3-8B\nengine: vllm\nothers: "
                      "default\nstrategy: exhaustive\n"
                      "decision: published\nmin_gain: 5%\nnoise_cv: 2%\nworkloads: [{workload: "
                      "small, dataset: " +
                          text.workload +
                          ", ignore_eos: true}]\n"
                          "objective: " +
                          text.objective + "\nspace: " + text.space +
                          "\nstress: off\nevaluator: {deploy: {" + text.deploy +
                          ", watch: off}}\n" + text.more);
        std::filesystem::create_directories(folder_.path() / "bin");
        set_faults({});
    }
    DeployedStudy() : DeployedStudy(Text{}) {}
    ~DeployedStudy() { (void)end_leftovers(mark(), std::chrono::seconds(1)); }
    DeployedStudy(const DeployedStudy&) = delete;
    DeployedStudy& operator=(const DeployedStudy&) = delete;

    /// From now on engines whose words hold `flag` have this fault of simengine; an empty
    /// flag: all engines.
    void set_faults(const std::vector<std::pair<std::string, std::string>>& faults) const {
        std::string script =
            "#!/bin/sh\necho \"$$ $*\" >> '" + record().string() + "'\ncase \" $* \" in\n";
        for (const auto& [flag, fault] : faults)
            script += (flag.empty() ? "*" : "*' " + flag + " '*") +
                      (") SIMENGINE_OPTIONS=\"$SIMENGINE_OPTIONS --fault " + fault) +
                      "\"; export SIMENGINE_OPTIONS ;;\n";
        script += "esac\nexec '" SIMENGINE_PROGRAM "' vllm \"$@\"\n";
        // Written beside it and moved there: a shell that is reading the old one goes on with the
        // old one.
        namespace fs = std::filesystem;
        const fs::path file = folder_.write("bin/vllm.new", script);
        fs::permissions(file, fs::perms::owner_all);
        fs::rename(file, folder_.path() / "bin/vllm");
    }

    /// `before`: words in front, such as a shell that sets limits.
    [[nodiscard]] std::vector<std::string> words(
        const std::string& command, const std::vector<std::string>& more = {},
        const std::vector<std::string>& before = {}) const {
        const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
        std::vector<std::string> result = before;
        for (const std::string& word :
             {std::string("/usr/bin/env"), "PATH=" + (folder_.path() / "bin").string() + ":" + path,
              "SIMENGINE_OPTIONS=" + clock_, std::string(SERVETUNE_PROGRAM), command,
              (folder_.path() / "study.yaml").string(), std::string("--directory"),
              directory().string()})
            result.push_back(word);
        result.insert(result.end(), more.begin(), more.end());
        return result;
    }
    [[nodiscard]] Ran run(const std::vector<std::string>& more = {},
                          const std::vector<std::string>& before = {}) const {
        return ran(words("run", more, before), folder_.path());
    }

    /// A run that recommends something.
    [[nodiscard]] Ran run_well(const std::vector<std::string>& before = {}) const {
        Ran result = run({}, before);
        INFO(result.out << result.err);
        REQUIRE(result.code == 0);
        return result;
    }

    [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }
    [[nodiscard]] std::filesystem::path directory() const {
        return directory_.empty() ? folder_.path() / "study" : directory_;
    }
    void put_into(const std::filesystem::path& directory) { directory_ = directory; }
    [[nodiscard]] std::string mark() const {
        return std::filesystem::absolute(directory()).string();
    }
    [[nodiscard]] std::vector<Trial> trials() const {
        return SqliteJournal::read(directory()).trials();
    }

    struct StartedEngine {
        int id = 0;
        std::uint16_t port = 0;
        std::string words{};
    };
    /// All engines that were ever started, in their order.
    [[nodiscard]] std::vector<StartedEngine> engines() const {
        std::vector<StartedEngine> result;
        std::ifstream stream(record());
        for (std::string line; std::getline(stream, line);) {
            StartedEngine engine{std::atoi(line.c_str()), 0, line};
            const std::string before = " --port ";
            if (const auto at = line.find(before); at != std::string::npos)
                engine.port =
                    static_cast<std::uint16_t>(std::atoi(line.c_str() + at + before.size()));
            result.push_back(engine);
        }
        return result;
    }
    /// What of its engines is still there: by the mark, by the group, by the port. Empty: nothing.
    [[nodiscard]] std::string left() const {
        std::string result;
        for (const Leftover& one : leftovers(mark()))
            result += std::to_string(one.id) + " has the mark: " + one.command + "\n";
        for (const StartedEngine& engine : engines()) {
            if (!living_in_group(engine.id).empty())
                result += "of group " + std::to_string(engine.id) +
                          " something lives: " + engine.words + "\n";
            // A port that has been free may by now be that of another study, of a test beside this
            // one.
            for (const std::string& environment : listeners(engine.port))
                if (environment.find("SERVETUNE_STUDY=") == std::string::npos ||
                    environment.find("SERVETUNE_STUDY=" + mark() + std::string(1, '\0')) !=
                        std::string::npos)
                    result += "somebody listens on port " + std::to_string(engine.port) + "\n";
        }
        return result;
    }

private:
    [[nodiscard]] std::filesystem::path record() const { return folder_.path() / "engines.txt"; }

    TemporaryFolder folder_;
    std::filesystem::path directory_;
    std::string clock_;
};

}  // namespace servetune::test
