// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace autotune {

/// Tells the service manager that started this program how it is (sd_notify(3): a datagram to the
/// socket that NOTIFY_SOCKET names). Silent where nobody asked. To be made before the first thread:
/// it takes the variable out of the environment, since engines and clients of containers must not
/// speak for this program.
class ServiceNotice {
public:
    ServiceNotice();

    /// `state`: lines such as `READY=1`. A manager that is gone is no trouble of ours.
    void send(const std::string& state) const;

private:
    std::string
        socket_{};  ///< a path, or a name of the kernel's own with `@` first; empty: nobody asked
};

}  // namespace autotune
