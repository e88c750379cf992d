// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "output.hpp"
#include "record.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "handover/study_record.hpp"
#include "results/workloads.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "servetune/result_file.hpp"
#include "study/table.hpp"
#include "study_file/audit_context.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <tuple>

namespace autotune {

namespace {

/// One result of a file, whatever kind of file it is; its labels: what its workload may be called.
struct Block {
    PublishedResult published{};
    std::string label{};  ///< for people
    bool arguments_derived = false;
    Dialect dialect = Dialect::unknown;
    std::size_t load = 0;  ///< the number of those that it can be held against, in its file
};

/// What is known beside the files.
struct Known {
    std::vector<HardwareSpec> hardware;
    std::vector<ModelSpec> models;
    std::vector<Engine> engines;
    CommandReader commands;
    std::optional<HardwareSpec> given_hardware{};
    std::string given_model{};
    std::optional<StudyFile> study{};
};

/// A block with what the audit says of it.
struct Audited {
    std::string file;
    Block block;
    Validity validity;
    std::vector<NotChecked> not_checked;
};

/// The rows of a table of measured configurations that have figures.
std::vector<Block> rows_of_table(std::string_view text, const std::string& name) {
    const std::vector<CsvRow> rows = parse_csv(text, name);
    if (rows.empty()) throw ParseError(name + ":1: a table starts with a line of column names");
    const std::vector<std::string>& header = rows.front().cells;
    const auto status =
        std::size_t(std::find(header.begin(), header.end(), "status") - header.begin());
    std::vector<Block> blocks;
    for (std::size_t r = 1; r < rows.size(); ++r) {
        const std::vector<std::string>& cells = cells_of(rows[r], header.size(), name);
        if (status < header.size() && cells[status] != "ok") continue;
        Block block;
        PublishedResult& published = block.published;
        published.index = r - 1;
        Metrics metrics;
        std::vector<std::string> label;
        for (std::size_t i = 0; i < header.size(); ++i) {
            const std::string& column = header[i];
            if (column == "workload" || column == "label") published.labels.push_back(cells[i]);
            else if (column == "arguments") published.arguments = cells[i];
            else if (column == "verdict" && !cells[i].empty()) {
                const auto verdict = named_in(verdicts, cells[i]);
                if (!verdict)
                    throw ParseError(
                        name + ":" + std::to_string(rows[r].line) +
                        ": verdict: sound, unchecked, suspect or unsound wanted, got '" + cells[i] +
                        "'");
                published.validity.verdict = *verdict;
            } else if (column == "findings") {
                for (const std::string& id : words_of(cells[i]))
                    published.validity.findings.push_back({id});
            } else if (column == "note")
                block.arguments_derived = contains(cells[i], "derived from");
            else if (const auto number = real_of(cells[i]);
                     number && (i > status || status == header.size()))
                metrics[column] = {*number};
            if (i < status && column != "block" && column != "section" && !cells[i].empty() &&
                cells[i] != unset_text && cells[i] != "none")
                label.push_back(cells[i]);
        }
        block.label = fmt::format("{}", fmt::join(label, ", "));
        published.result = result_of(metrics);
        blocks.push_back(std::move(block));
    }
    return blocks;
}

/// How the tool that wrote a result defines its times; GuideLLM's differ by version, so there the
/// figures decide.
Dialect dialect_of(const PublishedResult& result) {
    return result.tool.empty() || result.tool == "guidellm" || result.tool == "gpustack"
               ? Dialect::unknown
               : Dialect::vllm;
}

/// A file's own verdict stands: who measured knew the hardware, the lengths asked for and each
/// request. Its findings count where nothing of the same id was found in the figures again.
void add_said(const Validity& said, Validity& validity, std::vector<NotChecked>& skipped) {
    const auto has = [](const auto& list, const std::string& id) {
        return any_of(list, [&](const auto& one) { return one.id == id; });
    };
    Validity more{said.verdict, {}};
    for (const Finding& finding : said.findings)
        if (!has(validity.findings, finding.id)) more.findings.push_back(finding);
    add(validity, more);
    std::erase_if(skipped, [&](const NotChecked& one) { return has(said.findings, one.id); });
}

/// The one place that knows kinds of file.
std::vector<Block> blocks_of(const fs::path& file, std::string_view text, const Known& known) {
    std::vector<Block> blocks;
    if (file.extension() == ".csv" && !is_result_table(text))
        blocks = rows_of_table(text, file.string());
    else
        for (PublishedResult& result : read_results(text, file.string(), known.engines)) {
            Block block;
            if (!result.labels.empty()) block.label = result.labels.front();
            block.dialect = dialect_of(result);
            block.published = std::move(result);
            blocks.push_back(std::move(block));
        }
    if (blocks.empty()) throw ParseError(file.string() + ": a table without a row");
    std::vector<PublishedResult> results;
    for (const Block& block : blocks) results.push_back(block.published);
    const std::vector<std::size_t> loads = comparable_runs(results);
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i].load = loads[i];
    return blocks;
}

/// Rows of a study's own table were measured with what their columns say.
std::vector<Command> commands_in(const fs::path& file, std::string_view text, const Known& known) {
    if (!known.study || file.extension() != ".csv" || is_result_table(text)) return {};
    const std::vector<CsvRow> rows = parse_csv(text, file.string());
    if (!contains(rows.front().cells, "status")) return {};
    return commands_of(parse_table(text, file.string()), *known.study);
}

std::vector<Audited> audited(const fs::path& file, const Known& known) {
    const std::string content = read_file(file);
    const std::string_view text = utf8_text(content, file.string());
    std::optional<HardwareSpec> hardware = known.given_hardware;
    if (!hardware && known.study)
        hardware = hardware_in(known.study->machine.hardware, known.hardware);
    if (!hardware) hardware = hardware_in(text, known.hardware);
    std::string model = known.given_model;
    if (model.empty() && known.study) model = known.study->model;

    std::vector<Audited> result;
    // Runs of one workload (its name, or the number of the load) and one model.
    std::map<std::tuple<std::string, std::size_t, std::string>, std::vector<std::size_t>> together;
    std::vector<Block> blocks = blocks_of(file, text, known);
    const std::vector<Command> commands = commands_in(file, text, known);
    for (Block& block : blocks) {
        AuditContext context;
        context.hardware = hardware;
        context.dialect = block.dialect;
        context.rate_is_intended =
            !known.study ||
            compares_times(known.study->objective);  // a document says what it measured
        const PublishedResult& published = block.published;
        const Workload* workload = nullptr;
        if (known.study)
            for (const std::string& name : published.labels)
                if (workload == nullptr) workload = known.study->workload_called(name);
        if (workload != nullptr) {
            describe(context, *workload, published.result);
            if (workload->requests && !block.arguments_derived)
                context.requested_requests = double(*workload->requests);
        }
        // A model from prose counts where the file names none for this result.
        std::string beside = known.given_model.empty() ? published.model : known.given_model;
        if (beside.empty()) beside = model;
        const bool by_columns = published.arguments.empty() && published.index < commands.size();
        describe(context,
                 known.commands.read(by_columns ? commands[published.index]
                                                : Command{shell_words(published.arguments)}),
                 beside, known.models);
        const std::string served =
            context.served ? context.served->model.name + " " + context.served->quantization : "";
        if (!served.empty() && !contains(block.label, served))
            block.label += (block.label.empty() ? "" : ", ") + served;
        together[{workload != nullptr ? workload->name : "",
                  workload != nullptr ? 0 : block.load + 1,
                  context.served ? context.served->model.name : ""}]
            .push_back(result.size());
        Validity validity = servetune::audit(published.result, context);
        std::vector<NotChecked> skipped = not_checked(published.result, context);
        add_said(published.validity, validity, skipped);
        result.push_back(
            {file.string(), std::move(block), std::move(validity), std::move(skipped)});
    }
    for (const auto& [key, which] : together) {
        std::vector<BenchmarkResult> results;
        for (const std::size_t i : which) results.push_back(result[i].block.published.result);
        const std::vector<Validity> found = audit_together(results);
        for (std::size_t i = 0; i < which.size(); ++i) add(result[which[i]].validity, found[i]);
    }
    return result;
}

/// The results that the record of a measurement holds.
std::vector<fs::path> results_in(const fs::path& record) {
    std::vector<fs::path> result;
    for (const RecordManifest::File& file : read_manifest(record).files)
        if (file.path.starts_with("results/")) result.push_back(record / file.path);
    return result;
}

/// Behind the objects of records.
void print_json(const std::vector<Audited>& all, OrderedJson list) {
    for (const Audited& one : all) {
        OrderedJson findings = OrderedJson::array();
        for (const Finding& finding : one.validity.findings)
            findings.push_back({{"id", finding.id},
                                {"left", finding.left},
                                {"right", finding.right},
                                {"cause", finding.cause}});
        OrderedJson skipped = OrderedJson::array();
        for (const NotChecked& missing : one.not_checked)
            skipped.push_back({{"id", missing.id}, {"reason", missing.reason}});
        OrderedJson metrics = OrderedJson::object();
        for_each_figure(one.block.published.result,
                        [&](const std::string& name, const std::optional<double>& field) {
                            if (field) metrics[name] = *field;
                        });
        list.push_back({{"file", one.file},
                        {"index", one.block.published.index},
                        {"label", one.block.label},
                        {"verdict", name_in(verdicts, one.validity.verdict)},
                        {"findings", findings},
                        {"not_checked", skipped},
                        {"metrics", metrics}});
    }
    put_json(list);
}

void print_table(const std::vector<Audited>& all, bool several_files) {
    std::string file;
    const bool wide =
        any_of(all, [](const Audited& one) { return one.validity.verdict == Verdict::unchecked; });
    std::map<Verdict, std::size_t> counts;
    std::map<std::pair<std::string, std::string>, std::size_t> skipped;
    for (const Audited& one : all) {
        if (several_files && one.file != file) put(stdout, "{}\n", one.file);
        file = one.file;
        std::vector<std::string> ids;
        for (const Finding& finding : one.validity.findings)
            if (!contains(ids, finding.id)) ids.push_back(finding.id);
        put(stdout, "{:>4}  {:{}}  {:60}  {}\n", one.block.published.index,
            name_in(verdicts, one.validity.verdict), wide ? 9 : 7, one.block.label,
            fmt::join(ids, " "));
        ++counts[one.validity.verdict];
        for (const NotChecked& missing : one.not_checked) ++skipped[{missing.id, missing.reason}];
    }
    for (const Audited& one : all) {
        if (one.validity.findings.empty()) continue;
        put(stdout, "\n{}{}, {}: {}\n", several_files ? one.file + " " : "",
            one.block.published.index, one.block.label, name_in(verdicts, one.validity.verdict));
        for (const Finding& finding : one.validity.findings)
            put(stdout, "  {}: {}; {}\n    {}\n", finding.id, finding.left, finding.right,
                finding.cause);
    }
    put(stdout, "\n{}: {} sound, {}{} suspect, {} unsound\n", counted_text(all.size(), "result"),
        counts[Verdict::sound],
        counts[Verdict::unchecked] > 0 ? fmt::format("{} unchecked, ", counts[Verdict::unchecked])
                                       : "",
        counts[Verdict::suspect], counts[Verdict::unsound]);
    if (counts[Verdict::unchecked] > 0)
        put(stdout,
            "  unchecked: its figures cannot be held against each other; each line below names an "
            "identity and what it needs\n");
    for (const auto& [what, count] : skipped)
        put(stdout, "  not checked in {}: {} ({})\n", count, what.first, what.second);
}

}  // namespace

int audit(const AuditArguments& arguments) {
    const Catalogue catalogue = Catalogue::standard();
    const std::vector<Engine> engines = catalogue.engines();
    Known known{catalogue.all_hardware(), catalogue.all_models(), engines,
                CommandReader(engines, catalogue.root())};
    if (arguments.study) {
        known.study = load_study(*arguments.study, catalogue);
        known.hardware = known.study->catalogue().all_hardware();
        known.models = known.study->catalogue().all_models();
    }
    const Catalogue& own = known.study ? known.study->catalogue() : catalogue;
    if (!arguments.hardware.empty()) known.given_hardware = own.hardware(arguments.hardware);
    if (!arguments.model.empty()) {
        (void)own.model(arguments.model);  // throws for one that is not known
        known.given_model = arguments.model;
    }

    std::vector<Audited> all;
    std::size_t unreadable = 0;
    bool all_were_read = true;
    bool record_differs = false;
    bool record_undecided = false;
    OrderedJson records = OrderedJson::array();
    for (const fs::path& file : arguments.files) {
        try {
            std::error_code unknown;
            if (fs::is_directory(file, unknown)) {
                if (!is_record(file))
                    throw IoError(file.string() + " is a folder without " + manifest_name +
                                  ": no record");
                const RecordVerdict found = audit_record(file, arguments.json ? &records : nullptr);
                record_differs = record_differs || found == RecordVerdict::differs;
                record_undecided = record_undecided || found == RecordVerdict::undecided;
                if (found == RecordVerdict::differs) continue;
                const std::vector<fs::path> results = results_in(file);
                for (const fs::path& result : results)
                    for (Audited& one : audited(result, known)) all.push_back(std::move(one));
                continue;
            }
            for (Audited& one : audited(file, known)) all.push_back(std::move(one));
        } catch (const Error& error) {  // the others are read all the same
            ++unreadable;
            all_were_read = all_were_read && dynamic_cast<const IoError*>(&error) == nullptr;
            put_text(stderr, std::string("autotune: ") + error.what());
        }
    }
    if (arguments.json) print_json(all, std::move(records));
    else if (!all.empty()) print_table(all, arguments.files.size() > 1);
    if (unreadable > 0 && arguments.files.size() > 1)
        put(stderr, "autotune: {} of {} files without results\n", unreadable,
            arguments.files.size());
    const bool refused =
        any_of(all, [](const Audited& one) { return one.validity.verdict == Verdict::unsound; });
    return refused || record_differs ? answer_is_no
           : !all_were_read          ? usage_error
           : unreadable > 0          ? without_results
           : record_undecided        ? undecided
                                     : done;
}

}  // namespace autotune
