// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/base/plain_words.hpp"

namespace servetune {

std::string plain_words(const std::exception& error) {
    if (const auto* system = dynamic_cast<const std::system_error*>(&error);
        system != nullptr &&
        system->code() == std::errc::resource_unavailable_try_again)  // of std::thread
        return "cannot start a thread: a limit of this user or container is reached; raise that of "
               "processes (ulimit -u) or of memory "
               "(ulimit -v)";
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
        return "there is not enough memory; raise the limit of this user or container (ulimit -v)";
    return error.what();
}

}  // namespace servetune
