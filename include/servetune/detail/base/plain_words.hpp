// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace servetune {

/// The message of an error; where the system gives no thread or no memory, in plain English with
/// what to do.
std::string plain_words(const std::exception& error);

}  // namespace servetune
