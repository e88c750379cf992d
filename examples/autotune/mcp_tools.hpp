// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mcp_jobs.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace autotune {

/// The tools that an agent may use, each a subcommand of this program with typed arguments.
///
/// What an agent says comes from a model that may have read anything. So every file lies in one
/// folder, links followed; load tests go to this machine; and no word of an agent becomes a
/// program: what runs is what the study's file says, which a person writes or `init` does.
class Tools {
public:
    using OrderedJson = nlohmann::ordered_json;
    /// Trials told, or seconds, and what happens.
    using Progress = std::function<void(double done, const std::string& what)>;

    /// `root`: the only folder that files are read and written in; absolute, links followed.
    explicit Tools(std::filesystem::path root);

    /// Name, description, JSON Schema of the arguments, and annotations of each.
    [[nodiscard]] static OrderedJson list();
    /// Whether there is such a tool.
    [[nodiscard]] static bool has(const std::string& name);

    /// What a tool says: `{"state": "done" | "working" | "failed", ..., "reason", "next"}`. Waits
    /// as long as the arguments say and ends early where `cancelled` says so. Throws UsageError for
    /// arguments that cannot be, with what is wanted.
    OrderedJson call(const std::string& name, OrderedJson arguments, const Progress& progress,
                     const std::function<bool()>& cancelled);

    /// A job as the extension for tasks has it (github.com/modelcontextprotocol/ext-tasks).
    struct Task {
        OrderedJson fields;  ///< `{"taskId", "status", "statusMessage", ...}`
        OrderedJson told{};  ///< of one that is completed: what its tool says
    };
    /// Whether a tool may give a job.
    [[nodiscard]] static bool makes_jobs(const std::string& name);
    /// Throws UsageError where there is no such job.
    [[nodiscard]] Task task(const std::string& id, const std::function<bool()>& cancelled) const;
    /// Ends it in good order, in the background. Throws the same.
    void cancel_task(const std::string& id) const;

    /// Reports of studies in the folder and the schema of studies: `{"uri", "name", "mimeType"}`.
    [[nodiscard]] OrderedJson resources() const;
    /// The text of one. Throws UsageError where there is none.
    [[nodiscard]] OrderedJson read_resource(const std::string& uri,
                                            const std::function<bool()>& cancelled) const;

private:
    /// A command that has ended.
    struct Ran {
        int exit_code;
        std::string answer;
        std::vector<std::string> said;
    };
    /// Runs one that ends soon. Throws IoError where it does not within a minute, or is cancelled.
    [[nodiscard]] Ran ran(std::vector<std::string> words,
                          const std::function<bool()>& cancelled) const;
    [[nodiscard]] std::filesystem::path inside(const std::string& file) const;
    [[nodiscard]] std::vector<std::string> words_of(const std::string& tool,
                                                    const OrderedJson& arguments) const;
    [[nodiscard]] std::filesystem::path folder_of(const OrderedJson& arguments,
                                                  const std::function<bool()>& cancelled) const;
    [[nodiscard]] std::shared_ptr<Job> job_in(const OrderedJson& id) const;
    [[nodiscard]] OrderedJson told_of(Job& job) const;
    [[nodiscard]] std::vector<std::string> runs() const;
    [[nodiscard]] OrderedJson report_of(OrderedJson study,
                                        const std::function<bool()>& cancelled) const;
    [[nodiscard]] OrderedJson studies(const std::function<bool()>& cancelled) const;
    [[nodiscard]] OrderedJson waited(Job& job, double seconds, const Progress& progress,
                                     const std::function<bool()>& cancelled) const;
    OrderedJson start(const OrderedJson& arguments, const Progress& progress,
                      const std::function<bool()>& cancelled);
    OrderedJson status(const OrderedJson& arguments, const Progress& progress,
                       const std::function<bool()>& cancelled);
    OrderedJson stop(const OrderedJson& arguments);
    OrderedJson propose(OrderedJson arguments, const std::function<bool()>& cancelled);

    const std::filesystem::path root_;
    Jobs jobs_;               ///< those that may outlast a call
    std::mutex proposing_{};  ///< agents call in parallel
};

}  // namespace autotune
