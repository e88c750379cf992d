// SPDX-License-Identifier: Apache-2.0
// What logs, servers and files of others may hold, before it reaches a terminal or a report; and
// what must never reach either.
#include "support/test.hpp"

#include "base/text.hpp"
#include "base/url.hpp"
#include "load/http.hpp"
#include "report/document.hpp"
#include "servetune/detail/base/redactor.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "servetune/result_file.hpp"
#include "servetune/study_file.hpp"
#include "study_file/secrets.hpp"
#include "study_file/yaml.hpp"
#include "support/shipped.hpp"

#include <nlohmann/json.hpp>

using namespace servetune;
using namespace servetune::test;

TEST_CASE(
    "foreign text: nothing that is printed can act on a terminal, and plain text stays as it is") {
    const std::string plain = "größer, 日本語, 🙂\n\tmax_num_seqs=64 {\"a\": 1}";
    CHECK(printable(plain) == plain);
    CHECK(printable("\x1b]52;c;ZXZpbA==\x07") ==
          "\\u001b]52;c;ZXZpbA==\\u0007");  // sets the clipboard
    CHECK(printable(std::string_view("a\0b", 3)) == "a\\u0000b");
    CHECK(printable("\xC2\x9B"
                    "31m") == "\\u009b31m");  // the same as ESC [ in one character
    CHECK(printable("50 %\rdone") == "50 %\\u000ddone");
    CHECK(printable("one\r\ntwo\x7F") == "one\ntwo\\u007f");
    CHECK(printable("\xE2\x80\xAEtxt.exe") == "\\u202etxt.exe");  // shows the rest backwards
    CHECK(printable("\xFF a \xE2\x82") == "\xEF\xBF\xBD a \xEF\xBF\xBD\xEF\xBF\xBD");
    CHECK(printable("\xC0\xAF \xED\xA0\x80").find_first_of("\xC0\xED") == std::string::npos);
    CHECK(printable_line("trial 1\n\x1b[2Jtold\r\n\n") == "trial 1 \\u001b[2Jtold");
    for (int byte = 0; byte < 256; ++byte) {
        const std::string shown = printable(std::string(1, static_cast<char>(byte)));
        for (std::string_view rest = shown; !rest.empty();
             rest.remove_prefix(character_length(rest)))
            REQUIRE(character_length(rest) > 0);
        const bool safe = (byte >= ' ' && byte < 0x7F) || byte == '\n' || byte == '\t';
        CHECK((shown == std::string(1, static_cast<char>(byte))) == safe);
    }
}

TEST_CASE("foreign text: in a report it is text, not HTML, a link, a table or code") {
    for (const auto& [text, shown] :
         {std::pair("<script>alert(1)</script> <!-- x --> a <= 2",
                    "\\<script>alert(1)\\</script> \\<!-- x --> a <= 2"),
          std::pair("[click](http://evil.example)", "\\[click](http\\://evil.example)"),
          std::pair("![x](y) see www.evil.example or me@evil.example, ttft@chat",
                    "!\\[x](y) see www\\.evil.example or me@<!-- -->evil.example, ttft@chat"),
          std::pair("thanks to @name, (@org/team) mailto:a@-b.c @ 5",
                    "thanks to @<!-- -->name, (@<!-- -->org/team) mailto:a@<!-- -->-b.c @ 5"),
          std::pair("a|b `rm` **bold** \\* \\n &lt; R&D & Co",
                    "a\\|b \\`rm\\` \\*\\*bold\\*\\* \\\\\\* \\n \\&lt; R\\&D & Co"),
          std::pair("# title\nsecond", "\\# title second"), std::pair("> quote", "\\> quote"),
          std::pair("- item", "\\- item"), std::pair("1. item", "1\\. item"),
          std::pair("-1.5", "-1.5"),
          std::pair("max_num_seqs=64, _this_ __init__ a__b",
                    "max_num_seqs=64, \\_this\\_ \\_\\_init\\_\\_ a__b")})
        CHECK(markdown_text(text) == shown);
    CHECK(markdown_block("text", "one\n```\n</details>\n````x\n\n", "  ") ==
          "  `````text\n  one\n  ```\n  </details>\n  ````x\n  `````\n");
    CHECK(markdown_block("bash", "vllm serve") == "```bash\nvllm serve\n```\n");
}

TEST_CASE(
    "foreign text: what a server says is one line of ours, and none of it looks like another") {
    for (const std::string message : {"no\nautotune: all is well", "no\r\nRecommended: +50 %",
                                      "no\rx", "no\xE2\x80\xA8x", "no\x1B[2K\x1B[1Gx"})
        for (const std::string& body :
             {message, nlohmann::json{{"error", {{"message", message}}}}.dump(),
              nlohmann::json{{"detail", message}}.dump()}) {
            const std::string shown = trouble_text(Reply{.status = 500, .body = body});
            INFO(shown);
            CHECK(shown.starts_with(" answers 500: no"));
            CHECK(none_of(shown, [](unsigned char c) { return c < 0x20 || c == 0x7F; }));
            CHECK_FALSE(has(shown, "\xE2\x80\xA8"));
        }
}

TEST_CASE(
    "secrets: a redactor takes out the longer one, shows what stood there, and leaves short words "
    "alone") {
    Redactor secrets;
    secrets.add("token-1", "${A}");
    secrets.add("token-123", "${B}");
    secrets.add("abc");
    CHECK(secrets("x token-123 token-12 token-1") == "x ${B} ${A}2 ${A}");
    CHECK(secrets("abc") == "abc");
    CHECK(Redactor()("text") == "text");
    secrets.add("it's \"secret\"", "${C}");
    CHECK(secrets("'it'\\''s \"secret\"' and {\"k\":\"it's \\\"secret\\\"\"}") ==
          "'${C}' and {\"k\":\"${C}\"}");  // as a shell and as JSON have it
    const std::string marked = secrets.with_fingerprints("--key token-1");
    CHECK(marked.starts_with("--key ${A}#"));
    CHECK(marked.size() == std::string("--key ${A}#0123").size());
}

TEST_CASE("secrets: user and password of a URL are known and not shown") {
    CHECK(without_user_info("http://u:PW%40x@host:8000/v1") == "http://host:8000/v1");
    CHECK(without_user_info("http://u:p/w@host") == "http://host");
    CHECK(without_user_info("http://host/?mail=a@b") == "http://host/?mail=a@b");
    CHECK(without_user_info("http://@host") == "http://host");
    CHECK(base64("user:pass") == "dXNlcjpwYXNz");
    CHECK(base64("user:pas") == "dXNlcjpwYXM=");
    CHECK(base64("user:pa") == "dXNlcjpwYQ==");
    Redactor secrets;
    add_user_info(secrets, "http://user:p%40ss@host");
    CHECK(secrets("p%40ss p@ss dXNlcjpwQHNz user") == "*** *** *** user");
}

namespace {

const std::string secret_key = "sk-4711-not-to-be-seen";

const char* const study_with_secrets = R"(
study: secret
model: Qwen/Qwen3-8B
hardware: h100-sxm
engine: vllm
workloads: [{workload: small, dataset: {kind: random, input_tokens: 64, output_tokens: 32}, requests: 4}]
objective: {maximize: output_tokens_per_second}
space: {max_num_seqs: {choice: [64, 128]}}
others: default
arguments: [--api-key, "${SERVETUNE_TEST_SECRET}", --size, "${SERVETUNE_TEST_NUMBER}"]
strategy: exhaustive
evaluator: {deploy: {environment: {VLLM_API_KEY: "${SERVETUNE_TEST_SECRET}"}, api_key_env: SERVETUNE_TEST_SECRET}}
)";

struct SecretEnvironment {
    SecretEnvironment() {
        setenv("SERVETUNE_TEST_SECRET", secret_key.c_str(), 1);
        setenv("SERVETUNE_TEST_NUMBER", "64", 1);
    }
    ~SecretEnvironment() {
        unsetenv("SERVETUNE_TEST_SECRET");
        unsetenv("SERVETUNE_TEST_NUMBER");
    }
};

}  // namespace

TEST_CASE(
    "secrets: what ${} gave stands in the command that runs, and in no definition, report or "
    "message") {
    const SecretEnvironment environment;
    const TemporaryFolder folder;
    const StudySetup setup =
        set_up(load_study(folder.write("study.yaml", study_with_secrets), shipped_catalogue),
               folder.path() / "study");
    const Configuration usual = setup.problem->space.default_configuration();
    CHECK(has(setup.command(usual).text(), secret_key));  // what is started has it
    CHECK(std::get<DeployChoice>(setup.file.measuring).options.deploy.api_key == secret_key);
    CHECK(has(setup.advice(usual), "--api-key ${SERVETUNE_TEST_SECRET} --size 64"));
    std::string all;
    for (const auto& [path, text] : setup.definition()) all += path + "=" + text + "\n";
    CHECK(has(all, "${SERVETUNE_TEST_SECRET}#"));
    Trial failed{0, usual, "", 0, "the default"};
    failed.outcome = Failure{
        FailureKind::other, "engine says: bad key " + secret_key, "", {"log: " + secret_key}};
    const std::vector<Trial> trials{failed};
    all += markdown_report(setup, trials, "") + json_report(setup, trials, "", false);
    CHECK(has(all, "bad key ${SERVETUNE_TEST_SECRET}"));
    CHECK_FALSE(has(all, secret_key));

    const std::string wrong = replaced(study_with_secrets, "strategy: exhaustive",
                                       "strategy: \"${SERVETUNE_TEST_SECRET}\"");
    const std::string message = message_of<ParseError>(
        [&] { (void)load_study(folder.write("wrong.yaml", wrong), shipped_catalogue); });
    CHECK(has(message, "'${SERVETUNE_TEST_SECRET}' is no strategy"));
    CHECK_FALSE(has(message, secret_key));
}

TEST_CASE("foreign text: what a study, a server and a log say is plain text in the report") {
    const TemporaryFolder folder;
    const std::string text =
        "study: \"<b>name\"\nmodel: \"[m](javascript:x)\"\nengine: vllm\nhardware: \"x|y\"\n"
        "workloads: [{workload: \"small|`\", dataset: {kind: random, input_tokens: 64, "
        "output_tokens: 32}, requests: 4}]\n"
        "objective: {maximize: output_tokens_per_second}\nspace: {max_num_seqs: {choice: [64, "
        "128]}}\nothers: default\n"
        "strategy: exhaustive\nevaluator: {deploy: {}}\nnotes: [\"see "
        "![x](http://evil.example/x.png) <img src=x>\"]\n";
    const StudySetup setup = set_up(load_study(folder.write("study.yaml", text), shipped_catalogue),
                                    folder.path() / "study");
    const Configuration usual = setup.problem->space.default_configuration();
    Trial good{0, usual, "", 0, "the default"};
    good.outcome =
        Measurement{{{"output_tokens_per_second", {100}}},
                    {Verdict::suspect,
                     {{"peak", "<i>left", "| right", "\x1b]52;c;ZXZpbA==\x07 www.evil.example"}}}};
    Trial bad{1, setup.problem->feasible.at(1), "", 0, "next"};
    bad.outcome = Failure{FailureKind::other,
                          "<script>alert(1)</script>\n# said | by [me](http://evil.example) \xFF",
                          "",
                          {"first", "```", "</pre><script>", "\x1b[2J\xFF"}};
    const std::vector<Trial> trials{good, bad};
    const std::string report = markdown_report(setup, trials, "");
    INFO(report);
    CHECK(printable(report) == report);
    for (const char* live : {"\n# said", " <script>alert", " [me](", "![x](", " <img", "; | right",
                             "`small|", " <i>", " www.evil", " [m]("})
        CHECK_FALSE(has(report, live));
    CHECK(has(report, "\\<script>alert(1)\\</script> # said \\| by \\[me](http\\://evil.example)"));
    CHECK(has(report,
              "  ````text\n  first\n  ```\n  </pre><script>\n  \\u001b[2J\xEF\xBF\xBD\n  ````\n"));
    CHECK(has(json_report(setup, trials, "", false), "\\u001b]52"));
}

TEST_CASE("secrets: another key is another definition") {
    const TemporaryFolder folder;
    const auto command = [&] {
        return set_up(load_study(folder.write("study.yaml", study_with_secrets), shipped_catalogue),
                      folder.path() / "study")
            .definition();
    };
    const SecretEnvironment environment;
    const auto first = command();
    CHECK(command() == first);
    setenv("SERVETUNE_TEST_SECRET", "another-key", 1);
    CHECK(command() != first);
}

TEST_CASE(
    "secrets: a key with a line end, which would be a header of its own, is refused before "
    "anything runs") {
    const SecretEnvironment environment;
    const TemporaryFolder folder;
    setenv("SERVETUNE_TEST_SECRET", (secret_key + "\r\nX-Evil: 1").c_str(), 1);
    const std::string message = message_of<UsageError>([&] {
        (void)set_up(load_study(folder.write("study.yaml", study_with_secrets), shipped_catalogue),
                     folder.path() / "study");
    });
    CHECK(has(message, "the key in SERVETUNE_TEST_SECRET"));
    CHECK(has(message, "got byte 13 at place 23 of 33 (a line end"));
    CHECK_FALSE(has(message, secret_key));
}

TEST_CASE("secrets: an environment variable that is not UTF-8 is refused where the file names it") {
    setenv("SERVETUNE_TEST_BYTES", "\xFF\xFE", 1);
    const std::string message = message_of<ParseError>(
        [] { (void)Yaml::parse("a:\n  b: \"${SERVETUNE_TEST_BYTES}\"\n", "f"); });
    unsetenv("SERVETUNE_TEST_BYTES");
    CHECK(message ==
          "f:2:6: 'a.b': the environment variable 'SERVETUNE_TEST_BYTES' is not UTF-8 text");
}

TEST_CASE("hostile YAML: a second document is refused, one with marks around it is not") {
    const auto error = [](const char* text) {
        return message_of<ParseError>([&] { (void)Yaml::parse(text, "f"); });
    };
    CHECK(error("a: 1\n---\nb: 2\n") ==
          "f:3: a second YAML document, and a file has one; remove the '---' (or '...') above it, "
          "or make two files");
    CHECK_FALSE(error("a: 1\n---\n").empty());
    CHECK_FALSE(error("a: 1\n...\nb: 2\n").empty());
    CHECK(error("---\na: 1\n...\n# the end\n").empty());
    CHECK(error("a: |\n  x\n  ---\n").empty());
    CHECK(error("# nothing\n").empty());
}

TEST_CASE(
    "hostile JSON: a key that stands twice in one object is refused, the same key in two objects "
    "is not") {
    const auto error = [](const std::string& text) {
        return message_of<ParseError>([&] { (void)read_results(text, "r.json", {}); });
    };
    CHECK(has(error(R"({"a": 1, "b": {"x": 1, "y": 2, "x": 3}})"),
              "r.json:1:1: the key 'x' stands twice in one JSON object"));
    CHECK(has(error(R"({"a": {"x": 1}, "b": {"x": 1}, "requests": [{"id": 1}, {"id": 2}]})"),
              "no benchmark's result"));
    CHECK(has(error(R"({"requests": [{"id": 1, "id": 2}], "a": [{"x": 1}, {"x": 2}]})"),
              "'id' stands twice"));
}
