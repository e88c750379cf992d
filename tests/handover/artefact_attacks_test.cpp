// SPDX-License-Identifier: Apache-2.0
// Text of a study that tries to become a directive, a variable or another word in a file that
// starts an engine.
#include "support/process.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "handover/artefact.hpp"
#include "servetune/error.hpp"
#include "servetune/study_file.hpp"
#include "study_file/yaml.hpp"
#include "study_file/yaml_text.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::vector<std::string> all_artefacts{"shell", "systemd", "compose", "slurm", "kubernetes"};
const std::string artefact_secret = "s3cr3t-value-1";

struct AttackedStudy {
    std::string name = "attacked";
    std::string arguments = "[]";
    std::string environment = "{}";
    std::string deploy = "";
};

StudySetup attacked_setup(const TemporaryFolder& folder, const AttackedStudy& study) {
    setenv("SERVETUNE_TEST_SEC", artefact_secret.c_str(), 1);
    return set_up(load_study(
        folder.write(
            "attacked.yaml",
            "study: \"" + study.name +
                "\"\nmodel: Qwen/Qwen3-8B\nengine: vllm\nothers: default\nhardware: {count: 1}\n"
                "space: {max_num_seqs: {choice: [engine, 8]}}\narguments: " +
                study.arguments +
                "\nworkloads: [{use: random}]\nobjective: {maximize: total_tokens_per_second}\n"
                "evaluator: {deploy: {watch: off, environment: " +
                study.environment + study.deploy + "}}\n"),
        shipped_catalogue));
}

std::string attacked_text(const StudySetup& setup, const std::string& kind,
                          DeploymentOptions options = {.image = "i"}) {
    return artefact_of(kind, setup, setup.problem->space.default_configuration(), options).text;
}

/// The words that a program named `vllm` gets from a script, a line each in <>.
std::string words_from_script(const TemporaryFolder& folder, const std::string& script,
                              const std::string& variable = "") {
    folder.write(
        "vllm",
        "#!/bin/sh\nfor word in \"$@\"; do printf '<%s>\\n' \"$word\"; done\nprintf '%s\\n' \"" +
            variable + "\"\n");
    fs::permissions(folder.path() / "vllm", fs::perms::owner_all);
    folder.write("serve.sh", script);
    ChildProcess served({"/usr/bin/env", "PATH=" + folder.path().string() + ":/usr/bin:/bin",
                         "SERVETUNE_TEST_SEC=from-outside", "/bin/sh", "serve.sh"},
                        folder.path());
    CHECK(served.wait() == 0);
    return served.out();
}

/// What is written as a text of YAML and read by its reader. `$` means something to ours, not to
/// YAML.
std::string read_as_yaml(std::string text) {
    std::replace(text.begin(), text.end(), '$', '~');
    std::string value = Yaml::parse("key: " + text + "\n", "t").entry(std::string("key"))->text();
    std::replace(value.begin(), value.end(), '~', '$');
    return value;
}

/// What Kubernetes makes of a word without variables (Define Dependent Environment Variables): `$$`
/// is `$`.
std::string read_by_kubernetes(const std::string& text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        result += text[i];
        if (text.compare(i, 2, "$$") == 0) ++i;
        else REQUIRE(text.compare(i, 2, "$(") != 0);
    }
    return result;
}

std::string item_of_yaml(const std::string& manifest, const std::string& before,
                         const std::string& behind = "\n") {
    const auto at = manifest.find(before);
    REQUIRE(at != std::string::npos);
    const auto begin = at + before.size();
    return manifest.substr(begin, manifest.find(behind, begin) - begin);
}

}  // namespace

TEST_CASE("artefact attacks: no title, however its lines end, is more than one line of comment") {
    const TemporaryFolder folder;
    const StudySetup setup = attacked_setup(folder, {});
    int succeeded = 0;
    for (const std::string end : {"\n", "\r", "\r\n", "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9",
                                  "\v", "\f", "\x1B", "\xFF"})
        for (const std::string& kind : all_artefacts)
            for (const std::string& directive :
                 {"[Service]" + end + "ExecStartPre=/bin/touch PWNED" + end + "#",
                  std::string("x: y"), std::string("#SBATCH --wrap=id"),
                  std::string("goes on \\")}) {
                const std::string innocent = attacked_text(setup, kind);
                std::string text =
                    attacked_text(setup, kind, {.image = "i", .title = "goal" + end + directive});
                const std::string first = kind == "shell" || kind == "slurm" ? "#!/bin/sh\n" : "";
                REQUIRE(text.starts_with(first + "# goal"));
                const auto stop = text.find('\n', first.size());
                const std::string comment = text.substr(first.size(), stop - first.size());
                const bool whole = comment.find_first_of("\r\v\f\x1B") == std::string::npos &&
                                   !has(comment, "\xC2\x85") && !has(comment, "\xE2\x80\xA8") &&
                                   !has(comment, "\xE2\x80\xA9") && !comment.ends_with('\\');
                text.erase(first.size(), stop - first.size() + 1);
                succeeded += whole && text == innocent ? 0 : 1;
            }
    CHECK(succeeded == 0);
}

TEST_CASE(
    "artefact attacks: what a study means literally beside a secret stays text in every format") {
    const TemporaryFolder folder;
    const StudySetup setup = attacked_setup(
        folder,
        {.arguments =
             R"x(["--odd", "${SERVETUNE_TEST_SEC}$${x:-$(touch PWNED)}", "--t=${SERVETUNE_TEST_SEC}$${HOME}",)x"
             R"x( "a${SERVETUNE_TEST_SEC}$${b", "$${SERVETUNE_TEST_SEC}",)x"
             R"x( "$(touch PWNED)${SERVETUNE_TEST_SEC}`touch PWNED`"])x",
         .environment = R"x({ODD: "$${HOME}$(id)"})x"});
    const std::string out = words_from_script(folder, attacked_text(setup, "shell"), "$ODD");
    CHECK_FALSE(fs::exists(folder.path() / "PWNED"));
    CHECK(has(out,
              "<from-outside${x:-$(touch "
              "PWNED)}>\n<--t=from-outside${HOME}>\n<afrom-outside${b>\n<${SERVETUNE_TEST_SEC}>\n"
              "<$(touch PWNED)from-outside`touch PWNED`>\n${HOME}$(id)\n"));
    const std::string unit = attacked_text(setup, "systemd");
    CHECK(has(
        unit,
        R"x( "${SERVETUNE_TEST_SEC}$${x:-$$(touch PWNED)}" "--t=${SERVETUNE_TEST_SEC}$${HOME}" "a${SERVETUNE_TEST_SEC}$${b" )x"
        R"x("$${SERVETUNE_TEST_SEC}" )x"));
    CHECK(has(unit, "Environment=\"ODD=${HOME}$(id)\"\n"));  // systemd puts no variable in there
    const std::string compose = attacked_text(setup, "compose");
    CHECK(has(compose, R"x(- "${SERVETUNE_TEST_SEC?}$${x:-$$(touch PWNED)}")x"));
    CHECK(has(compose, R"x(- "a${SERVETUNE_TEST_SEC?}$${b")x"));
    CHECK(has(compose, R"x("ODD": "$${HOME}$$(id)")x"));
    const std::string manifest = attacked_text(setup, "kubernetes");
    CHECK(has(manifest, R"x(- "$(SERVETUNE_TEST_SEC)$${x:-$$(touch PWNED)}")x"));
    CHECK(has(manifest, R"x(- "$$(touch PWNED)$(SERVETUNE_TEST_SEC)`touch PWNED`")x"));
    for (const std::string& kind : all_artefacts)
        CHECK_FALSE(has(attacked_text(setup, kind), artefact_secret));
}

TEST_CASE(
    "artefact attacks: a secret in another form, or where no variable is put in, makes no file") {
    const TemporaryFolder folder;
    const std::string form = "czNjcjN0LXZhbHVlLTE=";  // the secret in base64
    const StudySetup setup = attacked_setup(
        folder,
        {.arguments = "[--key, \"${SERVETUNE_TEST_SEC}\", --header, \"Basic " + form + "\"]"});
    for (const std::string& kind : all_artefacts) {
        const std::string why = message_of<UsageError>([&] { (void)attacked_text(setup, kind); });
        CHECK(has(why,
                  "'Basic ${SERVETUNE_TEST_SEC}' has a secret that no variable holds in the form "
                  "that stands there"));
        CHECK_FALSE(has(why, form));
    }
    const std::string in_image =
        ", container: {program: [docker], image: \"reg/${SERVETUNE_TEST_SEC}:1\"}";
    const StudySetup contained = attacked_setup(folder, {.deploy = in_image});
    CHECK(
        has(attacked_text(contained, "compose", {}), "image: \"reg/${SERVETUNE_TEST_SEC?}:1\"\n"));
    CHECK(has(message_of<UsageError>([&] { (void)attacked_text(contained, "kubernetes", {}); }),
              "say it with --image"));
}

TEST_CASE("artefact attacks: dollars reach a container as they are, an image's too") {
    const TemporaryFolder folder;
    for (const std::string word :
         {"a$b", "a$$b", "$$$$", "end$", "$(V)", "$$(V)", "$$$(V)", "x$"}) {
        const std::string quoted = yaml_quoted(word);
        const StudySetup setup = attacked_setup(
            folder, {.arguments = "[--odd, " + quoted + "]", .environment = "{V: " + quoted + "}"});
        INFO(word);
        const std::string manifest = attacked_text(setup, "kubernetes");
        CHECK(read_by_kubernetes(
                  read_as_yaml(item_of_yaml(manifest, "- \"--odd\"\n            - "))) == word);
        CHECK(read_by_kubernetes(
                  read_as_yaml(item_of_yaml(manifest, "{name: \"V\", value: ", "}\n"))) == word);
        const std::string compose = attacked_text(setup, "compose", {.image = "reg/" + word});
        std::string doubled;
        for (const char c : word) doubled += c == '$' ? std::string("$$") : std::string(1, c);
        CHECK(read_as_yaml(item_of_yaml(compose, "- \"--odd\"\n      - ")) == doubled);
        CHECK(read_as_yaml(item_of_yaml(compose, "    image: ")) == "reg/" + doubled);
        CHECK(has(words_from_script(folder, attacked_text(setup, "shell"), "$V"),
                  "<" + word + ">\n" + word + "\n"));
    }
}

TEST_CASE(
    "artefact attacks: names are texts to every reader of YAML, and a Service's begins with a "
    "letter") {
    const TemporaryFolder folder;
    for (const std::string name : {"123", "yes", "no", "on", "null", "1e5", "0x1f", "2026-11-26",
                                   "7b-run", "true", "Y", "-", "0o7", "~", "1_000", "12:30:45"}) {
        const StudySetup setup =
            attacked_setup(folder, {.name = name, .environment = "{on: v, y: w, NO: x}"});
        const Artefact manifest = artefact_of(
            "kubernetes", setup, setup.problem->space.default_configuration(), {.image = "i"});
        const std::string called = manifest.name.substr(0, manifest.name.find('.'));
        INFO(name << ": " << called);
        CHECK(std::islower(static_cast<unsigned char>(called.front())) != 0);
        CHECK(std::isalnum(static_cast<unsigned char>(called.back())) != 0);
        for (const std::string kind : {"kubernetes", "compose"}) {
            const std::string text = attacked_text(setup, kind);
            int plain = 0;
            for (const std::string& word :
                 {called, std::string("on"), std::string("y"), std::string("NO")})
                for (auto at = text.find(word); at != std::string::npos;
                     at = text.find(word, at + 1)) {
                    const auto part = [](char c) {
                        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ||
                               c == '_';
                    };
                    const bool whole = !part(text[at - 1]) && !part(text[at + word.size()]);
                    plain +=
                        whole && (text[at - 1] != '"' || text[at + word.size()] != '"') ? 1 : 0;
                }
            CHECK(plain == 0);
        }
    }
    // Ours: what we write into studies, by the same rule.
    for (const char* word :
         {"yes", "1e5", "0x1f", "0b1", "0o7", "1_000", "1_0.5e3", "2026-11-26", "~", "null", "123"})
        CHECK(yaml_text(word) == "\"" + std::string(word) + "\"");
    for (const char* word :
         {"0.11.0", "Qwen/Qwen3-8B", "max_num_seqs", "fp8_e4m3", "7b-run", "0xen"})
        CHECK(yaml_text(word) == word);
}

TEST_CASE("artefact attacks: a word that YAML cannot hold as it is, is escaped") {
    const TemporaryFolder folder;
    for (const std::string odd : {"\x7F", "\xC2\x80", "\xC2\x85", "\xC2\x9B", "\xE2\x80\xA8",
                                  "\xE2\x80\xA9", "\xEF\xBB\xBF", "\xEF\xBF\xBE", "\xEF\xBF\xBF",
                                  "\b", "\x01", "\t", "\n", "\xF0\x9F\x98\x80", "\"", "\\"}) {
        const std::string quoted = yaml_quoted("a" + odd + "b");
        INFO(quoted);
        // Only characters that YAML calls printable (PyYAML and libyaml refuse others), and no line
        // end of YAML 1.1.
        CHECK(none_of(quoted, [](unsigned char c) { return c < 0x20 || c == 0x7F; }));
        for (const char* refused : {"\xC2\x80", "\xC2\x85", "\xC2\x9B", "\xE2\x80\xA8",
                                    "\xE2\x80\xA9", "\xEF\xBB\xBF", "\xEF\xBF\xBE", "\xEF\xBF\xBF"})
            CHECK_FALSE(has(quoted, refused));
        CHECK(read_as_yaml(quoted) == "a" + odd + "b");
        if (odd == "\n") continue;  // no unit holds it, and a study says so
        const StudySetup setup = attacked_setup(folder, {.arguments = "[--odd, " + quoted + "]"});
        CHECK(read_as_yaml(item_of_yaml(attacked_text(setup, "compose"),
                                        "- \"--odd\"\n      - ")) == "a" + odd + "b");
        CHECK(has(words_from_script(folder, attacked_text(setup, "shell")), "<a" + odd + "b>\n"));
    }
}
