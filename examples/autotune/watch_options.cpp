// SPDX-License-Identifier: Apache-2.0
#include "watch_options.hpp"

#include "option_checks.hpp"

namespace autotune {

CLI::App* add_watch_command(CLI::App& app, WatchArguments& arguments) {
    CLI::App* command =
        app.add_subcommand("watch",
                           "Read a server's metrics page: exit code 1 if its traffic or speed is "
                           "not the study's any more, 6 if that is open");
    command
        ->add_option("STUDY", arguments.study,
                     "The study's YAML file, or the folder or journal of its run")
        ->required();
    command->add_option("--directory", arguments.directory,
                        "The folder of the run, for journal and report (default: ./<study name>)");
    command->add_option("--url", arguments.url, "The server, such as http://127.0.0.1:8000")
        ->required();
    command
        ->add_option("--interval", arguments.interval_seconds,
                     "Time between two readings, such as 30s (default: 1min)")
        ->transform(seconds_or_unit());
    CLI::Option* lasts = command
                             ->add_option("--for", arguments.for_seconds,
                                          "How long, such as 12h or 7d (default: 20 intervals)")
                             ->transform(seconds_or_unit());
    command->add_flag("--once", arguments.once, "Print what one interval shows, with exit code 0")
        ->excludes(lasts);
    command->add_flag("--json-lines", arguments.json_lines,
                      "Print one line of JSON per event on standard output");
    command->add_option("--api-key-env", arguments.api_key_environment,
                        "Environment variable that holds the page's API key");
    return command;
}

}  // namespace autotune
