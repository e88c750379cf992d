// SPDX-License-Identifier: Apache-2.0
#pragma once

// Boost.Process, version 1. Boost keeps it in `boost/process` up to 1.85, and in `boost/process/v1`
// since 1.86, where `boost/process` is version 2. Only start_program.cpp includes this file: it
// takes nine seconds of processor to compile.

#if __has_include(<boost/process/v1/child.hpp>)
#include <boost/process/v1/child.hpp>
#include <boost/process/v1/error.hpp>
#include <boost/process/v1/exe.hpp>
#include <boost/process/v1/extend.hpp>

namespace servetune {
namespace boost_process = boost::process::v1;
}
#else
#include <boost/process/child.hpp>
#include <boost/process/error.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/extend.hpp>

namespace servetune {
namespace boost_process = boost::process;
}
#endif
