// SPDX-License-Identifier: Apache-2.0
// Secrets that a study does not name: in no child's environment, and in no text that we write, in
// whatever form.
#include "support/process.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "host/run_command.hpp"
#include "servetune/detail/base/redactor.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/launcher.hpp"
#include "servetune/report.hpp"
#include "servetune/study_file.hpp"
#include "study_file/secrets.hpp"

#include <cctype>
#include <chrono>
#include <map>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::map<std::string, std::string> planted_secrets{
    {"SERVETUNE_TOKEN", "PLANT-page-token-0123456789"},
    {"HF_TOKEN", "hf_PLANT_hub_token"},
    {"AWS_SECRET_ACCESS_KEY", "PLANT/aws+secret"},
    {"MY_DB_PASSWORD", "PLANT \"pass\" w\xC3\xB6rd"},
    {"https_proxy", "http://bob:PLANTproxypw@127.0.0.1:3128"}};
const std::string proxy_password = "PLANTproxypw";

struct PlantedEnvironment {
    PlantedEnvironment() {
        for (const auto& [name, value] : planted_secrets) setenv(name.c_str(), value.c_str(), 1);
        setenv("SERVETUNE_TEST_API_KEY", "EMPTY", 1);  // what people set where any key will do
    }
    ~PlantedEnvironment() {
        for (const auto& [name, value] : planted_secrets) unsetenv(name.c_str());
        unsetenv("SERVETUNE_TEST_API_KEY");
    }
};

/// How many of the planted ones stand in a text, but for the one of `but`.
int planted_in(const std::string& text, const std::string& but = "") {
    int result = 0;
    for (const auto& [name, value] : planted_secrets)
        if (name != but && name != "https_proxy") result += has(text, value) ? 1 : 0;
    return result;
}

/// As Python's `base64.b64encode(before + secret + behind)` and the like print it.
std::vector<std::string> forms_in_logs(const std::string& secret) {
    std::vector<std::string> result{secret};
    for (const std::string before : {"", "u", "u:", "Bearer ", "user:"})
        for (const std::string behind : {"", "\n", "@h", "xyz"}) {
            std::string one = base64(before + secret + behind);
            result.push_back(one);
            for (char& c : one) c = c == '+' ? '-' : c == '/' ? '_' : c;
            result.push_back(one);
            while (one.ends_with('=')) one.pop_back();
            result.push_back(one);
        }
    std::string url, hex;
    for (const char letter : secret) {
        const auto c = static_cast<unsigned char>(letter);
        const std::string two{"0123456789abcdef"[c / 16], "0123456789abcdef"[c % 16]};
        const std::string upper{"0123456789ABCDEF"[c / 16], "0123456789ABCDEF"[c % 16]};
        hex += two;
        url += std::isalnum(c) != 0 || c == '-' || c == '_' ? std::string(1, letter) : "%" + upper;
    }
    result.insert(result.end(), {url, hex});
    return result;
}

}  // namespace

TEST_CASE(
    "secret forms: base64 in any place of other bytes, percent-encoded, hexadecimal and JSON forms "
    "are taken out") {
    int left = 0;
    for (const std::string secret :
         {"sk-PLANT-apikey-x1", "abcd", "PL/AN+T\"x\\y\nz'",
          "gr\xC3\xB6\xC3\x9F-\xF0\x9F\x98\x80-pass", "\xFE\xFF\xFB\xEF\xBE\xFBpw"}) {
        Redactor secrets;
        secrets.add(secret, "${KEY}");
        for (const std::string& form : forms_in_logs(secret)) {
            const std::string shown = secrets("log: " + form + " end");
            INFO(form << " -> " << shown);
            left += has(shown, "${KEY}") ? 0 : 1;
            CHECK(has(shown, "${KEY}"));
        }
    }
    CHECK(left == 0);
    Redactor secrets;
    secrets.add("PL\"A\xC3\xB6\nT", "${KEY}");
    CHECK(secrets(R"({"k": "PL\"A\u00f6\nT"})") == "{\"k\": \"${KEY}\"}");  // json.dumps
    CHECK(secrets("{\"k\": \"PL\\\"A\xC3\xB6\\nT\"}") == "{\"k\": \"${KEY}\"}");
    CHECK(secrets("nothing of it: PLAN, UEwi") == "nothing of it: PLAN, UEwi");
    Redactor copied;
    copied.add(secrets);
    CHECK(copied(base64("PL\"A\xC3\xB6\nT")) == "${KEY}");
}

TEST_CASE("secret forms: pieces say where a secret stands, and what is only shown alike is text") {
    Redactor secrets;
    secrets.add("s3cr3t", "${K}");
    const auto pieces = secrets.pieces("a${K}s3cr3t${x}" + base64("s3cr3t"));
    REQUIRE(pieces.size() == 4);
    CHECK((pieces[0].text == "a${K}" && pieces[0].shown.empty()));
    CHECK((pieces[1].shown == "${K}" && pieces[1].as_it_is));
    CHECK((pieces[2].text == "${x}" && pieces[2].shown.empty()));
    CHECK((pieces[3].shown == "${K}" && !pieces[3].as_it_is));
}

TEST_CASE(
    "secret forms: what the environment has is known, and the study's definition does not hang on "
    "it") {
    const TemporaryFolder folder;
    const std::string text =
        "study: s\nmodel: Qwen/Qwen3-8B\nengine: vllm\nothers: default\nhardware: {count: "
        "1}\narguments: [--odd, "
        "hf_PLANT_hub_token]\nworkloads: [{use: random}]\nobjective: {maximize: "
        "total_tokens_per_second}\n"
        "space: {max_num_seqs: {choice: [engine, 8]}}\nevaluator: {deploy: {watch: off}}\n";
    const auto definition = [&] {
        return set_up(load_study(folder.write("s.yaml", text), shipped_catalogue)).definition();
    };
    const auto before = definition();
    const PlantedEnvironment planted;
    CHECK(definition() == before);
    const StudySetup setup = set_up(load_study(folder.write("s.yaml", text), shipped_catalogue));
    std::string all;
    for (const auto& [name, value] : planted_secrets)
        all += name + "=" + value + " b64=" + base64(value) + "\n";
    const Redactor of_environment = secrets_of_environment();
    for (const Redactor* secrets : {&setup.file.secrets, &of_environment}) {
        const std::string shown = (*secrets)(all + proxy_password + " EMPTY");
        INFO(shown);
        CHECK(planted_in(shown) == 0);
        CHECK_FALSE(has(shown, proxy_password));
        CHECK(has(shown, "HF_TOKEN=${HF_TOKEN} b64=${HF_TOKEN}\n"));
        CHECK(shown.ends_with("*** EMPTY"));
    }
    Trial failed{0, setup.problem->space.default_configuration(), "", 0, "the default"};
    failed.outcome = Failure{FailureKind::other, "engine says: " + all, "", {"log: " + all}};
    const std::vector<Trial> trials{failed};
    CHECK(planted_in(markdown_report(setup, trials, "") + json_report(setup, trials, "", false) +
                     html_report(setup, trials, "")) == 0);
}

TEST_CASE(
    "secret forms: no child inherits one, an engine the hub's alone, and what is named arrives") {
    const PlantedEnvironment planted;
    const auto printed = [](const ProcessOptions& options) {
        Process process(options);
        CHECK(process.wait(std::chrono::seconds(20)));
        (void)process.end(std::chrono::seconds(1));
        std::string all;
        for (const std::string& line : process.lines()) all += line + "\n";
        CHECK(has(all, "PATH="));
        return all;
    };
    ProcessOptions bare;
    bare.argv = {"/usr/bin/env"};
    CHECK(planted_in(printed(bare)) == 0);
    CHECK(has(printed(bare), "https_proxy="));  // it may have to fetch a model
    ProcessOptions named = bare;
    named.environment = {{"AWS_SECRET_ACCESS_KEY", planted_secrets.at("AWS_SECRET_ACCESS_KEY")}};
    CHECK(planted_in(printed(named), "AWS_SECRET_ACCESS_KEY") == 0);
    CHECK(has(printed(named), planted_secrets.at("AWS_SECRET_ACCESS_KEY")));
    CHECK(planted_in(run_command({"/usr/bin/env"}, std::chrono::seconds(20), 1U << 20U).output) ==
          0);

    const Command command{{"/usr/bin/env"}};
    const Launch launch = local_launcher()->launch(LaunchRequest{.command = command});
    ProcessOptions engine = bare;
    engine.environment = launch.environment;
    CHECK(planted_in(printed(engine), "HF_TOKEN") == 0);
    CHECK(has(printed(engine), "HF_TOKEN=" + planted_secrets.at("HF_TOKEN")));
    const Launch of_study = local_launcher()->launch(
        LaunchRequest{.command = command, .environment = {{"HF_TOKEN", "the study's"}}});
    CHECK(of_study.environment.at("HF_TOKEN") == "the study's");
}
