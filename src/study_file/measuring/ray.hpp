// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"

#include <memory>
#include <optional>
#include <string>

namespace servetune {

class Yaml;

/// `deploy: {ray: ...}`; nothing where it is not there. `deploy`: the mapping around it, whose
/// other keys must suit. Throws ParseError.
[[nodiscard]] std::optional<RayOptions> read_ray(const Yaml& deploy);

/// Its launcher. The token is read and kept out of everything that is printed; of a study that is
/// only read it is not needed. Throws UsageError where it is not there.
[[nodiscard]] std::shared_ptr<const Launcher> launcher_on_ray(const RayOptions& options,
                                                              const StudyFile& file);

}  // namespace servetune
