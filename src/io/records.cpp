// SPDX-License-Identifier: Apache-2.0
#include "servetune/io/records.hpp"

#include "servetune/base/error.hpp"
#include "servetune/trial/outcome.hpp"

#include <nlohmann/json.hpp>

#include <zlib.h>

#include <memory>

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
    object.at("gaps").get_to(record.gaps);
    return record;
}

struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
};
using GzipFile = std::unique_ptr<gzFile_s, Close>;

}  // namespace

void write_records(const std::filesystem::path& file, std::span<const RequestRecord> records) {
    const std::filesystem::path part = file.string() + ".part";
    const auto fail = [&] {
        std::error_code ignored;
        std::filesystem::remove(part, ignored);
        throw IoError("cannot write " + file.string());
    };
    GzipFile stream(gzopen(part.c_str(), "wb6"));
    if (!stream) fail();
    for (const RequestRecord& record : records) {
        const std::string line = line_of(record);
        if (gzwrite(stream.get(), line.data(), static_cast<unsigned>(line.size())) != static_cast<int>(line.size())) fail();
    }
    if (gzclose(stream.release()) != Z_OK) fail();
    std::error_code error;
    std::filesystem::rename(part, file, error);
    if (error) fail();
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
