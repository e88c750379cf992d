// SPDX-License-Identifier: Apache-2.0
// `autotune serve`: the report of a study in a browser, beside whoever runs it.
#include "commands.hpp"
#include "live_page.hpp"
#include "output.hpp"
#include "study_journal.hpp"

#include "servetune/error.hpp"

#include <csignal>

namespace autotune {

using namespace servetune;

namespace {

/// STUDY may be the study's folder, where its file lies beside that: `tune` beside `tune.yaml`.
StudyArguments with_file_beside(StudyArguments arguments) {
    std::error_code unknown;
    if (!std::filesystem::is_directory(arguments.study, unknown)) return arguments;
    std::filesystem::path folder = arguments.study;
    if (folder.filename().empty()) folder = folder.parent_path();
    for (const char* end : {".yaml", ".yml"}) {
        const std::filesystem::path file = folder.string() + end;
        if (!std::filesystem::exists(file, unknown)) continue;
        if (!arguments.directory) arguments.directory = folder;
        arguments.study = file;
        return arguments;
    }
    throw UsageError(folder.string() + " is a folder, and " + folder.string() +
                     ".yaml is not beside it: autotune serve STUDY.yaml --directory " + folder.string());
}

}  // namespace

int serve(const ServeArguments& given) {
    sigset_t stopping;
    sigemptyset(&stopping);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stopping, signal);
    pthread_sigmask(SIG_BLOCK, &stopping, nullptr);  // also in the threads that follow
    const StudyArguments arguments = with_file_beside(given);
    const LiveOptions options = live_options(given.address, given.token_file);
    StudyFile file = arguments.load_to_read();
    const std::filesystem::path folder = arguments.folder(file);
    StudySetup setup = set_up(std::move(file));
    setup.evaluator.reset();
    (void)read_journal(setup, folder);  // says what is wrong with it
    const Budget budget = setup.file.budget;
    try {
        const LivePage page(std::move(setup), folder, budget, options, [folder] { return somebody_writes(folder); });
        put(stdout, "{}\n", page.url());
        (void)std::fflush(stdout);
        int signal = 0;
        sigwait(&stopping, &signal);
    } catch (const IoError& error) {
        complain("autotune: {}", error.what());
        return environment_error;
    }
    return done;
}

}  // namespace autotune
