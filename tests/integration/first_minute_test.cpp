// SPDX-License-Identifier: Apache-2.0
// What a person types first: `demo`, `doctor`, and what `init` finds on a machine.
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/simengine.hpp"
#include "support/terminal.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "base/files.hpp"
#include "servetune/detail/host/process.hpp"

#include <sys/mount.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;
using MinuteJson = nlohmann::json;

/// A folder to work in, with a home and a PATH of its own.
class NewComputer {
public:
    NewComputer() {
        for (const char* name : {"bin", "home", "work"})
            fs::create_directories(folder_.path() / name);
    }
    void install(const std::string& name, const std::string& body = "exit 0\n") const {
        const fs::path file = folder_.write("bin/" + name, "#!/bin/sh\n" + body);
        fs::permissions(file, fs::perms::owner_all);
    }
    /// nvidia-smi, with this answer to the question about processes.
    void install_gpus(const std::string& processes = "") const {
        install("nvidia-smi",
                "case \"$1\" in\n"
                "--query-gpu=index,uuid,name,*) echo '0, GPU-0a, NVIDIA H100 80GB HBM3, 81559, "
                "570.86';;\n"
                "--query-gpu=index,uuid,memory.used,*) echo '0, GPU-0a, 500, 81559, 1755, 1980, "
                "64, 70.0, 0x0000000000000001';;\n--query-compute-apps=*) " +
                    (processes.empty() ? "" : "echo '" + processes + "'") + ";;\nesac\n");
    }
    [[nodiscard]] std::vector<std::string> words(
        const std::vector<std::string>& own, const std::vector<std::string>& variables = {}) const {
        std::vector<std::string> all{"/usr/bin/env"};
        for (const char* unset :
             {"HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN",
              "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE", "XDG_CACHE_HOME",
              "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SERVETUNE_CACHE",
              "CUDA_VISIBLE_DEVICES", "LLAMA_CACHE", "OLLAMA_MODELS", "MODELSCOPE_CACHE"})
            all.insert(all.end(), {"-u", unset});
        all.insert(all.end(), {"PATH=" + path("bin").string(), "HOME=" + path("home").string()});
        all.insert(all.end(), variables.begin(), variables.end());
        all.emplace_back(SERVETUNE_PROGRAM);
        all.insert(all.end(), own.begin(), own.end());
        return all;
    }
    [[nodiscard]] Ran run(const std::vector<std::string>& own,
                          const std::vector<std::string>& variables = {}) const {
        return ran(words(own, variables), path("work"));
    }
    /// `doctor --json`: its checks by name, those with several lines as the last, and the exit
    /// code.
    [[nodiscard]] std::pair<int, MinuteJson> doctor(
        const std::vector<std::string>& variables = {}) const {
        const Ran said = run({"doctor", "--json"}, variables);
        INFO(said.out << said.err);
        MinuteJson checks = MinuteJson::object();
        const MinuteJson all = MinuteJson::parse(said.out);
        for (const MinuteJson& one : all["checks"]) checks[one["name"].get<std::string>()] = one;
        const auto stops =
            std::count_if(all["checks"].begin(), all["checks"].end(),
                          [](const MinuteJson& one) { return one["state"] == "stops you"; });
        CHECK(all["stops"] == stops);
        CHECK(said.code == (stops > 0 ? 3 : 0));
        return {said.code, checks};
    }
    [[nodiscard]] fs::path path(const std::string& name) const { return folder_.path() / name; }
    void put(const std::string& name, const std::string& content) const {
        fs::create_directories(path(name).parent_path());
        folder_.write(name, content);
    }

private:
    TemporaryFolder folder_;
};

bool says(const MinuteJson& check, const std::string& state, const std::string& found) {
    return check.is_object() && check["state"] == state &&
           has(check["found"].get<std::string>(), found) &&
           (state == "fine" || check["do"].is_string());
}

}  // namespace

TEST_CASE("first minute: the demo tells a whole study, and needs nothing of the machine") {
    const NewComputer computer;
    computer.install("nvidia-smi", "echo asked >> " + computer.path("asked").string() + "\n");
    fs::create_directory(computer.path("work/autotune-demo"));  // is left alone
    const auto begin = std::chrono::steady_clock::now();
    const Ran ran = computer.run({"demo"}, {"HOME=/nonexistent"});
    INFO(ran.out << ran.err);
    REQUIRE(ran.code == 0);
    CHECK(seconds_since(begin) < 60);  // 14 s on two free cores
    const fs::path folder = computer.path("work/autotune-demo-2");
    CHECK(has(ran.err, "A simulated study, about 15 s"));
    CHECK(has(ran.out, "what happened: simulated, 1"));
    CHECK(has(ran.out, ": vllm serve Qwen/Qwen3-14B-FP8"));
    CHECK(has(ran.out, "report: " + (folder / "report.html").string() + "\n"));
    CHECK(has(read_file(folder / "report.md"), "Simulated: simengine played vLLM"));
    CHECK_FALSE(fs::exists(computer.path("asked")));
    CHECK(fs::is_empty(computer.path("work/autotune-demo")));
    CHECK(leftovers(folder.string()).empty());
}

TEST_CASE(
    "first minute: Ctrl-C ends the demo and its engines, and it needs a folder to write into") {
    const NewComputer computer;
    ChildProcess process(computer.words({"demo"}), computer.path("work"));
    const fs::path folder = computer.path("work/autotune-demo");
    REQUIRE(comes_to_trial(folder, 2));
    process.signal(SIGINT);
    CHECK(process.wait_at_most(std::chrono::seconds(30)) == 130);
    INFO(process.err());
    CHECK(has(process.err(), "the demo was stopped; nothing of it is running"));
    CHECK(process.out().empty());
    CHECK(leftovers(folder.string()).empty());

    std::vector<std::string> words{"/bin/sh", "-c", "cd /proc && exec \"$@\"", "sh"};
    const std::vector<std::string> own = computer.words({"demo"});
    words.insert(words.end(), own.begin(), own.end());
    const Ran nowhere = ran(words, computer.path("work"));
    CHECK(nowhere.code == 3);
    CHECK(has(nowhere.err, "the demo cannot make its folder autotune-demo here: "));
}

TEST_CASE("first minute: the demo says that simengine is missing") {
    const NewComputer computer;
    fs::copy_file(SERVETUNE_PROGRAM, computer.path("bin/autotune"));
    std::vector<std::string> words =
        computer.words({"demo"}, {"SERVETUNE_SEARCH_SPACES=" SERVETUNE_SOURCE "/search_spaces"});
    std::replace(words.begin(), words.end(), std::string(SERVETUNE_PROGRAM),
                 computer.path("bin/autotune").string());
    const Ran missing = ran(words, computer.path("work"));
    CHECK(missing.code == 3);
    CHECK(has(missing.err,
              "the demo needs the program simengine, which plays the engine; it is neither in " +
                  computer.path("bin").string()));
    CHECK_FALSE(fs::exists(computer.path("work/autotune-demo")));
}

TEST_CASE(
    "first minute: the doctor finds nothing wrong with a machine that is well, and says how it "
    "looks") {
    const NewComputer computer;
    computer.install_gpus();
    computer.install("nvidia-ctk", "echo 'nvidia.com/gpu=0'\n");
    computer.install("docker");
    computer.install("podman");
    fs::create_directories(computer.path("lib/python3.12/site-packages/vllm-0.24.0.dist-info"));
    computer.install("vllm");
    computer.put("home/.cache/huggingface/token", "hf_SECRETVALUE");
    const auto [code, checks] = computer.doctor();
    INFO(checks.dump(1));
    CHECK(code == 0);
    CHECK(says(checks["GPUs"], "fine", "1 x NVIDIA H100 80GB HBM3, 80 GiB each"));
    CHECK(says(checks["GPU use"], "fine", "no other process"));
    CHECK(says(checks["engine"], "fine", "vllm 0.24.0"));
    CHECK(says(checks["containers"], "fine", "podman answers"));
    CHECK(says(checks["ports"], "fine", "127.0.0.1 takes connections"));
    CHECK(says(checks["hub"], "fine", "there is a token"));
    CHECK_FALSE(has(checks.dump(), "SECRETVALUE"));
    CHECK_FALSE(has(computer.run({"doctor"}, {"HF_TOKEN=hf_SECRETVALUE"}).out, "SECRETVALUE"));
    const Ran text = computer.run({"doctor"});
    CHECK(text.code == 0);
    CHECK(has(text.out, "fine           GPUs: 1 x NVIDIA H100 80GB HBM3, 80 GiB each\n"));
    CHECK(text.out.ends_with("nothing stops you\n"));
    CHECK_FALSE(fs::exists(computer.path("home/.cache/servetune")));  // it only looks
}

TEST_CASE("first minute: the doctor says of GPUs who else uses them") {
    const NewComputer computer;
    computer.install_gpus(std::to_string(getpid()) + ", GPU-0a, 20480");
    const auto [code, checks] = computer.doctor();
    INFO(checks.dump(1));
    CHECK(code == 0);
    CHECK(says(checks["GPU use"], "worth knowing", "GPU 0: 20480 MiB in use by "));
    CHECK(has(checks["GPU use"]["found"].get<std::string>(), "(" + std::to_string(getpid()) + ")"));
    const auto hidden = computer.doctor({"CUDA_VISIBLE_DEVICES=7"}).second;
    CHECK(says(hidden["GPUs"], "worth knowing",
               "0 of 1 are visible: CUDA_VISIBLE_DEVICES hides the others"));
    computer.install("nvidia-smi",
                     "echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA "
                     "driver.'; exit 9\n");
    CHECK(says(computer.doctor().second["GPUs"], "stops you", "NVIDIA-SMI has failed"));
    fs::remove(computer.path("bin/nvidia-smi"));
    CHECK(says(computer.doctor().second["GPUs"], "worth knowing", "none found"));
    computer.install("amd-smi", "echo '[{\"gpu\": 0, \"power\": {\"socket_power\": 214}}]'\n");
    CHECK(says(computer.doctor().second["GPUs"], "fine", "1 by amd-smi"));
}

TEST_CASE("first minute: the doctor knows engines by their versions, and who may run containers") {
    const NewComputer computer;
    const auto nothing = computer.doctor().second;
    CHECK(says(nothing["engine"], "worth knowing", "none is on the PATH of "));
    CHECK(says(nothing["containers"], "fine", "neither docker nor podman is here"));
    CHECK(says(nothing["hub"], "worth knowing", "no token"));
    CHECK(says(computer.doctor({"HF_HUB_OFFLINE=1"}).second["hub"], "worth knowing",
               "HF_HUB_OFFLINE is set"));
    CHECK(says(computer.doctor({"HF_TOKEN=hf_x"}).second["hub"], "fine", "there is a token"));
    computer.install("vllm");
    CHECK(says(computer.doctor().second["engine"], "fine", "of an unknown version"));
    const fs::path packages = computer.path("lib/python3.12/site-packages");
    fs::create_directories(packages / "vllm-99.1.dist-info");
    CHECK(says(computer.doctor().second["engine"], "worth knowing", "vllm 99.1 is newer than "));
    fs::remove(packages / "vllm-99.1.dist-info");
    fs::create_directories(packages / "vllm-0.2.dist-info");
    CHECK(says(computer.doctor().second["engine"], "worth knowing", "vllm 0.2 is older than 0.11"));
    computer.install("docker",
                     "echo 'permission denied while trying to connect to the Docker daemon socket' "
                     ">&2; exit 1\n");
    const auto refused = computer.doctor().second["containers"];
    CHECK(says(refused, "worth knowing", "docker cannot run containers here: permission denied"));
    CHECK(has(refused["do"].get<std::string>(), "sudo usermod -aG docker $USER"));
    computer.install("docker");
    CHECK(says(computer.doctor().second["containers"], "fine", "docker answers"));
}

TEST_CASE("first minute: the doctor says which folder or limit is in the way") {
    const NewComputer computer;
    const auto in = [&](const std::string& before) {
        std::vector<std::string> words{"/bin/sh", "-c", before + " && exec \"$@\"", "sh"};
        const std::vector<std::string> own = computer.words({"doctor"});
        words.insert(words.end(), own.begin(), own.end());
        return ran(words, computer.path("work"));
    };
    const Ran nowhere = in("cd /proc");
    INFO(nowhere.out);
    CHECK(nowhere.code == 3);
    CHECK(has(nowhere.out, "stops you      this folder: /proc, "));
    CHECK(nowhere.out.ends_with("1 thing stops you\n"));
    const fs::path disk = computer.path("work/disk");
    fs::create_directory(disk);
    if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0) {
        std::cout << "skipped: this user may not mount a small disk\n";
        return;
    }
    const Ran full = in("cd disk");
    CHECK(full.code == 3);
    CHECK(has(full.out, "disk, 0.0 GiB free: a study would not fit"));
    REQUIRE(mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k") == 0);
    const Ran read_only = in("cd disk");
    umount2(disk.c_str(), MNT_DETACH);
    CHECK(has(read_only.out, "0.0 GiB free: cannot be written: Read-only file system"));
}

TEST_CASE(
    "first minute: init takes the model that it finds in a cache or at a server, and lists the "
    "others") {
    const NewComputer computer;
    computer.install("vllm");
    const std::string causal = R"({"architectures": ["Qwen3ForCausalLM"]})";
    const std::string hub = "home/.cache/huggingface/hub/models--";
    for (const char* name : {"Qwen--Qwen3-8B", "Qwen--Qwen3-14B"}) {
        computer.put(hub + name + "/refs/main", "abc");
        computer.put(hub + name + "/snapshots/abc/config.json", causal);
        computer.put(hub + name + "/snapshots/abc/model.safetensors", "weights");
    }
    fs::last_write_time(computer.path(hub + "Qwen--Qwen3-8B/snapshots/abc"),
                        fs::file_time_type::clock::now() - std::chrono::hours(1));
    computer.put("work/m.gguf", "GGUF");
    const auto model_of = [&](const std::vector<std::string>& more) {
        std::vector<std::string> words{"init", "--force", "--yes", "--hardware", "h100-sxm"};
        words.insert(words.end(), more.begin(), more.end());
        const Ran init = computer.run(words);
        INFO(init.out << init.err);
        REQUIRE(init.code == 0);
        const std::string text = read_file(computer.path("work/study.yaml"));
        const auto at = text.find("\nmodel: ") + 8;
        return std::pair(text.substr(at, text.find('\n', at) - at), init.out);
    };
    const auto [model, out] = model_of({});
    CHECK(model == "Qwen/Qwen3-14B");
    CHECK(has(out, "models found: Qwen/Qwen3-14B, Qwen/Qwen3-8B\n"));
    CHECK(model_of({"--model", "org/own"}).first == "org/own");
    // An engine whose model is a file gets a file.
    CHECK(model_of({"--engine", "llama.cpp"}).first ==
          "\"" + fs::canonical(computer.path("work/m.gguf")).string() + "\"");

    OnTerminal terminal(computer.words({"init", "--force", "--output", "asked.yaml"}),
                        computer.path("work"), 200);
    terminal.type("\nQwen/Qwen3-8B\nh100-sxm\n\n\n");
    CHECK(terminal.watch([](const ShownRows&) {}) == 0);
    INFO(terminal.shown().text());
    CHECK(has(terminal.shown().text(),
              "2. Model: a name on the hub, a folder or a file [Qwen/Qwen3-14B]:"));
    CHECK(has(read_file(computer.path("work/asked.yaml")), "\nmodel: Qwen/Qwen3-8B\n"));

    SimEngine engine(SIMENGINE_PROGRAM, {"--start-scale", "1000", "vllm", "serve", "Qwen/Qwen3-4B",
                                         "--host", "127.0.0.1", "--port", "23333"});
    if (!engine.wait_until_ready()) {
        std::cout << "skipped: somebody has port 23333\n";
        return;
    }
    CHECK(model_of({"--attach", "http://127.0.0.1:23333"}).first == "Qwen/Qwen3-4B");
}
