// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "output.hpp"

#include "engine/flag_facts.hpp"

#include <nlohmann/json.hpp>

namespace autotune {

namespace {

std::string goes_to(const EngineParameter& parameter) {
    const Destination& to = parameter.destination;
    if (!to.flag.empty()) return to.flag;
    if (!to.option.empty()) return "option " + to.option;
    return to.environment.empty() ? "(with others)" : "env " + to.environment;
}

std::string versions_text(const EngineParameter& parameter) {
    if (parameter.since.empty() && parameter.until.empty()) return "";
    return parameter.until.empty()   ? "from " + parameter.since
           : parameter.since.empty() ? "to " + parameter.until
                                     : parameter.since + " to " + parameter.until;
}

void print_one(const Engine& engine, bool json) {
    if (json) {
        OrderedJson list = OrderedJson::array();
        for (const EngineParameter& p : engine.parameters)
            list.push_back({{"name", p.parameter.name},
                            {"passed", goes_to(p)},
                            {"domain", p.parameter.domain_text()},
                            {"default", text_of(p.parameter.default_value)},
                            {"concept", p.parameter.concept_name},
                            {"since", p.since},
                            {"until", p.until},
                            {"doc", p.parameter.doc},
                            {"source", p.source}});
        put_json(OrderedJson{
            {"engine", engine.name}, {"versions", engine.versions}, {"parameters", list}});
        return;
    }
    put(stdout, "{} {}\n\n", engine.name, engine.versions);
    for (const EngineParameter& p : engine.parameters) {
        const std::string versions = versions_text(p);
        put(stdout, "  {} ({}{})\n    {}; default {}\n    {}\n", p.parameter.name, goes_to(p),
            versions.empty() ? "" : ", " + versions, p.parameter.domain_text(),
            text_of(p.parameter.default_value), p.parameter.doc);
    }
    for (const Constraint& constraint : engine.constraints)
        put(stdout, "  {}\n", explained_text_of(constraint));
}

}  // namespace

int engines(const WordArguments& arguments) {
    const Catalogue catalogue = Catalogue::standard();
    if (!arguments.word.empty()) {
        print_one(catalogue.engine(arguments.word), arguments.json);
        return done;
    }
    OrderedJson list = OrderedJson::array();
    for (const Engine& engine : catalogue.engines()) {
        std::vector<std::string> versions;
        for (const FlagFacts& facts : known_versions(catalogue.root(), engine.name))
            versions.push_back(facts.version);
        if (arguments.json)
            list.push_back({{"engine", engine.name},
                            {"versions", engine.versions},
                            {"parameters", engine.parameters.size()},
                            {"constraints", engine.constraints.size()},
                            {"flags_known_for", versions}});
        else
            put(stdout, "{:14} {:12} {:3} parameters, {:2} constraints; flags known for {}\n",
                engine.name, engine.versions, engine.parameters.size(), engine.constraints.size(),
                fmt::join(versions, ", "));
    }
    if (arguments.json) put_json(list);
    return done;
}

}  // namespace autotune
