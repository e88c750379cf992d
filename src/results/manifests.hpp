// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// What a manifest of Kubernetes or Docker Compose says of one container.
struct ManifestContainer {
    std::string image{};
    std::vector<std::string> entry{};                  ///< in place of the image's own entry point; empty: that one
    std::vector<std::string> arguments{};              ///< behind it
    std::string script{};                              ///< that a shell runs (`sh -c`), in place of both; empty: none
    std::map<std::string, std::string> environment{};  ///< without secrets and what the manifest takes from elsewhere
    std::string replicas{};                            ///< as printed, where it is more than one

    /// The script, or the words as one line.
    [[nodiscard]] std::string text() const;
};

/// The containers of a text that is YAML, of one document or several; empty: it is none, or starts nothing.
///
/// A container is a mapping with `image`, `command`, `args` or `entrypoint`, wherever it stands: documents print parts
/// of manifests, too. What runs before it or looks after it (`initContainers`, probes) is none. The text may stand
/// further right, or be a quotation. At most 64 KiB are read; with aliases, which may make
/// a text large, at most 8 KiB and four of them.
std::vector<ManifestContainer> containers_in(std::string_view text);

/// Bodies of `<<EOF` in a shell text that are manifests, and the text without them.
struct ShellManifests {
    std::vector<ManifestContainer> containers{};
    std::string rest{};
};
ShellManifests manifests_in_shell(std::string_view text);

}  // namespace servetune
