// SPDX-License-Identifier: Apache-2.0
// What a person or a script that calls `autotune` can rely on, as data: tests/data/cases/program.
// tests/data/cases/program/README.yaml says how a case is written.
#include "support/autotune.hpp"
#include "support/simengine.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "study_file/yaml.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

const fs::path source = SERVETUNE_SOURCE;

/// A case in its folder: the files, the programs of its machine, a server, and what was kept.
class Case {
public:
    explicit Case(const Yaml& yaml) {
        names_ = {{"@SOURCE@", source.string()},
                  {"@FOLDER@", folder_.path().string()},
                  {"@AUTOTUNE@", SERVETUNE_PROGRAM},
                  {"@SIMENGINE@", SIMENGINE_PROGRAM}};
        if (const Yaml* programs = part(yaml, "programs")) install(*programs);
        if (const Yaml* variables = part(yaml, "variables"))
            for (const auto& [name, value] : variables->entries())
                environment_.push_back(name + "=" + filled(value));
        if (const Yaml* words = part(yaml, "server")) {
            server_ = std::make_unique<SimEngine>(SIMENGINE_PROGRAM, words_of(*words));
            REQUIRE(server_->wait_until_ready());
            names_["@URL@"] = server_->url();
        }
        if (const Yaml* steps = part(yaml, "steps")) {
            write_files(yaml);
            for (const Yaml& one : steps->items()) repeat(one);
        } else repeat(yaml);
    }

private:
    static const Yaml* part(const Yaml& yaml, std::string_view key) { return yaml.entry(key); }

    [[nodiscard]] std::string filled(std::string text) const {
        for (const auto& [name, value] : names_) text = replaced_all(std::move(text), name, value);
        return text;
    }
    [[nodiscard]] std::string filled(const Yaml& text) const { return filled(text.text()); }
    /// A list, or one text.
    [[nodiscard]] Words texts_of(const Yaml* yaml) const {
        if (yaml == nullptr) return {};
        if (!yaml->is_sequence()) return {filled(*yaml)};
        Words result;
        for (const Yaml& one : yaml->items()) result.push_back(filled(one));
        return result;
    }
    /// A list, or one text of words with blanks between them.
    [[nodiscard]] Words words_of(const Yaml& yaml) const {
        if (yaml.is_sequence()) return texts_of(&yaml);
        Words result;
        std::istringstream stream(yaml.text());
        for (std::string word; stream >> word;) result.push_back(filled(word));
        return result;
    }
    [[nodiscard]] fs::path at(const std::string& name) const { return folder_.path() / name; }

    /// A machine on which there are only these programs, scripts of sh or simengine, with a home of
    /// its own.
    void install(const Yaml& programs) {
        fs::create_directories(at("bin"));
        fs::create_directories(at("home"));
        for (const auto& [name, lines] : programs.entries()) {
            if (lines.text() == "simengine") {
                fs::create_symlink(SIMENGINE_PROGRAM, at("bin/" + name));
                continue;
            }
            folder_.write("bin/" + name, "#!/bin/sh\n" + filled(lines));
            fs::permissions(at("bin/" + name), fs::perms::owner_all);
        }
        for (const char* name :
             {"HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN", "HF_TOKEN_PATH",
              "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "XDG_CACHE_HOME", "DISPLAY",
              "WAYLAND_DISPLAY", "SSH_CONNECTION", "CUDA_VISIBLE_DEVICES", "LLAMA_CACHE",
              "OLLAMA_MODELS", "MODELSCOPE_CACHE"})
            environment_.insert(environment_.end(), {"-u", name});
        environment_.push_back("PATH=" + at("bin").string());
        environment_.push_back("HOME=" + at("home").string());
    }

    void write_files(const Yaml& yaml) const {
        const Yaml* files = part(yaml, "files");
        if (files == nullptr) return;
        for (const auto& [name, content] : files->entries()) {
            fs::create_directories(at(name).parent_path());
            const std::string text = filled(content);
            folder_.write(name, text.starts_with("@/") ? read_file(source / text.substr(2)) : text);
        }
    }
    void change_files(const Yaml& yaml) const {
        const Yaml* changes = part(yaml, "change");
        if (changes == nullptr) return;
        for (const auto& [name, texts] : changes->entries()) {
            const Words pairs = texts_of(&texts);
            std::string text = read_file(at(name));
            for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
                text = replaced_all(text, pairs[i], pairs[i + 1]);
            folder_.write(name, text);
        }
    }

    /// A step once, or once for each row of `each`, whose texts are @1@, @2@ and so on.
    void repeat(const Yaml& yaml) {
        const Yaml* each = part(yaml, "each");
        if (each == nullptr) return step(yaml);
        for (const Yaml& row : each->items()) {
            const Words texts = texts_of(&row);
            for (std::size_t i = 0; i < texts.size(); ++i)
                names_["@" + std::to_string(i + 1) + "@"] = texts[i];
            step(yaml);
        }
    }
    void step(const Yaml& yaml) {
        INFO(yaml.place());
        write_files(yaml);
        change_files(yaml);
        const Ran ended = run(yaml);
        INFO(ended.code << "\n" << ended.out << ended.err);
        const Words codes =
            part(yaml, "code") == nullptr ? Words{"0"} : texts_of(part(yaml, "code"));
        CHECK(contains(codes, std::to_string(ended.code)));
        check_text(yaml, "says", ended.out + ended.err);
        check_text(yaml, "out", ended.out);
        check_text(yaml, "err", ended.err);
        if (const Yaml* is = part(yaml, "out_is")) CHECK(ended.out == filled(*is));
        if (const Yaml* is = part(yaml, "err_is")) CHECK(ended.err == filled(*is));
        for (const std::string& never : texts_of(part(yaml, "never")))
            CHECK_FALSE(has(ended.out + ended.err, never));
        if (const Yaml* name = part(yaml, "keep")) kept_[name->text()] = ended.out;
        if (const Yaml* name = part(yaml, "as")) CHECK(ended.out == kept_.at(name->text()));
        if (part(yaml, "json") != nullptr) check_json(part(yaml, "json"), Json::parse(ended.out));
        check_files(yaml);
    }
    [[nodiscard]] Ran run(const Yaml& yaml) const {
        Words words{"/usr/bin/env"};
        words.insert(words.end(), environment_.begin(), environment_.end());
        if (const Yaml* variables = part(yaml, "variables"))
            for (const auto& [name, value] : variables->entries())
                words.push_back(name + "=" + filled(value));
        if (const Yaml* lines = part(yaml, "shell")) {
            const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
            words.push_back("PATH=" + at("bin").string() + ":" +
                            fs::path(SERVETUNE_PROGRAM).parent_path().string() + ":" + path);
            words.insert(words.end(), {"/bin/sh", "-c", filled(*lines)});
        } else {
            words.emplace_back(SERVETUNE_PROGRAM);
            const Words own = words_of(*part(yaml, "run"));
            words.insert(words.end(), own.begin(), own.end());
        }
        return ran(words, folder_.path());
    }

    void check_text(const Yaml& yaml, std::string_view key, const std::string& text) const {
        for (const std::string& one : texts_of(part(yaml, key))) {
            INFO(key << ": " << one);
            CHECK(has(text, one));
        }
    }
    void check_files(const Yaml& yaml) const {
        const auto each = [&](std::string_view key, const auto& check) {
            if (const Yaml* files = part(yaml, key))
                for (const auto& [name, wanted] : files->entries()) {
                    INFO(name);
                    REQUIRE(fs::exists(at(name)));
                    check(read_file(at(name)), wanted);
                }
        };
        each("file", [&](const std::string& text, const Yaml& wanted) {
            for (const std::string& one : texts_of(&wanted)) {
                INFO(one);
                CHECK(has(text, one));
            }
        });
        each("file_is",
             [&](const std::string& text, const Yaml& wanted) { CHECK(text == filled(wanted)); });
        each("file_lacks", [&](const std::string& text, const Yaml& wanted) {
            for (const std::string& one : texts_of(&wanted)) CHECK_FALSE(has(text, one));
        });
        each("file_json", [&](const std::string& text, const Yaml& wanted) {
            check_json(&wanted, Json::parse(text));
        });
        for (const std::string& name : texts_of(part(yaml, "there"))) {
            INFO(name);
            CHECK(fs::exists(fs::symlink_status(at(name))));
        }
        for (const std::string& name : texts_of(part(yaml, "none"))) {
            INFO(name);
            CHECK_FALSE(fs::exists(fs::symlink_status(at(name))));
        }
    }

    /// Lines of place, comparison and value, such as `/gain/high < -0.5`.
    void check_json(const Yaml* lines, const Json& json) const {
        for (const std::string& line : texts_of(lines)) {
            INFO(line);
            std::istringstream words(line);
            std::string place, comparison, value;
            words >> place >> comparison >> std::ws;
            std::getline(words, value);
            const std::vector<Json> found = found_at(json, place);
            if (comparison == "none") {
                CHECK(found.empty());
                continue;
            }
            CHECK_FALSE(found.empty());
            for (const Json& one : found) {
                INFO(one.dump());
                CHECK(holds(one, comparison, wanted_value(json, value)));
            }
        }
    }
    /// What stands at a place; `*` is each element.
    static std::vector<Json> found_at(const Json& json, const std::string& place) {
        std::vector<Json> result{json};
        std::istringstream parts(place);
        std::string part;
        std::getline(parts, part, '/');
        while (std::getline(parts, part, '/')) {
            std::vector<Json> next;
            for (const Json& one : result)
                if (part == "*") next.insert(next.end(), one.begin(), one.end());
                else if (const Json::json_pointer to("/" + part); one.contains(to))
                    next.push_back(one.at(to));
            result = next;
        }
        return result;
    }
    /// JSON, a place of the same JSON (`@/a/b`), or text.
    static Json wanted_value(const Json& json, const std::string& value) {
        if (value.starts_with("@/")) return json.at(Json::json_pointer(value.substr(1)));
        const Json parsed = Json::parse(value, nullptr, false);
        return parsed.is_discarded() ? Json(value) : parsed;
    }
    static bool holds(const Json& found, const std::string& comparison, const Json& wanted) {
        const auto text = [](const Json& json) {
            return json.is_string() ? json.get<std::string>() : json.dump();
        };
        if (comparison == "==") return found == wanted;
        if (comparison == "!=") return found != wanted;
        if (comparison == ">=") return found >= wanted;
        if (comparison == "<=") return found <= wanted;
        if (comparison == ">") return found > wanted;
        if (comparison == "<") return found < wanted;
        if (comparison == "size") return found.size() == wanted;
        if (comparison == "has") return has(text(found), text(wanted));
        if (comparison == "lacks") return !has(text(found), text(wanted));
        FAIL("no comparison: " << comparison);
        return false;
    }

    TemporaryFolder folder_;
    std::map<std::string, std::string> names_;
    Words environment_;
    std::unique_ptr<SimEngine> server_;
    std::map<std::string, std::string> kept_;
};

}  // namespace

// SERVETUNE_TEST_CASES=compare: those of compare.yaml alone.
TEST_CASE("program cases: what it says and does, in tests/data/cases/program") {
    const char* const only = std::getenv("SERVETUNE_TEST_CASES");  // NOLINT(concurrency-mt-unsafe)
    for (const auto& entry : fs::directory_iterator(source / "tests/data/cases/program")) {
        if (only != nullptr && entry.path().stem() != only) continue;
        const Yaml cases = Yaml::load(entry.path());
        for (const Yaml& one : cases.items()) {
            const Yaml* name = one.entry(std::string_view("case"));
            DYNAMIC_SECTION(one.place() << ": " << (name == nullptr ? "" : name->text())) {
                const Case run(one);
            }
        }
    }
}
