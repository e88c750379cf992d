// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace servetune {

/// The one exception tree of servetune. A message says what was wanted, what was got, where, and
/// what to do. It is caught in `Study::run` (never a trial's failure: those are values, see
/// outcome.hpp) and in `main`.
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// A search space or configuration that contradicts itself: bad domain, unknown parent, cycle,
/// empty space.
class SpaceError : public Error {
public:
    using Error::Error;
};

/// Text that is not what its format asks for; the message starts with `file:line:column:` where
/// that is known.
class ParseError : public Error {
public:
    using Error::Error;
};

/// The world refused: missing file, unwritable folder, locked or newer journal.
class IoError : public Error {
public:
    using Error::Error;
};

/// The caller asked for something that makes no sense: telling a trial twice, resuming a changed
/// study.
class UsageError : public Error {
public:
    using Error::Error;
};

}  // namespace servetune
