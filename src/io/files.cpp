// SPDX-License-Identifier: Apache-2.0
#include "servetune/io/files.hpp"

#include "servetune/base/error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <system_error>

namespace servetune {

std::string read_file(const std::filesystem::path& file) {
    std::error_code unknown;  // then opening it says what is wrong
    if (std::filesystem::is_directory(file, unknown)) throw IoError("cannot read " + file.string() + ": it is a folder");
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw IoError("cannot read " + file.string() + ": " + std::generic_category().message(errno));
    std::string content{std::istreambuf_iterator<char>(stream), {}};
    if (stream.bad()) throw IoError("cannot read " + file.string() + " to its end");
    return content;
}

void write_file(const std::filesystem::path& file, std::string_view content) {
    const std::filesystem::path part = file.string() + ".part";
    const auto fail = [&](const char* what) {
        throw IoError(std::string("cannot ") + what + " " + file.string() + ": " + std::generic_category().message(errno));
    };
    std::FILE* stream = std::fopen(part.c_str(), "wb");
    if (stream == nullptr) fail("write");
    const bool written = std::fwrite(content.data(), 1, content.size(), stream) == content.size() && std::fflush(stream) == 0 &&
                         ::fsync(::fileno(stream)) == 0;
    const int error = errno;
    std::fclose(stream);
    if (!written) {
        errno = error;
        fail("write");
    }
    if (std::rename(part.c_str(), file.c_str()) != 0) fail("replace");
}

}  // namespace servetune
