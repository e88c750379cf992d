// SPDX-License-Identifier: Apache-2.0
#include "server_probe.hpp"

#include "base/nesting.hpp"
#include "base/text.hpp"
#include "engine/command_reader.hpp"
#include "load/http.hpp"
#include "load/metrics_page.hpp"
#include "load/request_body.hpp"
#include "servetune/value.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string_view>
#include <utility>

namespace servetune {
namespace {

using Json = nlohmann::json;
using State = ProbeAnswer::State;

constexpr double short_answer_seconds = 5;  // for what a server knows by heart

// A server's words are in them: in one line, so that none of it looks like a line of ours.
ProbeAnswer not_yet(const std::string& what) {
    return {State::not_yet, FailureKind::other, printable_line(what)};
}
ProbeAnswer failed(FailureKind kind, const std::string& what) {
    return {State::failed, kind, printable_line(what)};
}

std::string said(const std::string& what, const Reply& reply) { return what + trouble_text(reply); }

/// An answer of a server that wants a key, or another one.
std::optional<ProbeAnswer> not_allowed(const std::string& what, const Reply& reply,
                                       const Endpoint& endpoint) {
    if (!reply.error.empty() || (reply.status != 401 && reply.status != 403)) return std::nullopt;
    return ProbeAnswer{State::not_allowed, FailureKind::infrastructure,
                       said(what, reply) + (endpoint.api_key.empty()
                                                ? "; the server wants a key: let `api_key_env` "
                                                  "name the environment variable that holds it"
                                                : "; the server does not accept the key from the "
                                                  "variable that `api_key_env` names")};
}

/// A model on disk is called by its path or by its last part, as the engine likes.
bool same_model(const std::string& expected, const std::string& got) {
    const bool is_file =
        expected.starts_with('/') || expected.starts_with('.') || expected.ends_with(".gguf");
    const auto last = [](const std::string& path) {
        return std::filesystem::path(path).filename();
    };
    return got == expected || (is_file && !got.empty() && last(expected) == last(got));
}

const Json* member(const Json& object, const char* name) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    return object.is_object() && found != object.end() ? &*found : nullptr;
}

bool names_model(const std::vector<std::string>& models, const std::string& expected) {
    return any_of(models, [&](const std::string& model) { return same_model(expected, model); });
}

/// Whether the answer has a token: counted, or as text where the server does not count.
bool has_token(const Json& answer) {
    const Json* usage = member(answer, "usage");
    if (const Json* count = usage != nullptr ? member(*usage, "completion_tokens") : nullptr;
        count != nullptr && count->is_number())
        return *count > 0;
    const Json* choices = member(answer, "choices");
    if (choices == nullptr || !choices->is_array() || choices->empty()) return false;
    const Json* message = member(choices->front(), "message");
    const Json* text =
        message != nullptr ? member(*message, "content") : member(choices->front(), "text");
    return text != nullptr && text->is_string() && !text->get<std::string>().empty();
}

}  // namespace

ProbeAnswer ServerProbe::ask(double timeout_seconds, bool completion) const {
    const std::string ready = "GET " + engine_.ready_path;
    const Reply health = get(endpoint_, engine_.ready_path,
                             std::min(timeout_seconds, short_answer_seconds), give_up_);
    if (auto refused = not_allowed(ready, health, endpoint_)) return *refused;
    if (!health.error.empty() || health.status != 200) return not_yet(said(ready, health));
    const ProbeAnswer models = ask_models(timeout_seconds);
    return models.state == State::serves && completion ? ask_completion(timeout_seconds) : models;
}

ProbeAnswer ServerProbe::ask_models(double timeout_seconds) const {
    const std::string what = "GET " + endpoint_.models_path;
    const ModelList list =
        ask_for_models(endpoint_, std::min(timeout_seconds, short_answer_seconds), give_up_);
    if (auto refused = not_allowed(what, list.reply, endpoint_)) return *refused;
    if (list.state == ModelList::State::no_such_path) return {State::serves};
    if (list.state == ModelList::State::no_answer) return not_yet(said(what, list.reply));
    if (list.state == ModelList::State::not_a_list)
        return failed(FailureKind::load_test_failed,
                      what + " is no list of models: " + list.reply.body.substr(0, 300));
    if (names_model(list.names, endpoint_.model)) return {State::serves};
    std::string names;
    for (const std::string& model : list.names) names += (names.empty() ? "" : ", ") + model;
    return failed(FailureKind::wrong_model, "the server was to serve " + endpoint_.model +
                                                ", it serves " + (names.empty() ? "none" : names));
}

ProbeAnswer ServerProbe::ask_completion(double timeout_seconds) const {
    Endpoint whole = endpoint_;
    whole.stream = false;
    const std::string path = path_of(whole);
    const Reply reply =
        post(whole, path, request_body(whole, {.text = "Hello", .output_tokens = 1}, {}, false),
             timeout_seconds, give_up_);
    const std::string what = "a first POST " + path;
    if (auto refused = not_allowed(what, reply, endpoint_)) return *refused;
    if (!reply.error.empty() || reply.status == 503 || reply.status == 429)
        return not_yet(said(what, reply));
    if (reply.status == 404)
        return failed(FailureKind::wrong_model, said(what + " for " + whole.model, reply));
    if (reply.status != 200) return failed(FailureKind::load_test_failed, said(what, reply));
    const auto answer = shallow_json<Json>(reply.body);
    if (!answer.is_object())
        return failed(FailureKind::load_test_failed,
                      what + " is answered with what is no JSON: " + reply.body.substr(0, 300));
    if (const Json* model = member(answer, "model");
        model != nullptr && model->is_string() &&
        !same_model(whole.model, model->get<std::string>()))
        return failed(FailureKind::wrong_model, "the server was to serve " + whole.model +
                                                    ", its first answer is of " +
                                                    model->get<std::string>());
    if (!has_token(answer))
        return failed(FailureKind::load_test_failed,
                      what + " is answered without a token: " + reply.body.substr(0, 300));
    return {State::serves};
}

std::string ServerProbe::why_not_listed() const {
    const std::string what = "GET " + endpoint_.models_path;
    const ModelList list = ask_for_models(endpoint_, short_answer_seconds, give_up_);
    if (list.state == ModelList::State::no_such_path) return "";
    if (list.state == ModelList::State::no_answer) return said(what, list.reply);
    return names_model(list.names, endpoint_.model)
               ? ""
               : what + " does not list " + endpoint_.model + " any more";
}

std::optional<double> ServerProbe::process_start_seconds() const {
    if (endpoint_.metrics_path.empty()) return std::nullopt;
    const Reply reply = get(endpoint_, endpoint_.metrics_path, short_answer_seconds, give_up_);
    if (!reply.error.empty() || reply.status != 200) return std::nullopt;
    return metric_in(reply.body, "process_start_time_seconds");
}

Endpoint endpoint_of(const Engine& engine, int port, const std::string& model) {
    return endpoint_of(engine, "http://127.0.0.1:" + std::to_string(port), model);
}

Endpoint endpoint_of(const Engine& engine, const std::string& address, const std::string& model) {
    Endpoint endpoint{address, model};
    const auto path = [&](const char* name) {
        const auto found = engine.api.find(name);
        return found != engine.api.end() ? found->second : "";
    };
    if (path("chat").empty() && !path("completions").empty())
        endpoint.api = Endpoint::Api::completions;
    endpoint.answers_path = path(endpoint.api == Endpoint::Api::chat ? "chat" : "completions");
    if (!path("models").empty()) endpoint.models_path = path("models");
    const auto url =
        engine.counters.find("url");  // without: some engine's /metrics loses what is read
    endpoint.metrics_path = url == engine.counters.end() ? "" : url->second;
    for (const auto& [ours, theirs] : engine.counters)
        if (ours != "url") endpoint.counters.emplace_back(ours, theirs);
    return endpoint;
}

namespace {

/// What `server_info` calls a flag.
std::string name_in_info(const Engine& engine, const std::string& flag) {
    if (const auto given = engine.reported_as.find(flag); given != engine.reported_as.end())
        return given->second;
    std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

/// Labels are texts, of Python's values: `True`, `0.92`, `auto`.
Json told_by(const std::map<std::string, std::string>& labels) {
    Json info = Json::object();
    for (const auto& [name, text] : labels)
        if (text == "True" || text == "False") info[name] = text == "True";
        else if (real_of(text)) info[name] = shallow_json<Json>(text);
        else if (text != "None") info[name] = text;
    return info;
}

bool says(const Json& value, const std::string& asked) {
    if (value.is_boolean())
        return asked.empty() ? value.get<bool>() : asked == (value.get<bool>() ? "true" : "false");
    if (value.is_number()) return real_of(asked) == value.get<double>();
    return value.get<std::string>() == asked;
}

/// Whether what is told cannot be what was asked for under another name, scaled, or the share of
/// one of so many replicas or ranks (`factors`).
bool surely_another(const Json& value, const std::string& asked,
                    const std::vector<double>& factors) {
    if (value.is_boolean()) return true;
    const auto wanted = real_of(asked);
    if (!value.is_number() || !wanted || std::floor(*wanted) != *wanted) return false;
    const double told = value.get<double>();
    return none_of(factors, [&](double n) { return n > 1 && std::floor(*wanted / n) == told; });
}

}  // namespace

bool ask_flags_in_force(const Engine& engine, const Endpoint& endpoint,
                        std::vector<EffectiveFlag>& flags) {
    const auto path = engine.api.find("server_info");
    if (path == engine.api.end()) return false;
    const std::size_t mark = path->second.find('#');  // behind it a metric, which labels tell
    const Reply reply = get(endpoint, path->second.substr(0, mark), short_answer_seconds);
    const bool told = reply.error.empty() && reply.status == 200;
    const Json info = !told ? Json()
                      : mark == npos
                          ? shallow_json<Json>(reply.body)
                          : told_by(labels_in(reply.body, path->second.substr(mark + 1)));
    if (!info.is_object()) return false;
    std::vector<double> factors;
    for (const DeviceFactor& factor : engine.devices)
        for (const EffectiveFlag& one : flags)
            if (const EngineParameter* declared = engine.find(factor.parameter);
                declared != nullptr && declared->destination.flag == one.flag)
                if (const auto number = real_of(one.asked)) factors.push_back(*number);
    for (EffectiveFlag& one : flags) {
        using State = EffectiveFlag::State;
        const Json* value = member(info, name_in_info(engine, one.flag).c_str());
        // Of lists, objects and null we know too little.
        if (value == nullptr || !(value->is_boolean() || value->is_number() || value->is_string()))
            continue;
        one.told = value->dump(-1, ' ', false, Json::error_handler_t::replace);
        if (says(*value, one.asked)) one.state = State::same;
        else if (one.asked == "auto" || one.asked == "-1" ||
                 (value->is_number() && !real_of(one.asked)))
            one.state = State::not_told;  // what the engine chooses, or a size such as 4G
        else
            one.state =
                surely_another(*value, one.asked, factors) ? State::other : State::perhaps_other;
    }
    return true;
}

FlagsNotInForce flags_not_in_force(const Engine& engine, const Endpoint& endpoint,
                                   const std::vector<std::string>& argv) {
    FlagsNotInForce result;
    std::vector<EffectiveFlag> flags;
    const CommandReader reader({engine});
    for (const Setting& setting : reader.read({argv}).settings) {
        const std::string written =
            setting.words.front().substr(0, setting.words.front().find('='));
        const std::string& flag =
            setting.alone && setting.value == "false" ? written : setting.name;
        if (flag.starts_with("--") && setting.key.empty() && !setting.not_about_speed)
            flags.push_back({flag, setting.alone ? "" : setting.value, {}, {}});
    }
    ask_flags_in_force(engine, endpoint, flags);
    for (const EffectiveFlag& one : flags) {
        const std::string line = one.text() + " was asked for, " + one.told + " is in force";
        if (one.state == EffectiveFlag::State::other) result.sure.push_back(line);
        if (one.state == EffectiveFlag::State::perhaps_other) result.perhaps.push_back(line);
    }
    return result;
}

}  // namespace servetune
