// SPDX-License-Identifier: Apache-2.0
// Names of environment variables, wherever one is given, and those that our own scripts use.
#include "support/process.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "base/variable_name.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/error.hpp"
#include "servetune/launcher.hpp"
#include "servetune/study_file.hpp"
#include "study_file/yaml.hpp"
#include "study_file/yaml_text.hpp"

#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::vector<std::string> no_names{
    "$(touch PWNED)", "`id`", "A;id", "A B", "",   "1A",  "A=B", "A\nB", "A-B", "A.B",
    "\xC3\xA4",       "A\"B", "A'B",  "A$B", "A}", "A%%", "[A]"};
const std::vector<std::string> names_of_scripts{"st_folder", "st_rm", "st_setsid",
                                                "st_line",   "st_",   "st_pids"};

/// A study in which a name stands in a place of its own, on the ninth line.
std::string study_with_name(const std::string& space, const std::string& evaluator) {
    return "study: s\nmodel: Qwen/Qwen3-8B\nengine: vllm\nothers: default\nhardware: {count: 1}\n"
           "workloads: [{use: random}]\nobjective: {maximize: total_tokens_per_second}\nspace:\n " +
           space + "\nevaluator:\n " + evaluator + "\n";
}

}  // namespace

TEST_CASE("variable names: one rule, and a table of what is refused") {
    for (const char* name : {"A", "_", "HF_TOKEN", "a1", "CUDA_VISIBLE_DEVICES", "stride", "st"}) {
        CHECK(is_variable_name(name));
        CHECK(wrong_with_variable(name).empty());
    }
    for (const std::string& name : no_names) CHECK_FALSE(is_variable_name(name));
    for (const auto* list : {&no_names, &names_of_scripts})
        for (const std::string& name : *list) CHECK_FALSE(wrong_with_variable(name).empty());
    for (const char* name : {"HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID",
                             "db_password", "MY_APIKEY", "X_AUTH", "APPKEY"})
        CHECK(names_secret(name));
    for (const char* name : {"PWD", "OLDPWD", "PATH", "SSH_AUTH_SOCK", "NCCL_IB_PKEY",
                             "DB_PASSWORD_FILE", "VLLM_MAX_TOKENS", "XAUTHORITY"})
        CHECK_FALSE(names_secret(name));
}

TEST_CASE(
    "variable names: a study that gives another one is refused with its file and line, wherever it "
    "stands") {
    const TemporaryFolder folder;
    const std::string usual = "max_num_seqs: {choice: [engine, 8]}";
    int accepted = 0;
    for (const auto* list : {&no_names, &names_of_scripts})
        for (const std::string& name : *list) {
            const std::string quoted = yaml_quoted(name);
            for (const auto& [study, line] :
                 {std::pair(study_with_name(
                                usual, "{deploy: {watch: off, environment: {" + quoted + ": v}}}"),
                            11),
                  {study_with_name(usual,
                                   "{command: {run: [./m], environment: {" + quoted + ": v}}}"),
                   11},
                  {study_with_name(usual, "{deploy: {watch: off, api_key_env: " + quoted + "}}"),
                   11},
                  {study_with_name("odd: {env: " + quoted + ", choice: [a, b], default: a}",
                                   "{deploy: {watch: off}}"),
                   9}}) {
                if (name.size() % 4 != 0 && !has(study, "{deploy: {watch: off, environment:"))
                    continue;  // a quarter of them there
                const std::string why = message_of<ParseError>([&, &text = study] {
                    (void)load_study(folder.write("study.yaml", text), shipped_catalogue);
                });
                INFO(study << why);
                accepted += has(why, "study.yaml:" + std::to_string(line) + ":") &&
                                    has(why, name == "A\nB" ? "'A B'" : "'" + name + "'")
                                ? 0
                                : 1;
            }
        }
    CHECK(accepted == 0);
    CHECK(message_of<ParseError>([&] {
              (void)load_study(
                  folder.write(
                      "study.yaml",
                      study_with_name(usual, "{deploy: {watch: off, environment: {MY_X1: v}}}")),
                  shipped_catalogue);
          }).empty());
    // What stands in ${}, and in files of engines.
    CHECK(has(message_of<ParseError>(
                  [] { (void)Yaml::parse("a: 1\nb: \"${$(touch PWNED)}\"\n", "f.yaml"); }),
              "f.yaml:2:4: 'b': '${$(touch PWNED)}'"));
    CHECK(has(message_of<ParseError>([] { (void)Yaml::parse("b: \"${A B:-c}\"\n", "f.yaml"); }),
              "'A B' is no name of an environment variable"));
    fs::create_directories(folder.path() / "engines");
    folder.write("engines/odd.yaml",
                 "engine: odd\nlaunch: [odd, \"{model}\"]\nparameters: {p: {env: \"$(id)\", "
                 "choice: [a, b], default: a}}\n");
    CHECK(has(message_of<ParseError>([&] { (void)Catalogue(folder.path()).engine("odd"); }),
              "odd.yaml:3:"));
}

TEST_CASE(
    "variable names: the library starts nothing with another one, and shows none as a command") {
    for (const std::string& name : no_names) {
        ProcessOptions process;
        process.argv = {"/bin/true"};
        process.environment = {{name, "v"}};
        CHECK_FALSE(process.why_invalid().empty());
        Command command{{"serve"}, {{name, "v"}}};
        INFO(command.text());
        // A word like any other: a shell looks for a program of that name.
        if (name.find_first_of("$`; \n\"}[") != std::string::npos)
            CHECK(command.text() == "'" + name + "'=v serve");
    }
    const auto elsewhere = wrapped_launcher({"mine", {"/bin/true"}});
    for (const auto* list : {&no_names, &names_of_scripts})
        for (const std::string& name : *list) {
            const Command command{{"serve"}};
            CHECK_THROWS_AS(elsewhere->launch(LaunchRequest{
                                .command = command, .environment = {{name, "v"}}, .mark = "m"}),
                            UsageError);
        }
}

TEST_CASE(
    "variable names: the environment of an engine changes nothing of what the script on the other "
    "machine does") {
    const TemporaryFolder folder;
    fs::create_directories(folder.path() / "victim");
    folder.write("victim/f", "x");
    const std::string victim = (folder.path() / "victim").string();
    // As a client would send it that does not check names. IFS parts words, PATH finds no tool.
    folder.write(
        "told", "set host h\nset program " + (folder.path() / "client").string() +
                    "\nstudy label\nname st-test\nset unheard_within 5\nstop_within 0\nenvironment "
                    "st_folder=" +
                    victim +
                    "\nenvironment st_rm=/bin/false\nenvironment st_line=x\nenvironment IFS=1/\n"
                    "environment PATH=/nowhere\nenvironment ODD=a b'$c\nword /bin/sh\nword -c\n"
                    "word printf '%s|%s|%s' \"$ODD\" \"$SERVETUNE_LAUNCH\" \"$PATH\"; pwd > \"" +
                    (folder.path() / "place").string() + "\"; exit 7\n\n\n");
    // The client is the other machine's login shell; a pipe that stays open: nobody has hung up.
    fs::permissions(
        folder.write("client", "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$last\"\n"),
        fs::perms::owner_all);
    folder.write("run.sh", "mkfifo pipe && exec 9<> pipe && cat told >&9\n" SERVETUNE_SOURCE
                           "/launchers/ssh start <&9 3>facts\n");
    ChildProcess script({"/bin/sh", "run.sh"}, folder.path());
    CHECK(script.wait() == 7);
    INFO(script.err());
    CHECK(script.out() == "a b'$c|st-test|/nowhere");
    CHECK(read_file(folder.path() / "victim/f") == "x");
    std::string place = read_file(folder.path() / "place");
    place.pop_back();
    CHECK_FALSE(place.empty());
    CHECK_FALSE(fs::exists(place));  // its own folder is gone, and nothing else
}
