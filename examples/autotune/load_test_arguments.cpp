// SPDX-License-Identifier: Apache-2.0
#include "load_test_arguments.hpp"

#include "output.hpp"
#include "screen.hpp"

#include "base/files.hpp"
#include "base/nesting.hpp"
#include "base/url.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/detail/load/probe.hpp"
#include "servetune/error.hpp"
#include "study_file/yaml.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <utility>

namespace autotune {

using namespace servetune;

namespace {

/// `random:1024x128` is a workload without a file; anything else a name or a file.
Workload workload_of(const LoadTestArguments& arguments, const Catalogue& catalogue) {
    std::string yaml = "\"" + arguments.workload + "\"";
    if (arguments.workload.starts_with("random:")) {
        const std::string lengths = arguments.workload.substr(7);
        const auto cross = std::min(lengths.find('x'), lengths.size() - 1);
        const auto is_count = [](const std::string& text) {
            return !text.empty() && text.size() <= 9 &&
                   text.find_first_not_of("0123456789") == std::string::npos &&
                   text.find_first_not_of('0') != std::string::npos;
        };
        if (lengths.empty() || !is_count(lengths.substr(0, cross)) ||
            !is_count(lengths.substr(cross + 1)))
            throw UsageError(
                "random:INPUTxOUTPUT in tokens wanted, such as random:1024x128, got '" +
                arguments.workload + "'");
        yaml =
            "{workload: random, dataset: {kind: random, input_tokens: " + lengths.substr(0, cross) +
            ", output_tokens: " + lengths.substr(cross + 1) + "}, requests: 100, ignore_eos: true}";
    }
    const std::string& said = arguments.workload;
    const auto cross = std::min(said.find_first_not_of("0123456789"), said.size());
    if (cross > 0 && cross + 1 < said.size() && (said[cross] == 'x' || said[cross] == 'X') &&
        said.find_first_not_of("0123456789", cross + 1) == std::string::npos)
        throw UsageError("--workload " + said + ": write random:" + said.substr(0, cross) + "x" +
                         said.substr(cross + 1));
    Workload workload = catalogue.workload(Yaml::parse(yaml, "--workload"));
    if (arguments.requests) workload.requests = static_cast<std::int64_t>(*arguments.requests);
    if (arguments.seed) workload.seed = *arguments.seed;
    if (arguments.ignore_eos) workload.ignore_eos = true;
    return workload;
}

/// The names under which any engine that we know counts.
std::vector<std::pair<std::string, std::string>> counters_of(const Catalogue& catalogue) {
    std::vector<std::pair<std::string, std::string>> result;
    for (const Engine& engine : catalogue.engines())
        for (const auto& [ours, theirs] : engine.counters) result.emplace_back(ours, theirs);
    return result;
}

/// What is wrong with a header is said without its value, which may be a secret.
std::pair<std::string, std::string> header_of(const std::string& text) {
    const auto colon = text.find(':');
    const std::string wanted = "--header wants NAME:VALUE, such as 'X-Tenant: 7'; ";
    if (colon == std::string::npos) throw UsageError(wanted + "there is no colon");
    const std::string name = text.substr(0, colon);
    const auto begin = text.find_first_not_of(" \t", colon + 1);
    const auto is_token = [](char c) {  // RFC 9110, 5.6.2
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    };
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_token))
        throw UsageError(wanted + "a name has letters, digits and -, and no blanks");
    if (begin == std::string::npos) throw UsageError(wanted + name + " has no value");
    const std::string value = text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
    if (std::any_of(value.begin(), value.end(),
                    [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7f; }))
        throw UsageError(wanted + "the value of " + name + " has control characters");
    return {name, value};
}

Endpoint endpoint_of(const LoadTestArguments& arguments, const Catalogue& catalogue) {
    Endpoint endpoint;
    add_user_info(secrets(), arguments.url);
    endpoint.url = server_url(arguments.url);
    for (const std::string& url : arguments.replicas) {
        add_user_info(secrets(), url);
        endpoint.replicas.push_back(server_url(url));
    }
    endpoint.api = arguments.completions || arguments.token_ids ? Endpoint::Api::completions
                                                                : Endpoint::Api::chat;
    endpoint.stream = arguments.stream;
    endpoint.usage = arguments.usage;
    endpoint.extra_body = arguments.extra_body;
    endpoint.certificates = arguments.certificates;
    endpoint.counters = counters_of(catalogue);
    if (!arguments.api_key_environment.empty())
        endpoint.api_key = api_key_in(arguments.api_key_environment);
    for (const std::string& header : arguments.headers) {
        endpoint.headers.push_back(header_of(header));
        const std::string& value = endpoint.headers.back().second;
        secrets().add(value);
        secrets().add(value.substr(value.find(' ') + 1));  // `Bearer KEY`: the key by itself too
    }
    if (!endpoint.extra_body.empty() &&
        !shallow_json<nlohmann::json>(endpoint.extra_body).is_object())
        throw UsageError("--extra-body wants a JSON object such as {\"temperature\": 0}, got '" +
                         endpoint.extra_body + "'");
    endpoint.model = arguments.model;
    if (!endpoint.model.empty()) return endpoint;
    const std::vector<std::string> served = served_models(endpoint);
    if (served.size() != 1)
        throw UsageError(served.empty() ? without_user_info(endpoint.url) +
                                              " answers, but has no list of models (/v1/models); "
                                              "name the model with --model"
                                        : without_user_info(endpoint.url) +
                                              " serves several models; name one with --model: " +
                                              listed(served));
    endpoint.model = served.front();
    return endpoint;
}

}  // namespace

std::string api_key_in(const std::string& variable) {
    const char* value =
        std::getenv(variable.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets it
    if (value == nullptr)
        throw UsageError("the environment has no " + variable + ", which --api-key-env names");
    secrets().add(value, "${" + variable + "}");
    return value;
}

LoadTest load_test_of(const LoadTestArguments& arguments, const Catalogue& catalogue) {
    LoadTest test;
    test.endpoint = endpoint_of(arguments, catalogue);
    test.workload = workload_of(arguments, catalogue);
    test.options.loops = arguments.loops;
    test.options.request_timeout_seconds = arguments.request_timeout_seconds;
    test.options.stall_timeout_seconds = arguments.stall_timeout_seconds;
    test.token_ids = arguments.token_ids;
    test.salt = arguments.salt ? *arguments.salt : std::uint64_t{std::random_device{}()};
    if (!arguments.facts_of.empty()) test.known.served = catalogue.model(arguments.facts_of);
    else test.known.served = served_model(test.endpoint.model, catalogue.all_models());
    if (!arguments.hardware.empty()) test.known.hardware = catalogue.hardware(arguments.hardware);
    test.known.devices = arguments.devices;
    return test;
}

ResultFiles::ResultFiles(const std::vector<std::optional<std::filesystem::path>>& files) {
    for (const auto& file : files)
        if (file) check_writable(*file);
}

void ResultFiles::write(const std::optional<std::filesystem::path>& file,
                        const std::function<void(const std::filesystem::path&)>& write) {
    if (!file) return;
    try {
        write(*file);
    } catch (const IoError&) {
        if (!failure_) failure_ = std::current_exception();
    }
}

void ResultFiles::end() const {
    if (failure_) std::rethrow_exception(failure_);
}

LoadProgressLine::LoadProgressLine(bool shown) : shown_(shown), terminal_(screen().terminal()) {}

void LoadProgressLine::show(const LoadProgress& at, const std::string& what) {
    constexpr double seconds_between_lines = 30;
    if (!shown_ || (!terminal_ && at.seconds < next_seconds_)) return;
    next_seconds_ = at.seconds + seconds_between_lines;
    const std::string text = fmt::format(
        "{}{:6.1f} s  {} of {} ended, {} in flight, {} failed, {} token chunks", what, at.seconds,
        at.ended, at.planned, at.sent - at.ended, at.failed, at.token_chunks);
    if (terminal_) screen().status({text});
    else put_text(stderr, text);
}

void LoadProgressLine::say(const std::string& line) {
    if (!shown_) return;
    end();
    screen().line(line);
    next_seconds_ = 0;
}

void LoadProgressLine::end() { screen().status({}); }

}  // namespace autotune
