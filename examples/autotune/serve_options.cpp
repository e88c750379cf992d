// SPDX-License-Identifier: Apache-2.0
#include "serve_options.hpp"

#include "option_checks.hpp"

namespace autotune {

void add_serve_command(CLI::App& app, ServeArguments& arguments) {
    CLI::App* command = app.add_subcommand(
        "serve",
        "Start what a study recommends, again when it falls; Ctrl-C ends it");
    command
        ->add_option("STUDY", arguments.study,
                     "The study's YAML file, or the folder or journal of its run")
        ->required();
    command->add_option("--directory", arguments.directory,
                        "The folder of the run, for journal and log (default: ./<study name>)");
    command
        ->add_option("--host", arguments.host,
                     "Address to listen on: 127.0.0.1, or 0.0.0.0 for other machines too")
        ->check(CLI::IsMember({"127.0.0.1", "0.0.0.0"}))
        ->capture_default_str();
    command->add_option("--port", arguments.port, "Port to listen on")
        ->check(whole_number(1, 65535))
        ->capture_default_str();
    command
        ->add_option("--restarts", arguments.restarts,
                     "How often it is started again before it is given up (exit code 3); an hour of "
                     "service makes up for one")
        ->check(whole_number(0, 1000))
        ->capture_default_str();
}

}  // namespace autotune
