// SPDX-License-Identifier: Apache-2.0
// `autotune view`: the report of a study in a browser, beside whoever runs it.
#include "commands.hpp"
#include "live_page.hpp"
#include "output.hpp"
#include "study_journal.hpp"

#include "servetune/error.hpp"

#include <csignal>

namespace autotune {

int view(const ViewArguments& arguments) {
    sigset_t stopping;
    sigemptyset(&stopping);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stopping, signal);
    pthread_sigmask(SIG_BLOCK, &stopping, nullptr);  // also in the threads that follow
    StudyFile file = arguments.load_to_read();
    const fs::path folder = arguments.folder_to_read(file);
    const auto setup = std::make_shared<StudySetup>(set_up(std::move(file)));
    setup->evaluator.reset();
    (void)read_journal(*setup, folder);  // says what is wrong with it
    try {
        const LivePage page(setup, folder, setup->file.budget,
                            static_cast<std::uint16_t>(arguments.port),
                            [folder] { return somebody_writes(folder); });
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
