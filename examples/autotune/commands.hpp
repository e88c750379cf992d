// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace autotune {

using namespace servetune;
namespace fs = std::filesystem;

/// What a program that calls `autotune` can rely on. `without_results`: a file that was to be read
/// has none; the others were read. `undecided`: a comparison would need more measurements.
/// `left_alone`: a file could not be changed safely. `reader_gone`: 128 + SIGPIPE, as a shell shows
/// a program that ends by that signal.
enum ExitCode {
    done = 0,
    answer_is_no = 1,
    usage_error = 2,
    environment_error = 3,
    nothing_feasible = 4,
    without_results = 5,
    undecided = 6,
    left_alone = 7,
    stopped = 130,
    reader_gone = 141
};

/// What the commands that work on a study have in common.
struct StudyArguments {
    fs::path study;  ///< the YAML file, a folder that a run wrote, or a journal's file
    std::optional<fs::path>
        directory{};  ///< the study's folder; nothing: ./<study name>, or that of the journal
    std::string strategy{};  ///< in place of the file's
    bool json = false;

    /// To measure, or to say what would be measured: the machine is asked, once for all that this
    /// process loads.
    [[nodiscard]] StudyFile load(MeasuredBy by = MeasuredBy::evaluator) const;
    /// To read its journal: the machine is the one that the journal was written on. Throws IoError
    /// where there is none. `shows_unset_variables`: of a study whose files its journal keeps,
    /// `${NAME}` without a value stays as it is.
    [[nodiscard]] StudyFile load_to_read(bool shows_unset_variables = true) const;
    [[nodiscard]] fs::path folder(const StudyFile& file) const;
    /// Where its journal is: there, else beside the file.
    [[nodiscard]] fs::path folder_to_read(const StudyFile& file) const;
    /// The same where the file is not needed: that of a journal may not be readable.
    [[nodiscard]] fs::path folder_to_read() const;

private:
    /// Whether `study` leads to a journal, from which the study is read.
    [[nodiscard]] bool names_journal() const;
    [[nodiscard]] fs::path folder_of_journal() const;
    /// The file to read. Throws UsageError for a folder without a journal, IoError.
    [[nodiscard]] StudyText study_text() const;
    /// As `--strategy` says it, else the journal; empty: the file's.
    [[nodiscard]] std::string strategy_name() const;
};

struct RunArguments : StudyArguments {
    std::optional<std::size_t> trials{};  ///< in place of the file's budget
    std::optional<double> seconds{};      ///< that the run may take, likewise
    std::vector<fs::path> learn_from{};   ///< earlier studies, beside the file's knowledge
    std::vector<fs::path> suggest{};      ///< files of suggested configurations
    bool accept_changes = false;
    bool quiet = false;
    bool dry_run = false;
    bool json_lines = false;
    bool conclusion = true;               ///< print it at the end; false: whoever calls `run` does
    std::optional<std::uint64_t> view{};  ///< the port of a page that shows the run
};

struct ServeArguments : StudyArguments {
    std::string host = "127.0.0.1";  ///< that the engine listens on
    int port = 8000;                 ///< copies take the ports behind it
    std::size_t restarts = 4;        ///< before it is given up
};

/// Of commands that take a word or a flag at most.
struct WordArguments {
    std::string word{};
    bool json = false, markdown = false;
};

struct McpArguments {
    fs::path directory = ".";  ///< the only one that agents read and write
};

struct ViewArguments : StudyArguments {
    int port = 8420;
};

struct WatchArguments : StudyArguments {
    std::string url;
    double interval_seconds = 60;
    std::optional<double> for_seconds{};  ///< nothing: 20 intervals
    bool once = false;                    ///< one interval, and no judgement by the exit code
    bool json_lines = false;
    std::string api_key_environment{};  ///< the variable that holds the key
};

/// Answers to the questions of `init`; empty: to be asked, or found on this machine.
struct InitArguments {
    std::string engine{}, model{}, hardware{}, traffic{}, goal{}, budget{}, attach{}, preset{};
    std::filesystem::path recipes{};
    std::string as{};     ///< `kubernetes`: the run itself in a cluster; empty: here
    std::string image{};  ///< of autotune there
    std::optional<std::size_t> gpus{}, concurrency{};
    fs::path output = "study.yaml";
    bool yes = false;
    bool force = false;
};

struct AskTellArguments : StudyArguments {  // its directory: nothing is kept where there is none
    bool accept_changes = false;
};

struct ValidateArguments : StudyArguments {
    bool ask_installed = true;  ///< run the engines' own --help where they are installed
};

struct StatusArguments : StudyArguments {
    bool rescue = false;  ///< copy what is readable of a damaged journal
};

struct ReportArguments : StudyArguments {
    bool html = false;  ///< the page for a browser
};

struct ExportArguments : StudyArguments {
    std::string format = "csv";        ///< or jsonl, optuna, record
    std::optional<fs::path> output{};  ///< nothing: standard output
};

struct ExplainArguments : StudyArguments {
    std::optional<std::uint64_t> trial{};  ///< nothing: effects of the parameters
    std::vector<std::string> why_not{};    ///< name=value: of the recommendation with these
    std::vector<fs::path> learn_from{};    ///< as the run had
};

struct RenderArguments : StudyArguments {
    std::vector<std::string> settings{};  ///< name=value
    std::size_t random = 0;               ///< commands of so many random configurations, one a line
    std::optional<std::uint64_t> seed{};  ///< of these; nothing: the file's
};

struct RecommendArguments : StudyArguments {
    std::string as = "shell";
    std::optional<fs::path> output{};
    std::string host{};
    int port = 8000;
    std::string image{};
    std::optional<std::int64_t> gpus{};
    std::optional<fs::path> into{}, check{};  ///< a deploy file that is there
    std::string at{};                         ///< which of the file's commands; empty: the only one
};

struct CompareArguments {
    fs::path study{};                     ///< A: its default; empty: of results
    std::optional<fs::path> other{};      ///< B: its default
    std::vector<std::string> settings{};  ///< B without a study of its own: name=value, on top of A
    std::vector<fs::path> results{}, against{};  ///< of A and B, measured already
    std::string metric{};                        ///< of results; empty: their rate
    std::optional<fs::path> directory{};
    std::size_t pairs = 10;
    double margin = 0.01;
    bool gate = false;  ///< ask only whether B is not worse than A by the margin
    bool json = false;
    bool quiet = false;
};

struct SuggestArguments {
    std::string model{};     ///< a name, a path, or a file with a model's facts (.yaml)
    std::string hardware{};  ///< the chip
    std::string engine{};
    bool json = false;
};

struct SimulateArguments : StudyArguments {
    std::string hardware{};  ///< in place of the study's: what would an H200 give?
    std::size_t configurations = 500;
    std::size_t top = 10;
};

struct ImportArguments {
    std::vector<fs::path> documents;
    std::optional<fs::path> study{};
    std::optional<fs::path> output{};       ///< nothing: standard output
    std::string command{};                  ///< of the results that have none
    std::string objective{};                ///< of a table of configurations: its column
    std::optional<fs::path> write_study{};  ///< with it: the study that replays it
    std::vector<std::string>
        parameters{};  ///< the same: those that are set; empty: as the columns tell
    std::optional<fs::path>
        write_workload{};  ///< the documents are logs; the workload that their traffic makes
    std::optional<double> window_seconds{};  ///< with it: how much of the traffic
    bool json = false;
};

struct AuditArguments {
    std::vector<fs::path> files;      ///< documents, tables and records
    std::string hardware{};           ///< name; empty: the study's, else what the file mentions
    std::string model{};              ///< of results that do not name theirs
    std::optional<fs::path> study{};  ///< its workloads, model and hardware
    bool json = false;
};

/// What the commands have in common that load-test a server somebody runs.
struct LoadTestArguments {
    std::string url;
    std::vector<std::string> replicas{};
    std::string model{};  ///< empty: the only one that the server serves
    std::string workload = "random:512x128";
    std::optional<std::size_t> requests{};
    std::optional<double> burstiness{};
    std::optional<std::uint64_t> seed{}, salt{};
    bool ignore_eos = false;
    bool completions = false;
    bool stream = true;
    /// the variable that holds the key: a key in a command is in the process list
    std::string api_key_environment{};
    std::vector<std::string> headers{};
    std::string extra_body{};
    std::string certificates{};
    std::size_t loops = 1;
    double request_timeout_seconds = 3600;
    double stall_timeout_seconds = 300;
    std::string hardware{};
    std::string facts_of{};  ///< model whose facts count, when it is served under another name
    double devices = 1;
    std::optional<fs::path> save{};
    bool json = false;
    bool quiet = false;
};

struct BenchArguments : LoadTestArguments {
    std::optional<std::size_t> concurrency{};
    std::optional<double> rate{};
    std::optional<std::size_t>
        warmup{};  ///< at least so many requests before, which are not counted; 0: none
    std::optional<double> duration_seconds{};  ///< about so long, in place of a number of requests
    std::optional<double> ttft_limit_seconds{}, tpot_limit_seconds{}, latency_limit_seconds{};
    std::optional<fs::path> records{};
};

struct CapacityArguments : LoadTestArguments {
    std::vector<std::string> limits{};  ///< `ttft_p95 <= 500ms`
    bool concurrency = false;           ///< requests in flight are searched, not requests a second
    std::optional<double> from{}, to{};
    std::vector<double> sweep{};  ///< these loads and no search
};

int run(const RunArguments& arguments);
int demo();
int doctor(bool json);
int init(const InitArguments& arguments);
int ask_tell(const AskTellArguments& arguments);
int validate(const ValidateArguments& arguments);
int serve(const ServeArguments& arguments);
int view(const ViewArguments& arguments);
int status(const StatusArguments& arguments);
int report(const ReportArguments& arguments);
int export_trials(const ExportArguments& arguments);
int explain(const ExplainArguments& arguments);
int render(const RenderArguments& arguments);
int recommend_as(const RecommendArguments& arguments);
int compare(const CompareArguments& arguments);
int engines(const WordArguments& arguments);
int audit(const AuditArguments& arguments);
int bench(const BenchArguments& arguments);
int capacity(const CapacityArguments& arguments);
int simulate(const SimulateArguments& arguments);
int suggest(const SuggestArguments& arguments);
int import_document(const ImportArguments& arguments);
int watch(const WatchArguments& arguments);
int mcp(const McpArguments& arguments);

}  // namespace autotune
