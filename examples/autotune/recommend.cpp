// SPDX-License-Identifier: Apache-2.0
// What a study recommends, as a file that starts it.
#include "commands.hpp"
#include "output.hpp"
#include "recommend_into.hpp"
#include "study_journal.hpp"

#include "base/files.hpp"
#include "handover/artefact.hpp"
#include "base/text.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

/// Who may read a script may start it.
std::filesystem::perms for_who_reads(const std::filesystem::path& file) {
    using std::filesystem::perms;
    const perms now = std::filesystem::status(file).permissions();
    const auto also = [&](perms read, perms execute) {
        return (now & read) != perms::none ? execute : perms::none;
    };
    return also(perms::owner_read, perms::owner_exec) | also(perms::group_read, perms::group_exec) |
           also(perms::others_read, perms::others_exec);
}

}  // namespace

int recommend_as(const RecommendArguments& arguments) {
    const StudySetup setup = set_up(arguments.load_to_read());
    if (!setup.file.said_twice.empty()) throw ParseError(setup.file.said_twice.front());
    const std::vector<Trial> trials = read_journal(setup, arguments.folder(setup.file)).trials();
    const Headline headline = headline_of(setup, trials);
    const Recommendation result = recommend(*setup.problem, search_history(*setup.problem, trials));
    if (result.conclusion == Conclusion::nothing_passes) {
        complain("autotune: {}. {}", headline.title, headline.reason);
        return nothing_feasible;
    }
    DeploymentOptions options{
        arguments.host, arguments.port, arguments.image, arguments.gpus,
        setup.file.secrets(
            headline.title +
            (result.conclusion == Conclusion::inconclusive ? ": this starts the default." : ".") +
            (headline.unsound.empty() ? "" : " " + headline.unsound))};
    if (setup.file.machine.found) options.topology = setup.file.machine.found->topology;
    for (const Trial& trial : trials)
        if (const Measurement* measured = trial.measurement();
            measured != nullptr && trial.configuration == result.recommended)
            if (const auto copies = measured->metrics.find("replicas");
                copies != measured->metrics.end())
                options.replicas = static_cast<std::int64_t>(copies->second.value);
    if (arguments.into || arguments.check)
        return recommend_into(arguments, {setup, trials, headline, result, options});
    const Artefact artefact = artefact_of(arguments.as, setup, result.recommended, options);
    if (!artefact.left_out.empty())
        put(stderr, "warning: {} does not have what the study has: {}\n", artefact.name,
            printable_line(artefact.left_out));
    if (arguments.output) {
        std::filesystem::create_directories(*arguments.output);
        write_file(*arguments.output / artefact.name, artefact.text);
        if (artefact.executable)
            std::filesystem::permissions(*arguments.output / artefact.name,
                                         for_who_reads(*arguments.output / artefact.name),
                                         std::filesystem::perm_options::add);
        for (const auto& [name, content] : artefact.beside)
            write_file(*arguments.output / name, content);
    }
    if (arguments.json) {
        put_json(OrderedJson{{"kind", arguments.as},
                             {"name", artefact.name},
                             {"text", artefact.text},
                             {"beside", artefact.beside},
                             {"left_out", artefact.left_out}});
        return done;
    }
    if (arguments.output) {
        put(stdout, "{}\n", (*arguments.output / artefact.name).string());
        for (const auto& [name, content] : artefact.beside)
            put(stdout, "{}\n", (*arguments.output / name).string());
        return done;
    }
    if (!artefact.beside.empty())
        throw UsageError("there are more files (" + artefact.beside.begin()->first +
                         "): --output DIR writes all");
    put(stdout, "{}", artefact.text);
    return done;
}

}  // namespace autotune
