// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace servetune {

/// How often the client of a cluster was asked for something during a run, such as a call of
/// kubectl: by this process and by those that stand for its trials. Each call is a byte in a file
/// of this process's memory, whose path they inherit in SERVETUNE_CALLS.
class ClientCalls {
public:
    /// Counts from now on. To be made while no other thread reads the environment. Throws IoError.
    ClientCalls();
    ~ClientCalls();
    ClientCalls(const ClientCalls&) = delete;
    ClientCalls& operator=(const ClientCalls&) = delete;

    [[nodiscard]] std::size_t count() const;
    /// One more, where somebody counts. Any thread, any process of the run.
    static void add_one();

private:
    int file_;
};

}  // namespace servetune
