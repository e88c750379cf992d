// SPDX-License-Identifier: Apache-2.0
#include "request_lines.hpp"

#include "base/nesting.hpp"
#include "gzip_lines.hpp"
#include "servetune/error.hpp"
#include "servetune/outcome.hpp"
#include "servetune/value.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr double longest_gap = 1e9;  // seconds: 31 years

template <class T>
OrderedJson or_null(const std::optional<T>& value) {
    return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

template <class T>
void read_optional(const OrderedJson& object, const char* key, std::optional<T>& into) {
    if (const OrderedJson& value = object.at(key); !value.is_null()) into = value.get<T>();
}

}  // namespace

std::string line_of(const RequestRecord& record) {
    OrderedJson object{{"index", record.index},
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
                       {"unread_field", record.unread_field}};
    if (record.estimated_tokens) object["estimated_tokens"] = *record.estimated_tokens;
    OrderedJson& gaps = object["gaps"] = OrderedJson::array();
    for (const float gap : record.gaps)
        gaps.push_back(
            real_of(fmt::format("{}", gap)).value_or(0));  // 0.02, not 0.019999999552965164
    return object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

namespace {

RequestRecord record_of(const OrderedJson& object) {
    RequestRecord record;
    record.index = object.at("index").get<std::size_t>();
    const auto end = named_in(request_ends, object.at("end").get<std::string>());
    if (!end)
        throw ParseError("'" + object.at("end").get<std::string>() +
                         "' is no way for a request to end");
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
    record.hidden_tokens =
        object.value("hidden_tokens", std::int64_t{0});  // files of earlier versions have none
    record.unread_field = object.value("unread_field", "");
    if (object.contains("estimated_tokens"))
        record.estimated_tokens = object.at("estimated_tokens").get<double>();
    for (const OrderedJson& gap : object.at("gaps")) {
        const auto seconds = gap.get<double>();
        if (!(seconds >= 0 && seconds < longest_gap))
            throw ParseError("a gap of " + gap.dump() + " seconds");
        record.gaps.push_back(static_cast<float>(seconds));
    }
    return record;
}

}  // namespace

RequestRecord record_in(const std::string& line, const std::string& place) {
    try {
        return record_of(OrderedJson::parse(line, RefuseDeep()));
    } catch (const OrderedJson::exception& error) {
        throw ParseError(place + ": not a request's record: " + error.what());
    } catch (const ParseError& error) {
        throw ParseError(place + ": not a request's record: " + error.what());
    }
}

void write_records(const std::filesystem::path& file, std::span<const RequestRecord> records) {
    GzipOutput output(file);
    for (const RequestRecord& record : records) output.write(line_of(record));
    output.commit();
}

std::vector<RequestRecord> read_records(const std::filesystem::path& file) {
    std::vector<RequestRecord> records;
    each_gzip_line(file, {}, [&](std::size_t number, const std::string& line) {
        records.push_back(record_in(line, file.string() + ":" + std::to_string(number)));
    });
    return records;
}

}  // namespace servetune
