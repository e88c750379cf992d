// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "live_server.hpp"
#include "observers.hpp"

#include "servetune/study_file.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace autotune {

/// How a page is served: what `--view` and `--token-file` say.
struct LiveOptions {
    LiveAddress address{};
    std::string token{};  ///< empty: whoever reaches the address may look
};

/// From the options of a command and `SERVETUNE_TOKEN`. The token joins the secrets that are never
/// printed. Throws UsageError: an address that others reach without a token, a token that can be
/// guessed.
LiveOptions live_options(const std::string& address,
                         const std::optional<std::filesystem::path>& token_file);

/// The report of a study in a browser while it runs. It reads the study's journal beside whoever
/// writes it, on a thread of low priority, and only while somebody looks: the study does not wait
/// for it.
///
///     /         the page of report.html, which renews itself
///     /events   what happens, as server-sent events
///     /metrics  for Prometheus
class LivePage {
public:
    /// Takes the port, and reads `folder` from then on. `setup` may be that of the run. `running`:
    /// whether somebody measures. Throws IoError.
    LivePage(std::shared_ptr<const servetune::StudySetup> setup, std::filesystem::path folder,
             const servetune::Budget& budget, const LiveOptions& options,
             std::function<bool()> running);
    ~LivePage();
    LivePage(const LivePage&) = delete;
    LivePage& operator=(const LivePage&) = delete;

    /// What the trial does now. Any thread.
    void phase(const std::string& what);
    /// Tells those who look that the run has ended, and how.
    void ended(const std::string& how);
    [[nodiscard]] std::string url() const;

private:
    class Worker;
    std::unique_ptr<Worker> worker_;
    std::unique_ptr<LiveServer> server_;
};

}  // namespace autotune
