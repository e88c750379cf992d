// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/process.hpp"

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

/// `autotune` with these words, in `folder`, to its end. The test's target says which program (SERVETUNE_PROGRAM).
inline Ran autotune(std::vector<std::string> words, const std::filesystem::path& folder) {
    words.insert(words.begin(), SERVETUNE_PROGRAM);
    return ran(words, folder);
}

}  // namespace servetune::test
