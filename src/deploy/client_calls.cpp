// SPDX-License-Identifier: Apache-2.0
#include "client_calls.hpp"

#include "servetune/error.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace servetune {
namespace {

constexpr const char* calls_variable = "SERVETUNE_CALLS";

}  // namespace

ClientCalls::ClientCalls() : file_(::memfd_create("servetune-calls", MFD_CLOEXEC)) {
    if (file_ < 0)
        throw IoError("cannot make a file in memory: " + std::generic_category().message(errno));
    const std::string path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_);
    ::setenv(calls_variable, path.c_str(),
             1);  // NOLINT(concurrency-mt-unsafe): as its declaration says
}

ClientCalls::~ClientCalls() {
    ::unsetenv(calls_variable);  // NOLINT(concurrency-mt-unsafe)
    ::close(file_);
}

std::size_t ClientCalls::count() const {
    struct stat seen {};
    return ::fstat(file_, &seen) == 0 ? static_cast<std::size_t>(seen.st_size) : 0;
}

void ClientCalls::add_one() {
    const char* file =
        std::getenv(calls_variable);  // NOLINT(concurrency-mt-unsafe): set before threads begin
    if (file == nullptr) return;
    const int descriptor = ::open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (descriptor < 0) return;  // the run is over
    (void)!::write(descriptor, ".", 1);
    ::close(descriptor);
}

}  // namespace servetune
