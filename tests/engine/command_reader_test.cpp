// SPDX-License-Identifier: Apache-2.0
// One reader for commands: which engine words start, and what flags say in every spelling.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "engine/command_reader.hpp"
#include "engine/launcher.hpp"
#include "servetune/study_file.hpp"
#include "study_file/audit_context.hpp"

#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

const CommandReader& people_reader() {
    static const CommandReader reader(shipped_catalogue.engines(), search_spaces);
    return reader;
}
CommandSettings read_line(const std::string& line, const std::string& engine = "") {
    return people_reader().read({shell_words(line)}, engine);
}

std::string values_in(const std::string& line, const std::string& engine = "") {
    std::string result;
    for (const auto& [name, value] : read_line(line, engine).values())
        result += (result.empty() ? "" : " ") + name + "=" + text_of(value);
    return result;
}

std::string launched_in(const std::string& line, std::size_t at = 0) {
    const std::vector<Engine> engines = shipped_catalogue.engines();
    const Launched found = launched_at(engines, shell_words(line), at);
    return found.engine == nullptr ? "" : found.engine->name + " " + std::to_string(found.words);
}

}  // namespace

TEST_CASE("launcher: which engine words start, and how many of them name the program") {
    CHECK(launched_in("vllm serve m") == "vllm 2");
    CHECK(launched_in("/opt/bin/vllm serve m") == "vllm 2");
    CHECK(launched_in("python3.11 -m vllm.entrypoints.openai.api_server --model m") == "vllm 3");
    CHECK(launched_in("python -m sglang.launch_server --model-path m") == "sglang 3");
    CHECK(launched_in("sglang serve m") == "sglang 2");
    CHECK(launched_in("trtllm-serve m") == "tensorrt-llm 1");
    CHECK(launched_in("trtllm-serve serve m") == "tensorrt-llm 2");  // the longer one counts
    CHECK(launched_in("llama-server -m m") == "llama.cpp 1");
    CHECK(launched_in("vllm bench serve").empty());
    CHECK(launched_in("nohup vllm serve m").empty());
    CHECK(launched_in("nohup vllm serve m", 1) == "vllm 2");
    for (const Engine& engine : shipped_catalogue.engines())
        CHECK(launched_at({&engine, 1}, launcher_words(engine), 0).engine == &engine);
}

TEST_CASE("command reader: how a command begins") {
    using Start = CommandSettings::Start;
    CHECK(read_line("nohup env A=1 vllm serve org/m").start == Start::launcher);
    CHECK(read_line("--max-num-seqs 4").start == Start::flags);
    CHECK(read_line("python3 run.py --max-num-seqs 4").start == Start::unknown);
    // A name that is a value starts nothing.
    CHECK(read_line("--served-model-name llama-server --max-num-seqs 4").engine->name == "vllm");
    // Flags alone are of the engine that knows most of them.
    CHECK(read_line("--mem-fraction-static 0.8").engine->name == "sglang");
    CHECK(read_line("--mem-fraction-static 0.8", "vllm").engine->name == "vllm");
    const CommandSettings variables =
        read_line("VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve org/m");
    CHECK(variables.values().at("attention_backend") == Value("FLASHINFER"));
}

TEST_CASE("command reader: one flag in every spelling") {
    for (const char* flag : {"--tensor-parallel-size 2", "--tensor-parallel-size=2",
                             "--tensor_parallel_size=2", "-tp 2", "-tp=2"}) {
        INFO(flag);
        CHECK(values_in(std::string("vllm serve org/m ") + flag) == "tensor_parallel_size=2");
    }
    CHECK(values_in("sglang serve --model org/m --tp 2") == "tp_size=2");
    for (const char* flag :
         {"--no-enable-prefix-caching", "--disable-prefix-caching", "--no_enable_prefix_caching",
          "--enable-prefix-caching=false", "--enable-prefix-caching off"}) {
        INFO(flag);
        CHECK(values_in(std::string("vllm serve org/m ") + flag) == "enable_prefix_caching=false");
    }
    CHECK(values_in("vllm serve org/m --enable-prefix-caching") == "enable_prefix_caching=true");
    for (const char* flag :
         {"--speculative-config={\"method\":\"mtp\",\"num_speculative_tokens\":3}",
          "-sc '{\"method\": \"mtp\", \"num_speculative_tokens\": 3}'",
          "--speculative-config {method:mtp,num_speculative_tokens:3}",
          "--speculative-config.method=mtp --speculative_config.num_speculative_tokens 3"}) {
        INFO(flag);
        CHECK(values_in(std::string("vllm serve org/m ") + flag) ==
              "num_speculative_tokens=3 speculative_method=mtp");
    }
    for (const char* flag :
         {"--compilation-config '{\"cudagraph_mode\": \"PIECEWISE\", \"custom_ops\": [\"all\"]}'",
          "--compilation-config.cudagraph_mode=PIECEWISE"})
        CHECK(values_in(std::string("vllm serve org/m ") + flag) == "cudagraph_mode=PIECEWISE");
    CHECK(values_in("vllm serve org/m --max-model-len -1") == "max_model_len=-1");
    // The beginning of a flag is told, and sets nothing.
    const CommandSettings beginning =
        people_reader().flags({"--max-num-se", "4"}, shipped_catalogue.engine("vllm"));
    REQUIRE(beginning.settings.size() == 1);
    CHECK(beginning.settings.front().beginning);
    CHECK(beginning.settings.front().name == "--max-num-seqs");
    CHECK(beginning.values().empty());
}

TEST_CASE("command reader: which word is the model") {
    for (const char* line :
         {"vllm serve org/m --seed 1", "vllm serve --seed 1 org/m",
          "vllm serve --trust-remote-code org/m", "vllm serve --enable-prefix-caching org/m",
          "vllm serve --model org/m", "sglang serve org/m", "sglang serve --model=org/m",
          "llama-server -m org/m", "trtllm-serve serve org/m --some-flag a b"}) {
        INFO(line);
        CHECK(read_line(line).model == "org/m");
    }
    CHECK(read_line("vllm serve").model.empty());
    // What no parameter takes is told as it is written, a flag with its values.
    std::vector<std::string> unknown;
    for (const Setting& setting :
         read_line("vllm serve org/m --new-flag a b --api-key=k other").settings)
        if (setting.kind == Setting::Kind::flag || setting.kind == Setting::Kind::unread)
            unknown.push_back(setting.text());
    CHECK(unknown == std::vector<std::string>{"--new-flag a b", "--api-key=k", "other"});
    for (const char* broken : {"{a:{b:1}}", "{a", "[1]", "{a,b}"}) {
        INFO(broken);
        CHECK(people_reader()
                  .flags({"--speculative-config", broken}, shipped_catalogue.engine("vllm"))
                  .settings.back()
                  .kind == Setting::Kind::unread);
    }
}

TEST_CASE("command reader: the audit, an import and the space read a command alike") {
    const TemporaryFolder folder;
    const StudyFile study = load_study(
        folder.write(
            "s.yaml",
            "study: s\nmodel: Qwen/Qwen3-8B\nengine: vllm\nothers: default\nhardware: {count: 4}\n"
            "space: {tensor_parallel_size: [1, 2, 4], enable_prefix_caching: [engine, true, "
            "false]}\n"
            "workloads: [{use: random}]\nobjective: {maximize: total_tokens_per_second}\n"
            "evaluator: {deploy: {}}\n"),
        shipped_catalogue);
    const CommandSettings said = read_line(
        "vllm serve --trust-remote-code Qwen/Qwen3-8B --tensor_parallel_size 4 "
        "--enable-prefix-caching=false");
    AuditContext context;
    describe(context, said, "", shipped_catalogue.all_models());
    CHECK(context.devices == 4);
    CHECK(context.prefix_cache_intended == false);
    REQUIRE(context.served);
    CHECK(context.served->model.name == "Qwen/Qwen3-8B");
    const auto parsed = study.composition->parse(said, study.model);
    CHECK(parsed.values.at("tensor_parallel_size") == Value(std::int64_t{4}));
    CHECK(parsed.values.at("enable_prefix_caching") == Value(false));
    CHECK(parsed.unknown == std::vector<std::string>{"--trust-remote-code"});
}

TEST_CASE(
    "command reader: a flag that stands alone is true where the engine file has an option of a "
    "file") {
    CHECK(values_in("trtllm-serve org/m --enable_chunked_prefill --max_seq_len 4096")
              .starts_with("enable_chunked_prefill=true"));
    CHECK(values_in("trtllm-serve org/m --enable_chunked_prefill=false") ==
          "enable_chunked_prefill=false");
}
