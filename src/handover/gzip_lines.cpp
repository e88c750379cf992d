// SPDX-License-Identifier: Apache-2.0
#include "gzip_lines.hpp"

#include "servetune/error.hpp"

#include <zlib.h>

#include <memory>
#include <new>

namespace servetune {
namespace {

constexpr std::size_t gzip_piece = std::size_t{1} << 16U;

struct CloseGzip {
    void operator()(gzFile_s* file) const { gzclose(file); }
};

}  // namespace

struct GzipOutput::Stream {
    Stream() {
        constexpr int level = 6;
        constexpr int with_gzip_header = 16;
        constexpr int memory = 8;  // zlib's default
        if (deflateInit2(&z, level, Z_DEFLATED, MAX_WBITS + with_gzip_header, memory,
                         Z_DEFAULT_STRATEGY) != Z_OK)
            throw std::bad_alloc();
    }
    ~Stream() { deflateEnd(&z); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    void deflate_all(OutputFile& output, int flush) {
        do {
            z.next_out = reinterpret_cast<Bytef*>(buffer.data());
            z.avail_out = static_cast<uInt>(buffer.size());
            deflate(&z, flush);
            output.write(std::string_view(buffer).substr(0, buffer.size() - z.avail_out));
        } while (z.avail_out == 0);
    }

    z_stream z{};
    std::string buffer = std::string(gzip_piece, '\0');
};

GzipOutput::GzipOutput(const std::filesystem::path& file)
    : output_(file), stream_(std::make_unique<Stream>()) {}
GzipOutput::~GzipOutput() = default;

void GzipOutput::write(std::string_view bytes) {
    stream_->z.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // NOLINT: zlib only reads it
    stream_->z.avail_in = static_cast<uInt>(bytes.size());
    stream_->deflate_all(output_, Z_NO_FLUSH);
}

void GzipOutput::commit() {
    stream_->deflate_all(output_, Z_FINISH);
    output_.commit();
}

void each_gzip_line(const std::filesystem::path& file, const GzipBounds& bounds,
                    const std::function<void(std::size_t, const std::string&)>& line) {
    const std::unique_ptr<gzFile_s, CloseGzip> stream(gzopen(file.c_str(), "rb"));
    if (!stream) throw IoError("cannot read " + file.string());
    std::string text;
    std::string buffer(gzip_piece, '\0');
    std::size_t number = 0;
    std::size_t all = 0;
    const auto read = [&] {
        return gzread(stream.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    };
    for (int got = read(); got != 0; got = read()) {
        if (got < 0) throw IoError("cannot read " + file.string() + " to its end");
        all += static_cast<std::size_t>(got);
        if (all > bounds.all_bytes)
            throw ParseError(file.string() + " unpacks to more than " +
                             std::to_string(bounds.all_bytes) + " bytes: it is not read");
        for (const char c : std::string_view(buffer).substr(0, static_cast<std::size_t>(got))) {
            if (c != '\n') {
                text += c;
                continue;
            }
            line(++number, text);
            text.clear();
        }
        if (text.size() > bounds.line_bytes)
            throw ParseError(file.string() + ":" + std::to_string(number + 1) +
                             ": a line of more than " + std::to_string(bounds.line_bytes) +
                             " bytes is not read");
    }
    if (!text.empty()) throw ParseError(file.string() + " ends in the middle of a record");
}

}  // namespace servetune
