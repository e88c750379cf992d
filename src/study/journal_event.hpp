// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/trial.hpp"

namespace servetune {

/// By their fingerprint: Trial::environment.
using KeptEnvironments =
    std::map<std::string, std::shared_ptr<const std::map<std::string, std::string>>>;

/// A row of the journal's table `events` (docs/reference/journal-format.md).
struct JournalEvent {
    std::uint64_t sequence = 0;
    std::uint64_t trial = 0;
    std::string event{};
    double at = 0;
    std::string body{};
    std::string study_fingerprint{};
    std::string tool_version{};
    std::string checksum{};

    /// Calls `visit(name, member)` for each column but `checksum`, in the order of the table.
    template <class Event, class Visit>
    static void for_each_column(Event& event, const Visit& visit) {
        visit("sequence", event.sequence);
        visit("trial", event.trial);
        visit("event", event.event);
        visit("at", event.at);
        visit("body", event.body);
        visit("study_fingerprint", event.study_fingerprint);
        visit("tool_version", event.tool_version);
    }
    /// What `checksum` must be: of all other columns.
    [[nodiscard]] std::string right_checksum() const;
    /// For messages: "event 3, 'told' of trial 0".
    [[nodiscard]] std::string name() const;
    /// The fingerprint of the environment that a 'started' names; empty: of none.
    [[nodiscard]] std::string environment() const;
    /// Adds to `trials` what it says. Throws IoError where it cannot be read or makes no sense
    /// after the events before it.
    void apply(std::vector<Trial>& trials, const KeptEnvironments& environments = {}) const;
};

/// The bodies.
std::string asked_body(const Trial& trial);
std::string started_body(const std::string& environment);
/// Of a 'started' that ends the one before it. Programs that do not know it take it for a start.
std::string interrupted_body();
std::string told_body(const Outcome& outcome);

}  // namespace servetune
