// SPDX-License-Identifier: Apache-2.0
#include "command_table.hpp"
#include "commands.hpp"
#include "output.hpp"

#include "servetune/detail/load/probe.hpp"
#include "servetune/error.hpp"
#include "servetune/version.hpp"
#include "study_file/secrets.hpp"

#include <CLI/CLI.hpp>

namespace {

using namespace autotune;

/// Adds a row of the table to the parser.
void add_to_parser(CLI::App& app, const OptionRow& row) {
    CLI::Option* option = std::visit(
        [&](auto* target) -> CLI::Option* {
            if constexpr (std::is_same_v<decltype(target), bool*>)
                return app.add_flag(row.names, *target);
            else return app.add_option(row.names, *target);
        },
        row.target);
    if (row.required) option->required();
    if (row.list) option->delimiter(',');
    if (row.takes_several() && !row.list && !row.many && !row.by_place())
        option->allow_extra_args(false);
    if (!row.words.empty())
        option->check(
            [words = row.words](const std::string& text) { return why_no_word(text, words); }, "");
    if (row.input)
        option->transform(CLI::Validator(
            [](std::string& text) {
                if (text == "-") text = "/dev/stdin";
                return std::string();
            },
            ""));
    if (row.if_alone) option->expected(0, 1)->default_str(*row.if_alone);
    if (row.bounds.kind != OptionBounds::Kind::any)
        option->transform(CLI::Validator(
            [bounds = row.bounds](std::string& text) { return bounds.why_wrong(text); }, ""));
}

/// What needs or excludes other options of its command.
void relate(CLI::App& app, const OptionRow& row) {
    if (row.needs.empty() && row.excludes.empty()) return;
    CLI::Option* option = app.get_option(row.spellings().front());
    for (const std::string& name : row.needs) option->needs(app.get_option(name));
    for (const std::string& name : row.excludes) option->excludes(app.get_option(name));
}

int dispatch(int argc, char** argv) {
    const std::vector<CommandRow> all = commands();
    const std::span<const char* const> words(argv, std::size_t(argc));
    if (argc > 2 && std::string_view(words[1]) == "completion" &&
        std::string_view(words[2]) == "words") {
        put_controls(stdout, completions(all, words.subspan(3)));
        return done;
    }
    if (argc < 2) {
        put_text(stderr, help_text(all));
        return usage_error;
    }
    CLI::App app;
    app.set_version_flag("-V,--version", std::string(servetune::library_version));
    app.require_subcommand(1);
    for (const CommandRow& command : all) {
        CLI::App* parser = app.add_subcommand(command.name);
        for (const OptionRow& row : command.options) add_to_parser(*parser, row);
        for (const OptionRow& row : command.options) relate(*parser, row);
    }
    const auto chosen = [&]() -> const CommandRow* {
        for (const CommandRow& command : all)
            if (app.got_subcommand(command.name)) return &command;
        return nullptr;
    };
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForVersion&) {
        put(stdout, "autotune {}\n", servetune::library_version);
        return done;
    } catch (const CLI::CallForHelp&) {
        const CommandRow* command = chosen();
        put_text(stdout, command == nullptr ? help_text(all) : help_text(*command));
        return done;
    } catch (const CLI::ParseError& error) {
        put_text(stderr, complaint_of(all, error.what(), words));
        return usage_error;
    }
    return chosen()->run();
}

}  // namespace

int main(int argc, char** argv) {
    occupy_standard_streams();
    int code = environment_error;
    secrets().add(servetune::secrets_of_environment());
    const servetune::CollectSecrets collecting(secrets());  // of all files that are read
    try {
        code = dispatch(argc, argv);
    } catch (const servetune::ServerError& error) {
        put_text(stderr, complaint_of(error));
    } catch (const servetune::Error& error) {
        put_text(stderr, complaint_of(error));
        code = usage_error;
    } catch (const std::exception& error) {
        // A failed print throws too: what is wrong with standard output is said below.
        if (std::ferror(stdout) == 0) put_text(stderr, complaint_of(error));
    }
    return with_output_written(code);
}
