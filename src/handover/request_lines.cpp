// SPDX-License-Identifier: Apache-2.0
#include "request_lines.hpp"

#include "base/nesting.hpp"
#include "servetune/error.hpp"
#include "servetune/outcome.hpp"
#include "servetune/value.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <new>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t gzip_piece = std::size_t{1} << 16U;
// Of a file that a stranger wrote, of which a few kilobytes may unpack to gigabytes:
constexpr std::size_t most_unpacked = std::size_t{1} << 30U;
constexpr std::size_t longest_line = std::size_t{1} << 25U;

struct CloseGzip {
    void operator()(gzFile_s* file) const { gzclose(file); }
};

/// The fields of a record's line that are as they are.
template <class Record, class Field>
void for_each_field(Record& record, const Field& field) {
    field("index", record.index);
    field("error", record.error);
    field("http_status", record.http_status);
    field("finish_reason", record.finish_reason);
    field("scheduled", record.scheduled);
    field("sent", record.sent);
    field("first_token", record.first_token);
    field("last_token", record.last_token);
    field("done", record.done);
    field("chunks", record.chunks);
    field("empty_chunks", record.empty_chunks);
    field("coalesced_chunks", record.coalesced_chunks);
    field("input_tokens", record.input_tokens);
    field("cached_tokens", record.cached_tokens);
    field("output_tokens", record.output_tokens);
    field("hidden_tokens", record.hidden_tokens);
    field("unread_field", record.unread_field);
    field("estimated_tokens", record.estimated_tokens);
}

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

void each_gzip_line(const std::filesystem::path& file,
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
        all += std::size_t(got);
        if (all > most_unpacked)
            throw ParseError(file.string() + " unpacks to more than " +
                             std::to_string(most_unpacked) + " bytes: it is not read");
        for (const char c : std::string_view(buffer).substr(0, std::size_t(got))) {
            if (c != '\n') {
                text += c;
                continue;
            }
            line(++number, text);
            text.clear();
        }
        if (text.size() > longest_line)
            throw ParseError(file.string() + ":" + std::to_string(number + 1) +
                             ": a line of more than " + std::to_string(longest_line) +
                             " bytes is not read");
    }
    if (!text.empty()) throw ParseError(file.string() + " ends in the middle of a record");
}

std::string line_of(const RequestRecord& record) {
    OrderedJson object{{"end", name_in(request_ends, record.end)}};
    for_each_field(record, WriteFields{object});
    OrderedJson& gaps = object["gaps"] = OrderedJson::array();
    for (const float gap : record.gaps)
        gaps.push_back(
            real_of(fmt::format("{}", gap)).value_or(0));  // 0.02, not 0.019999999552965164
    return object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

RequestRecord record_in(const std::string& line, const std::string& place) {
    constexpr double longest_gap = 1e9;  // seconds: 31 years
    const auto fail = [&](const std::string& why) {
        throw ParseError(place + ": not a request's record: " + why);
    };
    RequestRecord record;
    try {
        const auto object = OrderedJson::parse(line, RefuseDeep());
        for_each_field(record, ReadFields{object});
        const auto name = object.at("end").get<std::string>();
        const auto end = named_in(request_ends, name);
        if (!end) fail("'" + name + "' is no way for a request to end");
        record.end = *end;
        for (const OrderedJson& gap : object.at("gaps")) {
            const auto seconds = gap.get<double>();
            if (!(seconds >= 0 && seconds < longest_gap))
                fail("a gap of " + gap.dump() + " seconds");
            record.gaps.push_back(static_cast<float>(seconds));
        }
    } catch (const OrderedJson::exception& error) {
        fail(error.what());
    }
    return record;
}

void write_records(const std::filesystem::path& file, std::span<const RequestRecord> records) {
    GzipOutput output(file);
    for (const RequestRecord& record : records) output.write(line_of(record));
    output.commit();
}

}  // namespace servetune
