// SPDX-License-Identifier: Apache-2.0
#include "journal_event.hpp"

#include "base/nesting.hpp"
#include "json.hpp"
#include "servetune/journal.hpp"

#include <nlohmann/json.hpp>

#include <bit>

namespace servetune {

std::string JournalEvent::right_checksum() const {
    struct {
        std::string operator()(const std::string& text) const { return text; }
        std::string operator()(std::uint64_t number) const { return std::to_string(number); }
        std::string operator()(double number) const {  // its 64 bits, in hexadecimal digits
            return Fingerprint{std::bit_cast<std::uint64_t>(number)}.text();
        }
    } text_of_column;
    std::string bytes;
    for_each_column(*this, [&](const char*, const auto& member) {
        const std::string text = text_of_column(member);
        bytes += std::to_string(text.size()) + ":" + text;
    });
    return fingerprint_of(bytes).text();
}

std::string JournalEvent::name() const {
    return "event " + std::to_string(sequence) + ", '" + event + "' of trial " +
           std::to_string(trial);
}

std::string JournalEvent::environment() const {
    if (event != "started") return "";
    const auto object = shallow_json<nlohmann::json>(body);
    const auto named = object.is_object() ? object.find("environment") : object.end();
    return named != object.end() && named->is_string() ? named->get<std::string>() : "";
}

void JournalEvent::apply(std::vector<Trial>& trials, const KeptEnvironments& environments) const {
    try {
        if (event == "asked") {
            const auto object = nlohmann::json::parse(body, RefuseDeep());
            Trial asked{trial, configuration_from_json(object.at("configuration").dump()),
                        object.at("workload").get<std::string>(),
                        std::stoull(object.at("seed").get<std::string>()),
                        object.at("why").get<std::string>()};
            asked.asked_at = at;
            const auto purpose = named_in(purposes, object.at("purpose").get<std::string>());
            if (!purpose) throw ParseError("there is no such purpose");
            asked.purpose = *purpose;
            check_asked(trials, asked);
            trials.push_back(std::move(asked));
            return;
        }
        if (event != "started" && event != "told") throw ParseError("there is no such event");
        check_open(trials, trial);
        if (event == "started" && body == interrupted_body()) {
            check_started(trials, trial);
            --trials[trial].unended_starts;
        } else if (event == "started") {
            ++trials[trial].unended_starts;
            trials[trial].started_at = at;
            const auto kept = environments.find(environment());
            trials[trial].environment = kept != environments.end() ? kept->second : nullptr;
        } else {
            const SharedOutcome told = outcome_from_json(body);
            check_told(trials, trial, told);
            trials[trial].outcome = told;
            trials[trial].told_at = at;
        }
    } catch (const std::exception& error) {
        throw IoError("the '" + event + "' event of trial " + std::to_string(trial) +
                      " cannot be read: " + error.what());
    }
}

std::string asked_body(const Trial& trial) {
    check_utf8(trial.workload, "the workload of trial " + std::to_string(trial.id));
    nlohmann::ordered_json body;
    body["configuration"] = nlohmann::ordered_json::parse(json_of(trial.configuration));
    body["fingerprint"] = trial.configuration.fingerprint().text();
    body["workload"] = trial.workload;
    body["seed"] =
        std::to_string(trial.seed);  // 64 bits do not survive as a JSON number everywhere
    body["purpose"] = name_in(purposes, trial.purpose);
    body["why"] = trial.why;
    return body.dump(
        -1, ' ', false,
        nlohmann::ordered_json::error_handler_t::replace);  // the reason only: all else is UTF-8
}

std::string started_body(const std::string& environment) {
    return environment.empty() ? "{}" : nlohmann::ordered_json{{"environment", environment}}.dump();
}

std::string interrupted_body() { return R"({"interrupted":true})"; }

std::string told_body(const Outcome& outcome) { return json_of(outcome); }

}  // namespace servetune
