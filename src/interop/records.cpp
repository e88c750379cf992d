// SPDX-License-Identifier: Apache-2.0
#include "records.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"
#include "servetune/outcome.hpp"

#include <nlohmann/json.hpp>

#include <zlib.h>

#include <memory>
#include <new>
#include <string_view>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

template <class T>
OrderedJson or_null(const std::optional<T>& value) {
    return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

template <class T>
void read_optional(const OrderedJson& object, const char* key, std::optional<T>& into) {
    if (const OrderedJson& value = object.at(key); !value.is_null()) into = value.get<T>();
}

std::string line_of(const RequestRecord& record) {
    const OrderedJson object{{"index", record.index},
                             {"end", name_in(request_ends, record.end)},
                             {"error", record.error},
                             {"http_status", record.http_status},
                             {"finish_reason", record.finish_reason},
                             {"scheduled", record.scheduled},
                             {"sent", record.sent},
                             {"first_token", or_null(record.first_token)},
                             {"last_token", or_null(record.last_token)},
                             {"done", record.done},
                             {"chunks", record.chunks},
                             {"empty_chunks", record.empty_chunks},
                             {"coalesced_chunks", record.coalesced_chunks},
                             {"input_tokens", or_null(record.input_tokens)},
                             {"cached_tokens", or_null(record.cached_tokens)},
                             {"output_tokens", or_null(record.output_tokens)},
                             {"hidden_tokens", record.hidden_tokens},
                             {"unread_field", record.unread_field},
                             {"gaps", record.gaps}};
    return object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

RequestRecord record_of(const OrderedJson& object) {
    RequestRecord record;
    record.index = object.at("index").get<std::size_t>();
    const auto end = named_in(request_ends, object.at("end").get<std::string>());
    if (!end) throw ParseError("'" + object.at("end").get<std::string>() + "' is no way for a request to end");
    record.end = *end;
    object.at("error").get_to(record.error);
    object.at("http_status").get_to(record.http_status);
    object.at("finish_reason").get_to(record.finish_reason);
    object.at("scheduled").get_to(record.scheduled);
    object.at("sent").get_to(record.sent);
    read_optional(object, "first_token", record.first_token);
    read_optional(object, "last_token", record.last_token);
    object.at("done").get_to(record.done);
    object.at("chunks").get_to(record.chunks);
    object.at("empty_chunks").get_to(record.empty_chunks);
    object.at("coalesced_chunks").get_to(record.coalesced_chunks);
    read_optional(object, "input_tokens", record.input_tokens);
    read_optional(object, "cached_tokens", record.cached_tokens);
    read_optional(object, "output_tokens", record.output_tokens);
    record.hidden_tokens = object.value("hidden_tokens", std::int64_t{0});  // files of earlier versions have none
    record.unread_field = object.value("unread_field", "");
    object.at("gaps").get_to(record.gaps);
    return record;
}

/// Compresses into a file.
class Gzip {
public:
    explicit Gzip(OutputFile& output) : output_(output) {
        constexpr int level = 6;
        constexpr int with_gzip_header = 16;
        constexpr int memory = 8;  // zlib's default
        if (deflateInit2(&stream_, level, Z_DEFLATED, MAX_WBITS + with_gzip_header, memory, Z_DEFAULT_STRATEGY) != Z_OK)
            throw std::bad_alloc();
    }
    ~Gzip() { deflateEnd(&stream_); }
    Gzip(const Gzip&) = delete;
    Gzip& operator=(const Gzip&) = delete;

    void write(std::string_view bytes) {
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // NOLINT: zlib only reads it
        stream_.avail_in = static_cast<uInt>(bytes.size());
        deflate_all(Z_NO_FLUSH);
    }
    void finish() { deflate_all(Z_FINISH); }

private:
    void deflate_all(int flush) {
        do {
            stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
            stream_.avail_out = static_cast<uInt>(buffer_.size());
            deflate(&stream_, flush);
            output_.write(std::string_view(buffer_).substr(0, buffer_.size() - stream_.avail_out));
        } while (stream_.avail_out == 0);
    }

    OutputFile& output_;
    z_stream stream_{};
    std::string buffer_ = std::string(1U << 16U, '\0');
};

struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
};
using GzipFile = std::unique_ptr<gzFile_s, Close>;

}  // namespace

void write_records(const std::filesystem::path& file, std::span<const RequestRecord> records) {
    OutputFile output(file);
    Gzip gzip(output);
    for (const RequestRecord& record : records) gzip.write(line_of(record));
    gzip.finish();
    output.commit();
}

std::vector<RequestRecord> read_records(const std::filesystem::path& file) {
    const GzipFile stream(gzopen(file.c_str(), "rb"));
    if (!stream) throw IoError("cannot read " + file.string());
    std::vector<RequestRecord> records;
    std::string line;
    std::string buffer(1U << 16U, '\0');
    for (int got = gzread(stream.get(), buffer.data(), static_cast<unsigned>(buffer.size())); got != 0;
         got = gzread(stream.get(), buffer.data(), static_cast<unsigned>(buffer.size()))) {
        if (got < 0) throw IoError("cannot read " + file.string() + " to its end");
        for (const char c : std::string_view(buffer).substr(0, static_cast<std::size_t>(got))) {
            if (c != '\n') {
                line += c;
                continue;
            }
            try {
                records.push_back(record_of(OrderedJson::parse(line)));
            } catch (const OrderedJson::exception& error) {
                throw ParseError(file.string() + ":" + std::to_string(records.size() + 1) + ": not a request's record: " + error.what());
            }
            line.clear();
        }
    }
    if (!line.empty()) throw ParseError(file.string() + " ends in the middle of a record");
    return records;
}

}  // namespace servetune
