// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace servetune {

/// A scalar of YAML that reads as this text and nothing else, in our files and by YAML 1.1's rules: quoted where that
/// is needed, `${` doubled. Bytes that are not UTF-8 become U+FFFD.
std::string yaml_text(const std::string& text);

}  // namespace servetune
