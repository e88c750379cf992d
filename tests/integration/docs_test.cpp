// SPDX-License-Identifier: Apache-2.0
// What the pages show is what happens: their commands are run, a few pages at a time, and their
// links are followed.
//
// A block of commands is a fence with the language `sh` or `bash` (all of it) or `console` (what
// follows `$ `; the rest is output, which is not compared). A page's blocks run in order, in one
// shell, in a folder like a checkout. A block of another language whose paragraph says "Save this
// as `NAME`" becomes that file. A comment that readers do not see, directly above the fence, says
// what else there is to know of it:
//     <!-- not run: REASON -->                    it cannot be run here
//     <!-- exit code: N -->                       of its last command, where it is not 0
//     <!-- in the background until: TEXT -->      a server that runs until the page's end, used once it has said TEXT
// and `<!-- first: OTHER.md -->`, anywhere: that page's blocks are run before, in the same folder.
#include "base/files.hpp"
#include "support/autotune.hpp"
#include "support/http.hpp"
#include "support/process.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include <algorithm>
#include <cctype>
#include <deque>
#include <future>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

using namespace servetune;
using namespace servetune::test;

namespace {

const fs::path checkout = SERVETUNE_SOURCE;
constexpr int seconds_of_a_page = 500;  // ends what hangs; a busy machine takes minutes

struct DocBlock {
    int line = 0;  ///< of its fence
    std::string language;
    std::string mark, said;  ///< of the comment above it: `not run` and why
    std::string save_as;
    std::vector<std::string> lines;
    [[nodiscard]] bool is_shell() const {
        return language == "sh" || language == "bash" || language == "console";
    }
};

struct DocPage {
    std::vector<DocBlock> blocks;
    std::vector<std::string> prose;  ///< the lines outside the fences
    std::string first;               ///< the page that is run before it
    std::vector<std::string> wrong;
};

std::string without_margin(const std::string& line, std::size_t most = std::string::npos) {
    return line.substr(std::min({line.find_first_not_of(' '), most, line.size()}));
}

bool looks_like_command(const std::string& line) {
    static const std::regex command(R"(^(\$ |autotune |simengine |scripts/|cmake |build/))");
    return std::regex_search(line, command);
}

/// The commands of a block, each with the lines that continue it.
std::vector<std::string> commands_of(const DocBlock& block) {
    std::vector<std::string> result;
    bool goes_on = false;
    for (const std::string& line : block.lines) {
        const bool begins = block.language != "console" || line.starts_with("$ ");
        if (goes_on) result.back() += "\n" + line;
        else if (begins) result.push_back(block.language == "console" ? line.substr(2) : line);
        else continue;
        goes_on = line.ends_with('\\');
    }
    std::erase_if(result, [](const std::string& command) { return command.empty(); });
    return result;
}

std::vector<std::string> wrong_with(const DocBlock& block) {
    std::vector<std::string> result;
    const std::vector<std::string> commands =
        block.is_shell() ? commands_of(block) : std::vector<std::string>{};
    if (commands.empty() && std::ranges::any_of(block.lines, looks_like_command))
        result.emplace_back(
            "commands in a fence that is not run: it needs the language sh, or console and `$ `");
    if (block.mark.empty()) return result;
    if (commands.empty()) result.push_back("'" + block.mark + "' above a fence without commands");
    if (block.mark == "not run" && !has(block.said, " "))
        result.emplace_back("not run, without a reason");
    if (block.mark == "in the background until" && commands.size() != 1)
        result.emplace_back("one command runs in the background, not several");
    if (block.mark == "exit code" && !std::regex_match(block.said, std::regex("[1-9][0-9]{0,2}")))
        result.emplace_back("an exit code is a number above 0");
    return result;
}

DocPage doc_page(const std::string& text) {
    static const std::regex fence(R"(^( *)(```+)\s*([\w+-]*)\s*$)");
    static const std::regex comment(R"(^ *<!-- *([a-z ]*[a-z])(?:: *(.*?))? *-->$)");
    static const std::regex save(R"(Save this as `([^`]+)`)");
    const std::set<std::string> marks{"not run", "exit code", "in the background until"};
    DocPage page;
    std::istringstream lines(text);
    std::optional<DocBlock> block;
    std::string above, paragraph, end;
    std::size_t margin = 0;
    int number = 0;
    const auto complain = [&](int at, const std::string& what) {  // with the line's number
        page.wrong.push_back(std::to_string(at) + ": " + what);
    };
    for (std::string line; std::getline(lines, line);) {
        ++number;
        std::smatch found;
        if (block) {
            if (without_margin(line) == end) {
                for (const std::string& what : wrong_with(*block)) complain(block->line, what);
                page.blocks.push_back(*std::exchange(block, std::nullopt));
                paragraph.clear();
            } else block->lines.push_back(without_margin(line, margin));
            continue;
        }
        const bool begins = std::regex_match(line, found, fence);
        std::smatch said;
        if (std::regex_match(above, said, comment)) {
            const std::string mark = said[1];
            if (begins && !marks.contains(mark))
                complain(number, "no mark is called '" + mark + "'");
            if (!begins && marks.contains(mark))
                complain(number, "'" + mark + "' is not directly above a fence");
            if (mark == "first") page.first = said[2];
        }
        if (begins) {
            block = DocBlock{number, found[3], "", "", "", {}};
            margin = found[1].str().size();
            end = found[2];
            if (!said.empty()) block->mark = said[1], block->said = said[2];
            if (std::regex_search(paragraph, found, save)) block->save_as = found[1];
            above.clear();
        } else {
            // The paragraph lasts over the blank line before the fence, to the next text.
            if (!line.empty() && above.empty()) paragraph.clear();
            paragraph += line + "\n";
            page.prose.push_back(line);
            above = line;
        }
    }
    if (block) complain(block->line, "a fence without an end");
    return page;
}

std::vector<fs::path> doc_pages() {
    std::vector<fs::path> result{"HACKING.md", "README.md", "skills/servetune/SKILL.md"};
    for (const auto& entry : fs::recursive_directory_iterator(checkout / "docs")) {
        const fs::path page = fs::relative(entry.path(), checkout);
        if (page.extension() == ".md" && page.parent_path() != "docs/decisions" &&
            !has(page.string(), "docs/results"))
            result.push_back(page);
    }
    std::ranges::sort(result);
    return result;
}

/// What a page's blocks do, as a part of a script; nothing where none is run.
std::string script_of(const fs::path& where, const DocPage& page) {
    std::string script;
    bool runs = false;
    for (const DocBlock& block : page.blocks) {
        const std::string at = where.string() + ":" + std::to_string(block.line);
        if (!block.save_as.empty()) {
            script += "cat > '" + block.save_as + "' <<'END_OF_THE_FILE'\n";
            for (const std::string& line : block.lines) script += line + "\n";
            script += "END_OF_THE_FILE\n";
        }
        const std::vector<std::string> commands =
            block.is_shell() ? commands_of(block) : std::vector<std::string>{};
        if (commands.empty() || block.mark == "not run") continue;
        runs = true;
        script += "for stream in 1 2; do echo '== " + at + "' >&$stream; done\n";
        for (const std::string& command : commands) {
            if (block.mark == "in the background until") {
                const std::string said = "said." + std::to_string(block.line);
                script += command + " > " + said + " 2>&1 &\n";
                script += "until grep -qF '" + block.said + "' " + said + "; do\n";
                script += "kill -0 $! || { cat " + said + " >&2; exit 98; }; sleep 0.1; done\n";
            } else if (block.mark == "exit code" && &command == &commands.back())
                script += "set +e\n" + command +
                          "\nexit_code=$?\nset -e\n[ $exit_code = " + block.said +
                          " ] || { echo \"exit code $exit_code, the page says " + block.said +
                          "\" >&2; exit 99; }\n";
            else script += command + "\n";
        }
    }
    return runs ? script : "";
}

/// Each port that a server is told to take is one that is free.
std::string with_free_ports(std::string script) {
    static const std::regex port(R"(--port[ =](\d+))");
    std::set<std::string> ports;
    for (std::sregex_iterator at(script.begin(), script.end(), port), end; at != end; ++at)
        ports.insert((*at)[1]);
    for (const std::string& old : ports) {
        const std::regex whole("\\b" + old + "\\b");
        script = std::regex_replace(script, whole, std::to_string(free_port()));
    }
    return script;
}

/// A checkout with built programs, as the pages assume it: `work` in `folder`, and `bin` for the
/// PATH beside it.
void lay_out(const fs::path& folder) {
    for (const char* name : {"bin", "home", "work"}) fs::create_directory(folder / name);
    for (const auto& entry : fs::directory_iterator(checkout))
        if (const fs::path name = entry.path().filename(); name != "build" && name != ".git")
            fs::create_symlink(entry.path(), folder / "work" / name);
    fs::create_directories(folder / "work/build/release");
    fs::create_directory_symlink(folder / "bin", folder / "work/build/release/bin");
    fs::create_symlink(SERVETUNE_PROGRAM, folder / "bin/autotune");
    fs::create_symlink(SIMENGINE_PROGRAM, folder / "bin/simengine");
}

/// Processes that work in a folder.
std::vector<std::string> workers_in(const fs::path& folder) {
    std::vector<std::string> result;
    std::error_code ignored;
    for (const auto& process : fs::directory_iterator("/proc", ignored)) {
        const std::string place = fs::read_symlink(process.path() / "cwd", ignored).string();
        if (!ignored && place.starts_with(folder.string()))
            result.push_back(process.path().filename().string());
    }
    return result;
}

struct PageRan {
    int code;
    std::string out, err;
    bool all_ended;
};

PageRan run_page(const std::string& commands) {
    const TemporaryFolder folder;
    lay_out(folder.path());
    const std::string end_servers = "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n";
    const fs::path script =
        folder.write("page.sh", "cd work\n" + end_servers + with_free_ports(commands));
    std::vector<std::string> words{"/usr/bin/env"};
    std::istringstream unset(
        "http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY HF_TOKEN BASH_ENV "
        "XDG_CACHE_HOME XDG_DATA_HOME SIMENGINE_OPTIONS SERVETUNE_SEARCH_SPACES");
    for (std::string name; unset >> name;) words.insert(words.end(), {"-u", name});
    words.insert(words.end(),
                 {"HF_HUB_OFFLINE=1", "HOME=" + (folder.path() / "home").string(),
                  "PATH=" + (folder.path() / "bin").string() + ":" + std::getenv("PATH")});
    // A session of its own, which ends in time even when this test is killed.
    words.insert(words.end(),
                 {"setsid", "timeout", "--kill-after=10", std::to_string(seconds_of_a_page)});
    words.insert(words.end(), {"bash", "-euo", "pipefail", script.string()});
    ChildProcess process(words, folder.path());
    const pid_t session = process.id();
    const int code = process.wait();
    const bool all_ended = comes_true([&] { return workers_in(folder.path()).empty(); }, 10);
    kill(-session, SIGKILL);
    return {code, process.out(), process.err(), all_ended};
}

/// GitHub's names of a page's headings.
std::set<std::string> anchors_of(const DocPage& page) {
    std::set<std::string> result;
    for (const std::string& line : page.prose) {
        const auto text = line.find_first_not_of('#');
        if (text == 0 || text > 6 || text == std::string::npos || line[text] != ' ') continue;
        std::string name;
        for (const char c : line.substr(text + 1)) {
            const auto byte = static_cast<unsigned char>(c);
            const bool kept = byte >= 0x80 || std::isalnum(byte) != 0 || c == '-' || c == '_';
            if (c == ' ') name += '-';
            else if (kept) name += static_cast<char>(std::tolower(byte));
        }
        std::string unique = name;
        for (int again = 1; !result.insert(unique).second; ++again)
            unique = name + "-" + std::to_string(again);
    }
    return result;
}

/// The links of a page to files and headings of the repository.
std::vector<std::string> relative_links(const DocPage& page) {
    static const std::regex link(R"(\]\(([^)\s]+))");
    static const std::regex elsewhere(R"(^[a-z]+:.*)");
    std::vector<std::string> result;
    for (const std::string& line : page.prose)
        for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at)
            if (!std::regex_match((*at)[1].str(), elsewhere)) result.push_back((*at)[1]);
    return result;
}

/// What a link of `page` leads to, in words, if it leads nowhere; else nothing.
std::string dead_end(const fs::path& page, const std::string& link) {
    const auto hash = link.find('#');
    const fs::path target =
        hash == 0 ? page : (page.parent_path() / link.substr(0, hash)).lexically_normal();
    if (target.begin()->string() == ".." || !fs::exists(checkout / target))
        return "no file " + target.string();
    if (hash == std::string::npos) return "";
    const std::string anchor = link.substr(hash + 1);
    if (anchors_of(doc_page(read_file(checkout / target))).contains(anchor)) return "";
    return "no heading #" + anchor + " in " + target.string();
}

}  // namespace

TEST_CASE("docs: every command that a page shows runs, or the page says why not", "[pages]") {
    struct Running {
        fs::path page;
        std::future<PageRan> ended;
    };
    std::deque<Running> running;  // they mostly wait: a few at once
    const auto check_first = [&running] {
        const PageRan ended = running.front().ended.get();
        INFO(running.front().page.string()
             << " (exit code 124: it takes more than " << seconds_of_a_page << " s)");
        INFO(ended.out);
        INFO(ended.err);
        CHECK(ended.code == 0);
        CHECK(ended.all_ended);
        running.pop_front();
    };
    int run = 0;
    int not_run = 0;
    for (const fs::path& where : doc_pages()) {
        const DocPage page = doc_page(read_file(checkout / where));
        for (const std::string& what : page.wrong) FAIL_CHECK(where.string() << ":" << what);
        for (const DocBlock& block : page.blocks)
            if (block.is_shell() && !commands_of(block).empty())
                ++(block.mark == "not run" ? not_run : run);
        std::string script = script_of(where, page);
        if (script.empty()) continue;
        if (!page.first.empty()) {
            const fs::path before = where.parent_path() / page.first;
            script = script_of(before, doc_page(read_file(checkout / before))) + script;
        }
        running.push_back({where, std::async(std::launch::async, run_page, script)});
        if (running.size() == 4) check_first();
    }
    while (!running.empty()) check_first();
    INFO(run << " blocks run, " << not_run << " not run");
    CHECK(run >= 20);
    CHECK(not_run >= 1);
    CHECK(run > not_run);
}

TEST_CASE("docs: docs/README.md lists every page of docs") {
    const std::vector<std::string> listed =
        relative_links(doc_page(read_file(checkout / "docs/README.md")));
    for (const auto& entry : fs::recursive_directory_iterator(checkout / "docs")) {
        const std::string page = fs::relative(entry.path(), checkout / "docs").string();
        INFO(page);
        if (entry.path().extension() == ".md" && page != "README.md" && !has(page, "results/"))
            CHECK(std::ranges::count(listed, page) == 1);
    }
}

TEST_CASE("docs: every relative link of a page leads to a file and a heading") {
    std::size_t links = 0;
    std::vector<fs::path> pages = doc_pages();
    pages.emplace_back("CHANGELOG.md");
    for (const char* folder : {"docs/decisions", "search_spaces"})
        for (const auto& entry : fs::recursive_directory_iterator(checkout / folder))
            if (entry.path().extension() == ".md")
                pages.push_back(fs::relative(entry.path(), checkout));
    for (const fs::path& where : pages)
        for (const std::string& link : relative_links(doc_page(read_file(checkout / where)))) {
            INFO(where.string() << ": " << link);
            CHECK(dead_end(where, link) == "");
            ++links;
        }
    CHECK(links > 100);
    CHECK(dead_end("docs/README.md", "../README.md#learn-more") == "");
    CHECK(dead_end("docs/README.md", "../README.md#learn-less") ==
          "no heading #learn-less in README.md");
    CHECK(dead_end("docs/README.md", "README.txt") == "no file docs/README.txt");
    CHECK(dead_end("README.md", "../README.md") == "no file ../README.md");
    const DocPage headings = doc_page("# A `b_c`: D, e-f\n```sh\n# g\n```\n## h\n## h\n#i\n");
    CHECK(anchors_of(headings) == std::set<std::string>{"a-b_c-d-e-f", "h", "h-1"});
}

TEST_CASE("docs: the page of commands has the options as the program says them") {
    const std::string page = read_file(checkout / "docs/reference/commands.md");
    const TemporaryFolder folder;
    ChildProcess process({SERVETUNE_PROGRAM, "man", "--markdown"}, folder.path());
    REQUIRE(process.wait() == 0);
    const std::string said = process.out(), end = "<!-- end -->\n";
    std::size_t blocks = 0;
    for (std::size_t at = 0; at < said.size(); ++blocks) {
        const std::size_t next = said.find(end, at) + end.size();
        INFO("scripts/commands-page renews the page; it lacks:\n" << said.substr(at, next - at));
        CHECK(has(page, said.substr(at, next - at)));
        at = next;
    }
    CHECK(blocks > 20);
}

TEST_CASE("docs: the picture of README.md is the one that scripts/picture draws with this build") {
    const TemporaryFolder folder;
    const fs::path drawn = folder.path() / "result.svg";
    const fs::path study = checkout / "search_spaces/published/qwen3-14b-h100/study.yaml";
    const auto draw = [&](const fs::path& of) {  // the exit code and the messages
        ChildProcess process(
            {"/usr/bin/env", "python3", checkout / "scripts/picture", SERVETUNE_PROGRAM, of, drawn},
            folder.path());
        const int code = process.wait();
        return std::to_string(code) + " " + process.err();
    };
    REQUIRE(draw(study) == "0 ");
    CHECK(read_file(drawn) == read_file(checkout / "docs/result.svg"));
    CHECK(draw(folder.path() / "none.yaml").starts_with("1 picture: "));
}

TEST_CASE("docs: a block that would escape is told, and a command that fails fails its page") {
    using Wrong = std::vector<std::string>;
    const std::string mark = "<!-- not run: needs a GPU -->\n";
    const std::string command =
        "commands in a fence that is not run: it needs the language sh, or console and `$ `";
    for (const auto& [text, wrong] : std::vector<std::pair<std::string, Wrong>>{
             {"```\n1 | 2\n```\n```yaml\na: b\n```\n```sh\nautotune x\n```\n", {}},
             {"```\nautotune x\n```\n", {"1: " + command}},
             {"a\n\n  ```text\n  a\n  $ b\n  ```\n", {"3: " + command}},
             {"```console\nautotune x\n```\n", {"1: " + command}},
             {mark + "```sh\na\n```\n", {}},
             {"<!-- not run -->\n```sh\na\n```\n", {"2: not run, without a reason"}},
             {mark + "\n```sh\na\n```\n", {"2: 'not run' is not directly above a fence"}},
             {"<!-- nor run: needs a GPU -->\n```sh\na\n```\n", {"2: no mark is called 'nor run'"}},
             {mark + "```yaml\na: b\n```\n", {"2: 'not run' above a fence without commands"}},
             {"```sh\na\n", {"1: a fence without an end"}}})
        CHECK(doc_page(text).wrong == wrong);

    const auto ends = [](const std::string& text) {
        return run_page(script_of("page.md", doc_page(text)));
    };
    CHECK(ends("```sh\nfalse\n```\n").code == 1);
    CHECK(ends("```console\n$ false | true\n```\n").code == 1);
    CHECK(ends("<!-- exit code: 3 -->\n```console\n$ true\n$ (exit 3)\nout\n```\n").code == 0);
    CHECK(ends("<!-- exit code: 3 -->\n```console\n$ (exit 4)\n```\n").code == 99);
    CHECK(ends("<!-- in the background until: never -->\n```sh\nfalse\n```\n").code == 98);
    const PageRan whole = ends(
        "Save this as `a b`:\n\n```text\nc d\n```\n\n<!-- in the background until: e -->\n```sh\n"
        "bash -c 'echo e; exec sleep 500'\n```\n```console\n$ cat \\\n    'a b'\nf\n$ echo "
        "\"$HF_HUB_OFFLINE\"\n```\n");
    CHECK(whole.code == 0);
    CHECK(whole.all_ended);
    CHECK(whole.out == "== page.md:8\n== page.md:11\nc d\n1\n");
}

TEST_CASE(
    "scripts: words that a script does not know are refused before it does anything, --help is "
    "answered") {
    const TemporaryFolder copies;  // one that goes on finds nothing to build there
    fs::create_directories(copies.path() / "scripts");
    const auto run = [&](const std::vector<std::string>& words) {
        const fs::path script = copies.path() / "scripts" / words.front();
        fs::copy_file(checkout / "scripts" / words.front(), script,
                      fs::copy_options::overwrite_existing);
        std::vector<std::string> argv{"/bin/bash", script.string()};
        argv.insert(argv.end(), words.begin() + 1, words.end());
        const TemporaryFolder folder;  // of what it prints
        return ran(argv, folder.path());
    };
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"demo", "now"},
                                               {"test", "nothing-like-it"},
                                               {"test", "--all", "more"},
                                               {"packages", "--hlep"},
                                               {"format", "--hlep"}}) {
        const Ran refused = run(words);
        INFO(words.front() << ": " << refused.err);
        CHECK(refused.code == 2);
        CHECK(refused.err.starts_with("usage: scripts/" + words.front()));
    }
    for (const char* script :
         {"demo", "test", "packages", "format", "fuzz", "test-on", "report-pictures",
          "acceptance-gpu", "get-llama-server", "get-ray", "get-vllm", "get-sglang",
          "get-tiny-model", "get-python-tools", "check-python"}) {
        const Ran told = run({script, "--help"});
        INFO(script << ": " << told.err);
        CHECK(told.code == 0);
        CHECK(has(told.out, std::string("scripts/") + script));
        CHECK(told.err.empty());
    }
}
