// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/process.hpp"
#include "support/waiting.hpp"

#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace servetune::test {

/// What a program that has ended said.
struct Ran {
    int code;
    std::string out;
    std::string err;
};

inline Ran ran(const std::vector<std::string>& argv, const std::filesystem::path& folder) {
    ChildProcess process(argv, folder);
    const int code = process.wait();
    return {code, process.out(), process.err()};
}

/// `autotune` with these words, in `folder`, to its end. The test's target says which program
/// (SERVETUNE_PROGRAM).
inline Ran autotune(std::vector<std::string> words, const std::filesystem::path& folder) {
    words.insert(words.begin(), SERVETUNE_PROGRAM);
    return ran(words, folder);
}

/// The trials of a study's folder; none where there is no journal yet.
inline std::vector<Trial> trials_so_far(const std::filesystem::path& folder) {
    try {
        return SqliteJournal::read(folder).trials();
    } catch (const Error&) {
        return {};
    }
}

/// Whether a study that runs in `folder` comes to have so many trials, the one it is at counted.
inline bool comes_to_trial(const std::filesystem::path& folder, std::size_t trials) {
    return comes_true([&] { return trials_so_far(folder).size() >= trials; });
}

}  // namespace servetune::test
