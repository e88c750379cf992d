// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace autotune {

/// The report of a study in a browser of this machine while it runs: `/` is the page of
/// report.html, which asks each second for `/state`, what happens now, and renews itself. It reads
/// the study's journal beside whoever writes it, on a thread of low priority, and only when it is
/// asked: the study does not wait for it, whatever a client does or leaves undone.
///
/// Requests for other hosts are refused: a page of the web that gives its own name this machine's
/// address would otherwise read what is served.
class LivePage {
public:
    /// Takes the port (0: any that is free) of 127.0.0.1, and reads `folder` from then on. `setup`
    /// may be that of the run. `running`: whether somebody measures. Throws IoError.
    LivePage(std::shared_ptr<const StudySetup> setup, fs::path folder, const Budget& budget,
             std::uint16_t port, std::function<bool()> running);
    ~LivePage();
    LivePage(const LivePage&) = delete;
    LivePage& operator=(const LivePage&) = delete;

    /// What the trial does now. Any thread.
    void phase(const std::string& what);
    /// Why the run has ended, and a sentence. Whoever looks is shown it and the last page, within
    /// some seconds.
    void ended(std::string_view reason, const std::string& how);
    [[nodiscard]] std::string url() const;

private:
    class Connection;
    struct Server;
    std::unique_ptr<Server> server_;
};

}  // namespace autotune
