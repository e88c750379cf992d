// SPDX-License-Identifier: Apache-2.0
#include "client_calls.hpp"

#include "base/own_folder.hpp"
#include "servetune/error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace servetune {
namespace {

constexpr const char* calls_variable = "SERVETUNE_CALLS";

}  // namespace

ClientCalls::ClientCalls() {
    std::string pattern = (temporary_files() / "servetune-calls-XXXXXX").string();
    const int file = ::mkstemp(pattern.data());
    if (file < 0) throw IoError("cannot make the file " + pattern + ": " + std::generic_category().message(errno));
    ::close(file);
    file_ = pattern;
    ::setenv(calls_variable, file_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): as its declaration says
}

ClientCalls::~ClientCalls() {
    ::unsetenv(calls_variable);  // NOLINT(concurrency-mt-unsafe)
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
}

std::size_t ClientCalls::count() const {
    std::error_code gone;
    const auto bytes = std::filesystem::file_size(file_, gone);
    return gone ? 0 : static_cast<std::size_t>(bytes);
}

void ClientCalls::add_one() {
    const char* file = std::getenv(calls_variable);  // NOLINT(concurrency-mt-unsafe): set before threads begin
    if (file == nullptr) return;
    const int descriptor = ::open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (descriptor < 0) return;  // the run is over
    (void)!::write(descriptor, ".", 1);
    ::close(descriptor);
}

}  // namespace servetune
