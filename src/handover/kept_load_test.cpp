// SPDX-License-Identifier: Apache-2.0
#include "kept_load_test.hpp"

#include "base/nesting.hpp"
#include "base/token_shapes.hpp"
#include "request_lines.hpp"
#include "servetune/benchmark_result.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"
#include "study/json.hpp"

#include <cmath>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kept_ending = ".jsonl.gz";
constexpr std::size_t most_servers = 10'000;

/// The fields of a load test's line that are as they are.
template <class Test, class Field>
void for_each_field_of_test(Test& test, const Field& field) {
    field("trial", test.trial);
    field("seed", test.seed);
    field("number", test.number);
    field("called", test.called);
    field("model", test.model);
    field("devices", test.devices);
    field("servers", test.servers);
    field("duration_seconds", test.result.run.duration_seconds);
    field("left_open", test.result.run.left_open);
    field("stopped", test.result.run.stopped);
    field("refused_fields", test.result.handshake.refused_fields);
    field("lengths_exact", test.result.plan.lengths_exact);
    field("mean_input_tokens", test.result.plan.mean_input_tokens);
    field("mean_output_tokens", test.result.plan.mean_output_tokens);
}

std::string head_of(const KeptLoadTest& test) {
    OrderedJson object{{"servetune_load_test", 1}};
    for_each_field_of_test(test, WriteFields{object});
    object["configuration"] = OrderedJson::parse(json_of(test.configuration));
    BenchmarkResult figures;  // those that are not of the requests
    figures.client = test.result.run.client;
    figures.server = test.result.run.server;
    OrderedJson& beside = object["figures"] = OrderedJson::object();
    for_each_figure(figures, [&](const std::string& name, const std::optional<double>& value) {
        if (value && std::isfinite(*value)) beside[name] = *value;
    });
    OrderedJson input = OrderedJson::array(), output = OrderedJson::array();
    for (const PlannedRequest& request : test.result.plan.requests) {
        input.push_back(request.input_tokens);
        output.push_back(request.output_tokens);
    }
    object["input_tokens"] = std::move(input);
    object["output_tokens"] = std::move(output);
    return object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

KeptLoadTest read_head(const std::string& line) {
    const auto object = OrderedJson::parse(line, RefuseDeep());
    if (object.at("servetune_load_test").get<int>() != 1)
        throw ParseError("it is of a later version");
    KeptLoadTest test;
    for_each_field_of_test(test, ReadFields{object});
    test.configuration = configuration_from_json(object.at("configuration").dump());
    if (test.servers < 1 || test.servers > most_servers)
        throw ParseError("'servers' is not 1 to " + std::to_string(most_servers));
    BenchmarkResult figures;
    for_each_figure(figures, [&](const std::string& name, std::optional<double>& value) {
        if (object.at("figures").contains(name))
            value = object.at("figures").at(name).get<double>();
    });
    test.result.run.client = figures.client;
    test.result.run.server = figures.server;
    test.result.handshake.reasons.resize(test.result.handshake.refused_fields.size());
    const OrderedJson &input = object.at("input_tokens"), &output = object.at("output_tokens");
    if (input.size() != output.size()) throw ParseError("it plans two numbers of requests");
    for (std::size_t i = 0; i < input.size(); ++i) {
        PlannedRequest& request = test.result.plan.requests.emplace_back();
        input[i].get_to(request.input_tokens);
        output[i].get_to(request.output_tokens);
    }
    return test;
}

}  // namespace

std::string kept_requests_name(std::uint64_t trial, std::size_t number) {
    return std::to_string(trial) + "-" + std::to_string(number) + kept_ending;
}

void write_load_test(const fs::path& file, const KeptLoadTest& test, const Redactor& secrets) {
    GzipOutput output(file);
    output.write(secrets(head_of(test)));
    for (RequestRecord record : test.result.run.records) {
        for (std::string* text : {&record.error, &record.finish_reason, &record.unread_field})
            *text = without_token_shapes(secrets(*text));
        output.write(line_of(record));
    }
    output.commit();
}

KeptLoadTest read_load_test(const fs::path& file) {
    KeptLoadTest test;
    std::size_t lines = 0;
    each_gzip_line(file, [&](std::size_t number, const std::string& line) {
        lines = number;
        const std::string place = file.string() + ":" + std::to_string(number);
        if (number > 1) {
            test.result.run.records.push_back(record_in(line, place));
            return;
        }
        try {
            test = read_head(line);
        } catch (const std::exception& error) {
            throw ParseError(place + ": not a kept load test: " + error.what());
        }
    });
    if (lines < 2) throw ParseError(file.string() + ": a load test without a request");
    return test;
}

std::optional<std::uint64_t> trial_of_kept(const fs::path& file) {
    const std::string name = file.filename().string();
    const auto dash = name.find('-');
    if (dash == std::string::npos || !name.ends_with(kept_ending)) return std::nullopt;
    const auto trial = integer_of(name.substr(0, dash));
    const auto number = integer_of(
        name.substr(dash + 1, name.size() - dash - 1 - std::string_view(kept_ending).size()));
    if (!trial || !number) return std::nullopt;
    const auto id = std::uint64_t(*trial);
    return name == kept_requests_name(id, std::size_t(*number)) ? std::optional(id) : std::nullopt;
}

std::vector<fs::path> kept_load_tests(const fs::path& study_folder) {
    std::vector<fs::path> result;
    std::error_code gone;
    for (fs::directory_iterator at(study_folder / kept_requests_folder, gone), end;
         !gone && at != end; at.increment(gone))
        if (trial_of_kept(at->path())) result.push_back(at->path());
    const auto key = [](const fs::path& file) {
        return std::pair(trial_of_kept(file).value_or(0), file.filename().string().size());
    };
    sort(result, [&](const fs::path& a, const fs::path& b) {
        return std::tuple(key(a), a) < std::tuple(key(b), b);
    });
    return result;
}

KeptRequests::KeptRequests(const fs::path& folder, Redactor secrets, std::size_t most_bytes)
    : folder_(folder), secrets_(std::move(secrets)), most_bytes_(most_bytes) {}

void KeptRequests::keep(const MeasuredLoad& load) {
    const std::scoped_lock lock(mutex_);
    std::error_code failed;
    fs::create_directories(folder_ / kept_requests_folder, failed);
    if (load.number == 0)
        for (const fs::path& file : kept_load_tests(folder_))
            if (trial_of_kept(file) == load.trial) fs::remove(file, failed);
    KeptLoadTest test;
    test.trial = load.trial;
    test.seed = load.seed;
    test.number = load.number;
    test.configuration = load.configuration;
    test.called = load.called;
    test.model = load.model;
    test.devices = load.test.known.devices;
    test.servers = 1 + load.test.endpoint.replicas.size();
    test.result = load.result;
    write_load_test(folder_ / kept_requests_folder / kept_requests_name(load.trial, load.number),
                    test, secrets_);
    make_room();
}

/// Without the one that was written last.
void KeptRequests::make_room() {
    std::vector<std::pair<fs::path, std::uintmax_t>> sizes;
    std::uintmax_t together = 0;
    for (const fs::path& file : kept_load_tests(folder_)) {
        std::error_code unknown;
        const auto bytes = fs::file_size(file, unknown);
        if (unknown) continue;
        sizes.emplace_back(file, bytes);
        together += bytes;
    }
    for (std::size_t i = 0; i + 1 < sizes.size() && together > most_bytes_; ++i) {
        if (trial_of_kept(sizes[i].first) == 0U) continue;
        std::error_code stays;
        if (fs::remove(sizes[i].first, stays)) together -= sizes[i].second;
    }
}

}  // namespace servetune
