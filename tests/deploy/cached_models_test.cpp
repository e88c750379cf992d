// SPDX-License-Identifier: Apache-2.0
// Models in caches that are whole, damaged, large, or lead elsewhere.
#include "deploy/cached_models.hpp"
#include "support/test.hpp"

#include <array>
#include <chrono>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string causal = R"({"architectures": ["Qwen3ForCausalLM"]})";
const std::vector<std::string> gguf_files{"$LLAMA_CACHE/*.gguf", "~/.cache/llama-files/*.gguf"};

/// A home with caches, and this process's variables that lead to it.
class Home {
public:
    Home() {
        for (const char* name : names) {
            const char* value = std::getenv(name);
            if (value != nullptr) before_.emplace_back(name, value);
            unsetenv(name);
        }
        if (const char* home = std::getenv("HOME")) before_.emplace_back("HOME", home);
        setenv("HOME", folder_.path().c_str(), 1);
    }
    ~Home() {
        for (const char* name : names) unsetenv(name);
        for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
    }
    Home(const Home&) = delete;
    Home& operator=(const Home&) = delete;

    void put(const std::string& name, const std::string& content) const {
        fs::create_directories((folder_.path() / name).parent_path());
        folder_.write(name, content);
    }
    [[nodiscard]] fs::path path(const std::string& name) const { return folder_.path() / name; }
    /// As huggingface_hub lays it out: names in a snapshot are links to blobs.
    void put_hub(const std::string& model, const std::vector<std::string>& files,
                 const std::string& config = causal) const {
        const std::string at = hub + "/models--" + model + "/";
        put(at + "refs/main", "0123abc");
        put(at + "blobs/config", config);
        fs::create_directories(path(at + "snapshots/0123abc"));
        fs::create_symlink("../../blobs/config", path(at + "snapshots/0123abc/config.json"));
        for (const std::string& file : files) {
            put(at + "blobs/" + file, "weights");
            fs::create_symlink("../../blobs/" + file, path(at + "snapshots/0123abc/" + file));
        }
    }
    /// The names that are found, in order.
    [[nodiscard]] static std::vector<std::string> found(CacheSearch bounds = {
                                                            .time = std::chrono::hours(1)}) {
        std::vector<std::string> result;
        for (const CachedModel& model : cached_models(gguf_files, bounds))
            result.push_back(model.name);
        return result;
    }
    static inline const std::string hub = ".cache/huggingface/hub";

private:
    static constexpr std::array<const char*, 5> names{
        "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", "LLAMA_CACHE"};
    TemporaryFolder folder_;
    std::vector<std::pair<std::string, std::string>> before_{};
};

void written_before(const fs::path& file, int hours) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(hours));
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE(
    "cached models: the hub's are called by their names, the newest first, if they are whole and "
    "write text") {
    const Home home;
    home.put_hub("Qwen--Qwen3-8B",
                 {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"});
    home.put_hub("nvidia--mamba", {"model.safetensors"},  // as Python writes it
                 replaced(causal, "{", R"({"time_step_limit": [0.0, Infinity], "a": NaN, )"));
    home.put_hub("org--half", {"model-00001-of-00002.safetensors"});
    home.put_hub("org--bert", {"model.safetensors"}, R"({"architectures": ["BertModel"]})");
    home.put_hub("org--adapter", {"adapter_model.safetensors"}, "{}");
    home.put_hub("gpt2", {"pytorch_model.bin"},  // as Python writes it
                 R"({"limits": [-Infinity, Infinity, NaN], "architectures": ["GPT2LMHeadModel"]})");
    home.put_hub("org--lost", {"model.safetensors"});
    fs::remove(home.path(Home::hub + "/models--org--lost/blobs/model.safetensors"));
    home.put_hub("org--files", {"m-Q4.gguf", "mmproj-m.gguf"});
    written_before(home.path(Home::hub + "/models--gpt2/snapshots/0123abc"), 1);
    written_before(home.path(Home::hub + "/models--Qwen--Qwen3-8B/snapshots/0123abc"), 2);
    written_before(home.path(Home::hub + "/models--org--files/snapshots/0123abc"), 3);
    written_before(home.path(Home::hub + "/models--nvidia--mamba/snapshots/0123abc"), 4);
    const std::string file =
        fs::canonical(home.path(Home::hub)) / "models--org--files/snapshots/0123abc/m-Q4.gguf";
    CHECK(Home::found() == Names{"gpt2", "Qwen/Qwen3-8B", file, "nvidia/mamba"});
    CHECK(cached_models(gguf_files).at(2).ending == ".gguf");
    CHECK(cached_models(gguf_files).front().ending.empty());
    CHECK(cached_models(gguf_files).front().where == "the hub's cache");
}

TEST_CASE(
    "cached models: a link that leads out of the cache, a commit that is a path and damaged files "
    "are passed over") {
    const Home home;
    home.put("elsewhere/model.safetensors", "weights");
    home.put("elsewhere/snapshots/main/model.safetensors", "weights");
    home.put("elsewhere/snapshots/main/config.json", causal);
    home.put_hub("org--linked", {});
    fs::create_symlink(
        home.path("elsewhere/model.safetensors"),
        home.path(Home::hub + "/models--org--linked/snapshots/0123abc/model.safetensors"));
    home.put_hub("org--escaping", {"model.safetensors"});
    home.put(Home::hub + "/models--org--escaping/refs/main",
             "../../../../../elsewhere/snapshots/main");
    home.put_hub("org--noise", {"model.safetensors"}, std::string(200'000, '['));
    home.put(Home::hub + "/models--org--file", "no folder");
    fs::create_directories(home.path(Home::hub + "/models--"));
    fs::create_symlink("models--org--circle", home.path(Home::hub + "/models--org--circle"));
    CHECK(Home::found().empty());
}

TEST_CASE("cached models: files that an engine's patterns name, if all parts are there") {
    const Home home;
    setenv("LLAMA_CACHE", home.path("kept").c_str(), 1);
    home.put("kept/a.gguf", "GGUF");
    home.put("kept/b-00001-of-00002.gguf", "GGUF");
    home.put("kept/b-00002-of-00002.gguf", "GGUF");
    home.put("kept/c-00002-of-00002.gguf", "GGUF");
    home.put("kept/a.gguf.downloadInProgress", "GG");
    written_before(home.path("kept/b-00001-of-00002.gguf"), 1);
    const fs::path root = fs::canonical(home.path("."));
    const std::vector<CachedModel> found = cached_models(gguf_files);
    Names names;
    for (const CachedModel& one : found) names.push_back(one.name);
    REQUIRE(names == Names{root / "kept/a.gguf", root / "kept/b-00001-of-00002.gguf"});
    CHECK(found[0].where == "in " + (root / "kept").string());
    CHECK(found[1].ending == ".gguf");
}

TEST_CASE(
    "cached models: a cache with many entries is looked at for a moment, and no cache is none") {
    const Home home;
    CHECK(Home::found().empty());
    for (int i = 0; i < 60; ++i)
        home.put_hub("org--m" + std::to_string(100 + i), {"model.safetensors"});
    CHECK(Home::found().size() == 60);
    const auto some = Home::found({.entries = 100, .time = std::chrono::hours(1)});
    CHECK(some.size() < 60);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(Home::found({.time = std::chrono::milliseconds(0)}).empty());
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}
