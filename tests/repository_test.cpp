// SPDX-License-Identifier: Apache-2.0
// The rules of the repository that a machine can check (docs/architecture.md).
#include "support/test.hpp"

#include "base/files.hpp"
#include "engine/flag_facts.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/error.hpp"
#include "servetune/version.hpp"
#include "study_file/schema.hpp"

#include <nlohmann/json.hpp>

#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

using namespace servetune;
using namespace servetune::test;

namespace {

using Json = nlohmann::json;
const fs::path source = SERVETUNE_SOURCE;

/// From the ground up; src/CMakeLists.txt says which libraries hold them.
const std::vector<std::string> modules{"base",   "space",      "trial",  "study",   "search",
                                       "perf",   "load",       "host",   "engine",  "predict",
                                       "deploy", "study_file", "report", "results", "handover"};

/// A module includes itself and those before it.
bool may_include(const std::string& from, const std::string& to) {
    return std::find(modules.begin(), modules.end(), to) <=
           std::find(modules.begin(), modules.end(), from);
}

std::vector<std::pair<fs::path, std::string>> files_below(const fs::path& folder) {
    std::vector<std::pair<fs::path, std::string>> result;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) result.emplace_back(entry.path(), read_file(entry.path()));
    return result;
}

/// The first groups of all matches.
std::vector<std::string> found_in(const std::string& text, const std::string& pattern) {
    const std::regex wanted(pattern);
    std::vector<std::string> result;
    for (std::sregex_iterator at(text.begin(), text.end(), wanted), end; at != end; ++at)
        result.push_back((*at)[1]);
    return result;
}

std::vector<std::string> includes(const std::string& text) {
    return found_in(text, R"(#\s*include\s*[<"]([^>"]+)[>"])");
}

/// The modules' headers of include/servetune/ (`trial`, `detail/trial/decision`), as their lists
/// name them.
std::map<std::string, std::string> modules_of_headers() {
    std::map<std::string, std::string> result;
    for (const std::string& module : modules) {
        const std::string cmake = read_file(source / "src" / module / "CMakeLists.txt");
        for (const auto& list : found_in(cmake, R"(servetune_headers\(\w+([^)]*)\))")) {
            std::istringstream names(list);
            for (std::string name; names >> name;) result[name] = module;
        }
    }
    return result;
}

/// Of a file below `include` or `src`.
std::string module_of(const fs::path& file, const std::map<std::string, std::string>& headers) {
    const fs::path below = fs::relative(file, source);
    if (*below.begin() == "src") return std::next(below.begin())->string();
    const auto* found = entry_in(
        headers, fs::relative(file, source / "include/servetune").replace_extension().string());
    return found != nullptr ? *found : "";
}

/// What a file declares in its unnamed namespace: functions, variables, types; no aliases.
std::set<std::string> helpers_of(const std::string& text) {
    static const std::regex alias(R"(^(using|namespace|template|TEST_CASE)\b)");
    static const std::regex type(R"(^(?:struct|class|enum class|enum)\s+(\w+))");
    static const std::regex name(R"(\b(\w+)\s*[({=;])");
    std::set<std::string> result;
    std::istringstream lines(text);
    bool inside = false;
    for (std::string line; std::getline(lines, line);) {
        std::smatch found;
        if (line == "namespace {") inside = true;
        else if (line.starts_with("}  // namespace")) inside = false;
        else if (!inside || line.empty() ||
                 std::isalpha(static_cast<unsigned char>(line.front())) == 0 ||
                 std::regex_search(line, alias))
            continue;
        else if (std::regex_search(line, found, type) ||
                 (std::regex_search(line, found, name) && found[1] != "operator"))
            result.insert(found[1]);
    }
    return result;
}

/// The constants that a header declares for all that include it.
std::set<std::string> constants_of(const std::string& text) {
    const auto found = found_in(text, R"(\ninline constexpr [\w:<>, *]*?\b(\w+)\s*[={])");
    return {found.begin(), found.end()};
}

/// The string literals of C++, without those in comments.
std::vector<std::string> literals(const std::string& text) {
    static const std::regex token(
        R"re(//[^\n]*|/\*[^]*?\*/|R"\(([^]*?)\)"|"((?:[^"\\\n]|\\.)*)"|'(?:[^'\\\n]|\\.)')re");
    std::vector<std::string> result;
    for (std::sregex_iterator at(text.begin(), text.end(), token), end; at != end; ++at)
        if ((*at)[1].matched || (*at)[2].matched) result.push_back((*at)[1].str() + (*at)[2].str());
    return result;
}

std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

}  // namespace

TEST_CASE(
    "repository: a helper's name is one file's, so that files compiled together do not overload "
    "each other") {
    CHECK(helpers_of("namespace {\nint f(int a) {\n    return g(a);\n}\nconst char* const h = "
                     "\"(\";\nclass K : L {};\nusing M = int;\n"
                     "std::vector<N> p{{\n}  // namespace\nint q();\n") ==
          std::set<std::string>{"K", "f", "h", "p"});
    CHECK(constants_of("\ninline constexpr int a = 1;\ninline constexpr std::array<int, 2> b{1, "
                       "2};\nconstexpr int c = 3;\n") == std::set<std::string>{"a", "b"});
    // A constant of a file hides that of a header in the files that follow it in one build, unless
    // the header's are in a namespace of their own.
    std::map<std::string, std::string> of_headers;
    for (const char* folder : {"include", "src"})
        for (const auto& [file, text] : files_below(source / folder))
            if (file.extension() == ".hpp" &&
                !std::regex_search(text,
                                   std::regex(R"(\nnamespace (servetune::|(?!servetune)\w+ \{))")))
                for (const std::string& constant : constants_of(text))
                    of_headers.emplace(constant, file.filename().string());
    CHECK(of_headers.size() > 50);
    for (const char* together : {"src", "examples/autotune", "examples/simengine", "tests"}) {
        std::map<std::string, std::string> owners;
        if (std::string(together) == "src") owners = of_headers;
        for (const auto& [file, text] : files_below(source / together)) {
            const bool is_unit_test = contains(modules, file.parent_path().filename());
            if (file.extension() != ".cpp" || (std::string(together) == "tests" && !is_unit_test))
                continue;
            for (const std::string& helper : helpers_of(text)) {
                const auto [owner, first] = owners.try_emplace(helper, file.filename().string());
                INFO(helper << " in " << file.filename().string() << " and " << owner->second);
                CHECK(first);
            }
        }
        CHECK(owners.size() > 20);
    }
}

TEST_CASE("repository: an include goes down, or stays in its own module") {
    const std::map<std::string, std::string> headers = modules_of_headers();
    std::size_t arrows = 0;
    for (const fs::path& root : {source / "include/servetune", source / "src"})
        for (const auto& [file, text] : files_below(root)) {
            if (file.extension() != ".hpp" && file.extension() != ".cpp") continue;
            if (file.filename() == "servetune.hpp")
                continue;  // includes what a program needs, of several modules
            INFO(file.string());
            const std::string from = module_of(file, headers);
            REQUIRE(contains(modules, from));
            for (const std::string& included : includes(text)) {
                INFO(included);
                fs::path target;
                for (const fs::path& folder :
                     {file.parent_path(), source / "include", source / "src"})
                    if (target.empty() && fs::is_regular_file(folder / included))
                        target = fs::canonical(folder / included);
                if (target.empty()) continue;  // a library of others
                const std::string to = module_of(target, headers);
                REQUIRE(contains(modules, to));
                CHECK(may_include(from, to));
                ++arrows;
            }
        }
    CHECK(arrows > 1000);
    CHECK_FALSE(may_include("space", "trial"));
    CHECK_FALSE(may_include("study", "search"));
    CHECK(may_include("search", "study"));
}

TEST_CASE(
    "repository: a promised header has a line in headers.md, and includes no header that is not "
    "installed") {
    const std::string page = read_file(source / "docs/reference/headers.md");
    std::set<std::string> listed;
    for (const std::string& row : found_in(page, R"(\n\| `(\w+\.hpp)` \|)"))
        CHECK(listed.insert(row).second);
    std::set<std::string> promised;
    for (const auto& [file, text] : files_below(source / "include/servetune")) {
        INFO(file.string());
        const bool is_promised = file.parent_path().filename() == "servetune";
        if (is_promised) promised.insert(file.filename().string());
        for (const std::string& name : found_in(text, R"(([\w/]+\.hpp))")) {
            INFO(name);
            if (is_promised && !name.starts_with("boost/") && !name.starts_with("tests/contract/"))
                CHECK((fs::is_regular_file(source / "include" / name) ||
                       fs::is_regular_file(source / "include/servetune" / name)));
        }
        for (const std::string& included : includes(text)) {
            INFO(included);
            if (!has(included, ".hpp") || included.starts_with("boost/")) continue;
            CHECK(fs::is_regular_file(source / "include" / included));
        }
    }
    CHECK(promised == listed);
    CHECK(promised.size() <= 52);
}

TEST_CASE("repository: no code names an engine or its flags, so that a new engine is a file") {
    const fs::path spaces = source / "search_spaces";
    std::set<std::string> names, flags;
    for (const Engine& engine : Catalogue(spaces).engines()) {
        names.insert(lower(engine.name));
        std::vector<std::vector<std::string>> commands = engine.started_as;
        commands.push_back(engine.launch);
        for (const auto& words : commands)
            for (const std::string& word : words)
                if (word.starts_with('-')) flags.insert(word);
                else if (word != "serve" && word != "python3" && !word.starts_with('{'))
                    names.insert(lower(word));  // anybody's words
        for (const FlagFacts& facts : known_versions(spaces, engine.name))
            for (const auto& [flag, fact] : facts.flags) flags.insert(flag);
    }
    flags.erase("--help");  // every program's
    flags.erase("-m");      // Python's
    CHECK(names.contains("vllm"));
    CHECK(flags.size() > 1000);

    const auto named = [&](const std::string& text) {
        std::vector<std::string> result;
        for (const std::string& literal : literals(text)) {
            const bool names_one = any_of(
                names,
                [&, low = lower(literal)](const std::string& name) { return has(low, name); });
            if (names_one || flags.contains(literal)) result.push_back(literal);
        }
        return result;
    };
    CHECK(named("// \"vllm\"\nf('\"', \"a vLLM\", 1'000, \"--tensor-parallel-size\", "
                "R\"(sglang)\", \"--help\"); /* \"sglang\" */") ==
          std::vector<std::string>{"a vLLM", "--tensor-parallel-size", "sglang"});

    // What may: the readers of results know the formats that tools write, and a format is called by
    // its tool.
    const std::map<std::string, std::string> exceptions{
        {"src/load/audit.cpp",
         "vLLM's"}};  // two definitions of TPOT, called by the load tests that use them
    for (const char* root : {"include", "src"})
        for (const auto& [file, text] : files_below(source / root)) {
            const std::string where = fs::relative(file, source).string();
            if (where.starts_with("src/results/") || where.starts_with("src/handover/")) continue;
            const auto* exception = entry_in(exceptions, where);
            for (const std::string& literal : named(text)) {
                INFO(where << ": " << literal
                           << ": what is known of an engine belongs into its file "
                              "(docs/explanation/engines.md)");
                CHECK((exception != nullptr && has(literal, *exception)));
            }
        }
}

TEST_CASE("repository: tests and libraries are built with the standard library's assertions") {
#if defined(__GLIBCXX__) && !defined(_GLIBCXX_ASSERTIONS)
    FAIL(
        "configure with -DSERVETUNE_ASSERTIONS=ON: an empty optional that is read must end the "
        "test");
#endif
    CHECK(
        has(read_file(source / "CMakeLists.txt"), "add_compile_definitions(_GLIBCXX_ASSERTIONS)"));
}

TEST_CASE(
    "repository: public headers show no third-party library, the core no file or environment, and "
    "a clock in one place") {
    const std::set<std::string> core{"base", "space", "trial", "study", "search"};
    const std::set<std::string> of_the_world{"sqlite_journal.hpp", "workers.hpp",
                                             "worker_pool.hpp"};
    const std::map<std::string, std::string> headers = modules_of_headers();
    const std::regex third_party(
        R"(Eigen|nlohmann|yaml-cpp|fmt/|CLI/|sqlite3|curl|boost/(process|asio|beast))");
    const std::regex world(R"(^(chrono|fstream|iostream|cstdio|filesystem|unistd\.h|thread)$)");
    for (const auto& [file, text] : files_below(source / "include/servetune")) {
        INFO(file.string());
        for (const std::string& included : includes(text)) {
            INFO(included);
            CHECK_FALSE(std::regex_search(included, third_party));
            if (file.filename() == "clocks.hpp" && included == "chrono") continue;
            if (core.contains(module_of(file, headers)) &&
                !of_the_world.contains(file.filename().string()))
                CHECK_FALSE(std::regex_search(included, world));
        }
    }
}

TEST_CASE(
    "repository: files carry their licence, headers are guarded, public headers stay readable") {
    for (const char* folder :
         {"include", "src", "examples", "tests", "cmake", "search_spaces", "scripts"})
        for (const auto& [file, text] : files_below(source / folder)) {
            const std::string extension = file.extension().string();
            if (extension != ".hpp" && extension != ".cpp" && extension != ".cmake" &&
                extension != ".yaml")
                continue;
            if (has(file.string(), "/data/artefacts/"))
                continue;  // what is written for users, to the byte
            INFO(file.string());
            CHECK(text.find("SPDX-License-Identifier: Apache-2.0") < 60);
            if (extension == ".hpp") CHECK(text.find("#pragma once") < 200);
            if (has(file.string(), "/include/"))
                CHECK(std::count(text.begin(), text.end(), '\n') <= 350);
        }
}

TEST_CASE("repository: comments and pages have lines of at most 100 columns") {
    // A code point is a column. Left out: comments behind code, tables, code blocks, and what has
    // no place to break.
    const auto columns = [](const std::string& line) {
        return count_if(line,
                        [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    };
    static const std::regex comment(R"(^ *//[/!]? {1,3}\S.*)");  // more indented: code
    static const std::regex not_prose(R"(^ *([|!<#]|\[[^\]]*\]: |\S+$).*)");
    std::size_t checked = 0;
    std::vector<std::pair<fs::path, std::string>> files;
    for (const char* folder :
         {"include", "src", "examples", "tests", "benchmarks", "docs", "search_spaces"})
        for (auto& file : files_below(source / folder)) files.push_back(std::move(file));
    for (const char* page : {"README.md", "HACKING.md", "CHANGELOG.md"})
        files.emplace_back(page, read_file(source / page));
    for (const auto& [file, text] : files) {
        const bool page = file.extension() == ".md";
        if (!page && file.extension() != ".hpp" && file.extension() != ".cpp") continue;
        std::istringstream lines(text);
        bool in_block = false;
        for (std::string line; std::getline(lines, line);) {
            if (page && has(line, "```")) in_block = !in_block;
            if (in_block || columns(line) <= 100 || has(line, "NOLINT")) continue;
            if (page ? std::regex_match(line, not_prose) : !std::regex_match(line, comment))
                continue;
            INFO(file << ": " << line);
            CHECK(columns(line) <= 100);
        }
        ++checked;
    }
    CHECK(checked > 500);
}

TEST_CASE(
    "repository: no name of a test has a semicolon or begins with a tilde, so that ctest runs it "
    "and nothing else") {
    // CMake cuts a name at ';': what is left matches no test, and a Catch2 program that runs none
    // succeeds (29 tests were never run). To Catch2 '~' means all tests but this one.
    std::size_t names = 0;
    for (const auto& [file, text] : files_below(source / "tests"))
        for (const std::string& name : found_in(text, R"re(TEST_CASE\("([^"]*)")re")) {
            INFO(file.string() << ": " << name);
            CHECK_FALSE(has(name, ";"));
            CHECK_FALSE(name.starts_with('~'));
            ++names;
        }
    CHECK(names > 500);
}

TEST_CASE(
    "repository: every header of include is in the list of one module, so that it is installed and "
    "verified") {
    const std::map<std::string, std::string> headers = modules_of_headers();
    std::size_t files = 0;
    for (const auto& [file, text] : files_below(source / "include")) {
        INFO(file.string());
        CHECK(module_of(file, headers) != "");
        ++files;
    }
    CHECK(headers.size() == files);
}

TEST_CASE("repository: the skill of agents begins with its name and its description") {
    // Agents read these two lines as YAML between two rules; a formatter once made them prose.
    const std::string text = read_file(source / "skills/servetune/SKILL.md");
    CHECK(text.starts_with("---\nname: servetune\ndescription: "));  // as its folder is called
    CHECK(std::ranges::count(text.substr(0, text.find("\n---\n\n# ")), '\n') == 2);
}

TEST_CASE("repository: the entries of registries have the library's version") {
    const Json entry = Json::parse(read_file(source / "server.json"));
    const Json port = Json::parse(read_file(source / "packaging/vcpkg/ports/servetune/vcpkg.json"));
    for (const Json& of : {entry, entry["packages"][0], port})
        CHECK(of["version"] == library_version);
    // The MCP registry looks for this mark in the page of the package on PyPI.
    CHECK(has(read_file(source / "python/README.md"),
              "<!-- mcp-name: " + entry["name"].get<std::string>() + " -->"));
    CHECK(entry["description"].get<std::string>().size() <= 100);  // the registry's limit
}

TEST_CASE("repository: the schemas beside the search spaces are the readers' own") {
    const std::string format = read_file(source / "search_spaces/FORMAT.md");
    for (const std::string& kind : schema_kinds()) {
        INFO(kind << ": write it again with 'autotune schema " << kind << " > search_spaces/schema/"
                  << kind << ".json'");
        CHECK(read_file(source / ("search_spaces/schema/" + kind + ".json")) ==
              json_schema(kind, format));
    }
    CHECK(message_of<Error>([] { (void)json_schema("studdy", ""); }) ==
          "there is no schema of 'studdy'; known: study, model, engine, preset, traits, hardware, "
          "kernels, recipes, workload");
}

TEST_CASE("repository: FORMAT.md has the tables of keys that the readers accept") {
    INFO("scripts/schemas writes it again; then say what each new key means");
    const std::string format = read_file(source / "search_spaces/FORMAT.md");
    CHECK(format == with_key_tables(format));
    CHECK_FALSE(has(format, "|  |"));
    CHECK_FALSE(has(format, "|  (**required**)"));
}

TEST_CASE("repository: every key of a table is bound to a member, or a reader names it") {
    std::string readers;
    for (const auto& [file, text] : files_below(source / "src/study_file"))
        if (file.extension() == ".cpp") readers += text;
    for (const KeyType* table : key_tables())
        for (const Key& key : table->keys()) {
            INFO(table->table << "." << key.name);
            CHECK((key.into != nullptr || has(readers, "." + std::string(key.name))));
        }
}
