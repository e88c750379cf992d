// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace servetune::benchmark {

/// Runs `vllm bench serve` and SGLang's `bench_serving` against the same server, where they are
/// installed, and prints what each one's own result file says beside what the server knows. A tool
/// that is not there, or fails, is a line that says so. Both want a tokenizer: a name or folder
/// that they can load.
void compare_peers(const std::string& server_program, const std::string& tokenizer);

}  // namespace servetune::benchmark
