// SPDX-License-Identifier: Apache-2.0
// Whether a server that runs has the settings that a study recommends.
#include "output.hpp"
#include "recommend_into.hpp"

#include "base/url.hpp"
#include "deploy/server_probe.hpp"
#include "base/text.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

/// A setting that is recommended, and what the server says of it.
struct RunningSetting {
    std::string recommended;
    FlagInForce in_force{};
    bool by_default = false;  ///< the recommended command leaves it to the engine
};

std::string key_variable(const RecommendArguments& arguments, const StudyFile& file) {
    if (!arguments.api_key_environment.empty()) return arguments.api_key_environment;
    if (const auto* attach = std::get_if<AttachChoice>(&file.measuring))
        return attach->api_key_environment;
    if (const auto* deploy = std::get_if<DeployChoice>(&file.measuring))
        return deploy->api_key_environment;
    return "";
}

/// What clients call the model.
std::string served_name(const DeploySpec& spec) {
    std::string name = spec.model;
    for (const Setting& setting : spec.reader->flags(spec.flags, spec.engine).settings)
        for (const EngineParameter* parameter : setting.parameters)
            if (parameter->parameter.concept_name == "served_model_name") name = setting.value;
    return name;
}

/// What the command has, and what the study tuned and the command leaves out.
std::vector<RunningSetting> settings_wished(const DeploySpec& spec) {
    std::vector<RunningSetting> result;
    const std::vector<FlagUnit> units = flag_units(spec.flags, spec.engine, *spec.reader);
    for (const FlagUnit& unit : units)
        if (!unit.not_about_speed) result.push_back({unit.text(), {unit.flag, unit.value, {}, {}}});
    for (const std::string& name : spec.tuned) {
        const EngineParameter* declared = spec.engine.find(name);
        const bool there = std::any_of(units.begin(), units.end(),
                                       [&](const FlagUnit& unit) { return unit.key == name; });
        if (there || declared == nullptr || declared->destination.flag.empty()) continue;
        const std::string value = text_of(declared->parameter.default_value);
        result.push_back({name + ": the engine's default, " + value,
                          {declared->destination.flag, value, {}, {}},
                          true});
    }
    return result;
}

}  // namespace

int check_running(const RecommendArguments& arguments, const RecommendedHere& recommended,
                  const DeploymentModel& deployment, const DeploySpec& spec) {
    add_user_info(secrets(), *arguments.check);
    const std::string url = server_url(*arguments.check), shown = without_user_info(url);
    if (!arguments.at.empty())
        throw UsageError("--at chooses in a file; --check " + shown + " asks one server");
    if (!deployment.first().role.empty())
        throw UsageError("--check " + shown +
                         ": what is recommended is several servers, prefill and decode apart; "
                         "check the deploy file");
    Endpoint endpoint = endpoint_of(spec.engine, url, served_name(spec));
    if (const std::string variable = key_variable(arguments, recommended.setup.file);
        !variable.empty())
        endpoint.api_key = api_key_in(variable);

    std::vector<std::string> differences, not_told;
    constexpr double patience_seconds = 10;
    const ProbeAnswer answer = ServerProbe(spec.engine, endpoint, {}).ask(patience_seconds, false);
    if (answer.state == ProbeAnswer::State::failed && answer.kind == FailureKind::wrong_model)
        differences.push_back(answer.message);
    else if (answer.state != ProbeAnswer::State::serves) {
        const bool refused = answer.state == ProbeAnswer::State::not_allowed;
        complain("autotune: {} does not answer as {}: {}{}\n", shown, spec.engine.name,
                 answer.message, refused ? " (here --api-key-env)" : "");
        return environment_error;
    }
    std::vector<RunningSetting> settings = settings_wished(spec);
    std::vector<FlagInForce> flags;
    for (const RunningSetting& one : settings) flags.push_back(one.in_force);
    const bool tells = ask_flags_in_force(spec.engine, endpoint, flags);
    for (std::size_t i = 0; i < settings.size(); ++i) {
        using State = FlagInForce::State;
        const FlagInForce& now = flags[i];
        const std::string line =
            settings[i].recommended +
            (now.told.empty() ? "" : "; the server tells " + printable_line(now.told));
        // An engine may choose another default by its model and machine; a switch is on or off.
        const bool chosen = settings[i].by_default && now.told != "true" && now.told != "false";
        if (now.state == State::other && !chosen) differences.push_back(line);
        else if (now.state != State::same) not_told.push_back(line);
    }
    for (const auto& [name, value] : spec.environment)
        not_told.push_back("the variable " + name + "=" + value);
    for (const std::string& what : spec.unknown) not_told.push_back(what);
    if (arguments.json)
        put_json({{"server", shown},
                  {"tells", tells},
                  {"same", !differences.empty() ? OrderedJson(false)
                           : not_told.empty()   ? OrderedJson(true)
                                                : OrderedJson(nullptr)},
                  {"differences", differences},
                  {"not_known", not_told}});
    else {
        for (const std::string& what : differences) put(stdout, "not as recommended: {}\n", what);
        if (!tells)
            put(stdout, "note: {} at {} does not tell its settings\n", spec.engine.name, shown);
        for (const std::string& what : not_told) put(stdout, "not known: {}\n", what);
        if (differences.empty() && not_told.empty()) put(stdout, "{} runs as recommended\n", shown);
    }
    return !differences.empty() ? answer_is_no : not_told.empty() ? done : undecided;
}

}  // namespace autotune
