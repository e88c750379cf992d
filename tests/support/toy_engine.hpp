// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace servetune::test {

/// The file of a made-up engine with one parameter, `seqs`; `more`: further ones, a line each.
inline std::string toy_engine(const std::string& more = "", const std::string& program = "toy",
                              const std::string& launch_more = "") {
    return "engine: toy\nversions: \"1.0\"\nlaunch: [" + program + ", \"{model}\"" + launch_more +
           "]\nparameters:\n  seqs: {flag: --seqs, int: {low: 1, high: 64, scale: log2}, default: "
           "8}\n" +
           more;
}

}  // namespace servetune::test
