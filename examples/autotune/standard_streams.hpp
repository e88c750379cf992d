// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace autotune {

/// To be called before any file is opened. A standard stream that is closed would give its number
/// to the next file, and what is printed would go into that: /dev/null takes its place, opened so
/// that a use of it is an error, as a use of the closed stream would be.
void occupy_standard_streams() noexcept;

/// `code`, or environment_error, with a message, where what was printed has not all reached
/// standard output. Without a message where its reader has gone: then reader_gone in place of
/// `done`.
int with_output_written(int code) noexcept;

}  // namespace autotune
