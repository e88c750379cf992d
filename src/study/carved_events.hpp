// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "journal_event.hpp"

#include <filesystem>

namespace servetune {

/// The events that are found in the bytes of a damaged journal and its write-ahead log, wherever
/// they stand: each matches its checksum. By their sequence.
std::map<std::uint64_t, JournalEvent> carved_events(const std::filesystem::path& journal);

/// Bytes that a journal's file lacks at its end, by the number of pages in its header: a full disk
/// or a broken copy cut it. 0 for what is no SQLite file.
std::size_t missing_at_end(const std::filesystem::path& journal);

}  // namespace servetune
