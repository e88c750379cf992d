// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/host/machine_watch.hpp"
#include "servetune/detail/load/load_generator.hpp"
#include "servetune/outcome.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// A server that serves a model: what a measurement asks of it, whoever started it. `died` may be
/// asked from any thread, the rest from one.
class Server {
public:
    virtual ~Server() = default;
    [[nodiscard]] virtual Endpoint endpoint() const = 0;
    /// Why it is no more what it was, as far as that can be seen without asking it; nothing while
    /// all is well.
    [[nodiscard]] virtual std::optional<Failure> died() const = 0;
    /// The same, and it is asked: another process answers, or another model, or nobody.
    [[nodiscard]] virtual std::optional<Failure> changed() const = 0;
    /// Whether its machine is gone or keeps it from running, where somebody can tell; to be asked
    /// when it is silent.
    [[nodiscard]] virtual std::optional<Failure> lost() const { return std::nullopt; }
    /// Empties its prefix cache; false where it cannot be.
    virtual bool reset_cache() = 0;
    /// Lines of its log that doubt whether its flags took effect.
    [[nodiscard]] virtual std::vector<std::string> not_in_force() const = 0;
    /// A watch over the machine that it runs on, begun now; null where that is somebody else's.
    [[nodiscard]] virtual std::unique_ptr<MachineWatch> watch(
        MachineWatchOptions options) const = 0;
};

}  // namespace servetune
