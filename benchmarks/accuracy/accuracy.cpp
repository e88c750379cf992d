// SPDX-License-Identifier: Apache-2.0
// The cost model against measured rows (README.md): `usage` below.
#include "intervals.hpp"

#include "../row_reader.hpp"

#include "base/files.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "engine/version.hpp"
#include "perf/cost_check.hpp"
#include "perf/quick_estimate.hpp"
#include "predict/fit.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/detail/load/statistics.hpp"
#include "servetune/error.hpp"
#include "servetune/rng.hpp"
#include "study/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace {

using namespace servetune;

constexpr const char* usage =
    "usage: accuracy [--rows FILE]... [--model FILE]... [--each | --fit ENGINE[<VERSION|>=VERSION] "
    "[FACTOR...] | --intervals ENGINE [FACTOR...]]";

const std::string spread_lengths = "0.8-1.0";  ///< drawn evenly, of the longest

std::int64_t whole(double tokens) { return whole_number_within(std::round(tokens), 1, 1'000'000); }

struct Figures {
    double tokens = 0;  ///< output tokens/s
    double tpot = 0;    ///< mean, seconds; 0: none
    double ttft = 0;
};

constexpr std::array<std::pair<const char*, double Figures::*>, 3> figures{
    {{"tokens/s", &Figures::tokens}, {"TPOT", &Figures::tpot}, {"TTFT", &Figures::ttft}}};

struct Row {
    std::string source, engine, version, hardware, command;
    std::string lengths{};  ///< as the file has them
    std::string setup{};    ///< what is the same of configurations that one would choose among
    std::string model{};    ///< the name of its figures, else as the command says
    std::string why_not{};  ///< it cannot be predicted
    Serving serving{};
    SimulatedTraffic traffic;
    TrafficMeans means{};
    Figures measured{};

    [[nodiscard]] bool judged_only() const { return source.ends_with("(judged only)"); }

    [[nodiscard]] CostModel cost(const EngineTraits& traits) const {
        return CostModel({serving.target.model, serving.target.hardware, traits}, serving.settings);
    }
};

/// `work(i)` for all i below `count`, on all processors.
void for_each(std::size_t count, const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next{0};
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
        threads.emplace_back([&] {
            for (std::size_t at = next++; at < count; at = next++) work(at);
        });
}

Figures simulated(const Row& row, const EngineTraits& traits) {
    SimulatedRun run = simulate(row.cost(traits), row.traffic);
    LoadRun load;
    load.records = std::move(run.records);
    load.duration_seconds = run.duration_seconds;
    const Metrics metrics =
        metrics_of(statistics_of(load, {row.traffic.requests().size(), row.traffic.arrival(), {}}));
    const auto figure = [&](const char* name) {
        const auto* found = entry_in(metrics, name);
        return found != nullptr ? found->value : 0;
    };
    Figures result{figure("output_tokens_per_second"), figure("time_per_output_token_mean_seconds"),
                   figure("time_to_first_token_mean_seconds")};
    // as the source's tokens/s were derived: without the end, when places stay empty
    if (row.lengths == spread_lengths || row.source.starts_with("gap analysis"))
        result.tokens = double(row.traffic.arrival().in_flight) * row.means.output_tokens /
                        (result.ttft + result.tpot * (row.means.output_tokens - 1));
    return result;
}

Figures estimated(const Row& row, const EngineTraits& traits) {
    const QuickEstimate quick = quick_estimate(row.cost(traits), row.means, row.traffic.arrival());
    return {quick.output_tokens_per_second, quick.time_per_output_token_seconds,
            quick.time_to_first_token_seconds};
}

std::vector<PlannedRequest> chat_lengths(const Catalogue& catalogue) {
    Workload chat;
    chat.dataset = {Dataset::Kind::trace,
                    (catalogue.root() / "workloads" / "chat_lengths.csv").string()};
    return plan_requests(chat).requests;
}

/// `spread`: shapes whose ratios to their means the requests have; else all are alike, or drawn
/// evenly from 80 to 100 % of the longest.
SimulatedTraffic traffic_of(const std::vector<PlannedRequest>& spread, const std::string& lengths,
                            double requests, double input, double output, Arrival arrival) {
    double in = 0;
    double out = 0;
    for (const PlannedRequest& shape : spread) {
        in += double(shape.input_tokens) / double(spread.size());
        out += double(shape.output_tokens) / double(spread.size());
    }
    Rng rng(3);
    const auto drawn = [&](double mean) { return mean / 0.9 * (0.8 + 0.2 * rng.uniform()); };
    std::vector<SimulatedTraffic::Request> result(static_cast<std::size_t>(requests));
    for (std::size_t i = 0; i < result.size(); ++i) {
        if (lengths == "chat") {
            const PlannedRequest& shape = spread[i % spread.size()];
            result[i].input_tokens = whole(input * double(shape.input_tokens) / in);
            result[i].output_tokens = whole(output * double(shape.output_tokens) / out);
            continue;
        }
        const bool alike = lengths != spread_lengths;
        result[i].input_tokens = whole(alike ? input : drawn(input));
        result[i].output_tokens = whole(alike ? output : drawn(output));
    }
    return {std::move(result), arrival};
}

void read_rows(const std::string& file, const Catalogue& catalogue, std::vector<Row>& result) {
    const std::vector<CsvRow> csv = parse_csv(read_file(file), file);
    const std::vector<PlannedRequest> chat = chat_lengths(catalogue);
    RowReader reader(catalogue);
    for (std::size_t i = 1; i < csv.size(); ++i) {
        const std::vector<std::string>& cell = csv[i].cells;
        const auto number = [&](std::size_t column) {
            return cell[column].empty() ? 0.0 : std::stod(cell[column]);
        };
        Arrival arrival;
        if (!cell[6].empty())
            arrival = {.kind = Arrival::Kind::concurrency, .in_flight = std::stoll(cell[6])};
        Row row{.source = cell[0],
                .engine = cell[1],
                .version = cell[2],
                .hardware = cell[3],
                .command = cell[4],
                .lengths = cell[5],
                .traffic = traffic_of(chat, cell[5], number(7), number(8), number(9), arrival),
                .measured = {number(10), number(11), number(12)}};
        row.means = TrafficMeans::of(row.traffic);
        for (const std::size_t same : {0, 2, 3, 8, 9}) row.setup += cell[same] + " ";
        try {
            row.model = row.source;
            row.serving = reader.read(row.engine, row.version, row.hardware, row.command);
            row.model = row.serving.target.model.name;
            row.why_not = row.serving.refused.cause;
            if (row.why_not.empty() &&
                row.cost(row.serving.target.traits).memory().cache_tokens == 0)
                row.why_not = "no memory for the cache";
        } catch (const UsageError& error) {
            row.why_not = error.what();
        }
        result.push_back(std::move(row));
    }
}

double quantile(std::vector<double> values, double share) {
    sort(values);
    return percentile(values, share);
}

/// Configuration -> ln(predicted / measured) of its rows, or nothing: not predicted.
using Logs = std::map<std::string, std::vector<std::optional<double>>>;
/// Group and figure -> logs.
using Groups = std::map<std::pair<std::string, std::string>, Logs>;

double error_of(const std::optional<double>& log) { return log ? std::abs(std::expm1(*log)) : 1; }

/// `12 % [10, 15]`: a quantile and its 95 % interval by resampling configurations.
std::string with_interval(const Logs& logs, double share) {
    std::vector<std::vector<double>> errors;
    for (const auto& [configuration, rows] : logs)
        std::transform(rows.begin(), rows.end(), std::back_inserter(errors.emplace_back()),
                       error_of);
    const auto of = [&](const std::function<std::size_t(std::size_t)>& pick) {
        std::vector<double> all;
        for (std::size_t i = 0; i < errors.size(); ++i) {
            const std::vector<double>& rows = errors[pick(i)];
            all.insert(all.end(), rows.begin(), rows.end());
        }
        return quantile(std::move(all), share) * 100;
    };
    Rng rng(1);
    std::vector<double> drawn;
    for (int i = 0; i < 1000; ++i)
        drawn.push_back(of([&](std::size_t) { return rng.index(errors.size()); }));
    return fmt::format("{:.1f} % [{:.1f}, {:.1f}]", of([](std::size_t i) { return i; }),
                       quantile(drawn, 0.025), quantile(drawn, 0.975));
}

void add(Groups& groups, const Row& row, const Figures& predicted) {
    for (const auto& [name, figure] : figures) {
        const double measured = row.measured.*figure;
        if (measured <= 0) continue;
        std::optional<double> log;
        if (predicted.*figure > 0) log = std::log(predicted.*figure / measured);
        for (const std::string& key :
             {row.engine, row.engine + " " + row.hardware, row.engine + " " + row.model,
              row.engine + " " + (row.version.empty() ? "of no version" : row.version),
              row.source + " (" + row.engine + ")"})
            groups[{key, name}][row.hardware + row.version + row.command].push_back(log);
    }
}

void print(const char* title, const Groups& groups) {
    fmt::print("\n{:<54} {:<8} {:>5} {:>5} {:>22} {:>24} {:>8}\n", title, "", "rows", "conf.",
               "median", "90 %", "signed");
    for (const auto& [key, logs] : groups) {
        std::vector<double> predicted;
        std::size_t rows = 0;
        for (const auto& [configuration, all] : logs)
            for (const auto& log : all) {
                ++rows;
                if (log) predicted.push_back(std::expm1(*log) * 100);
            }
        fmt::print("{:<54} {:<8} {:>5} {:>5} {:>22} {:>24} {:>+6.0f} %\n", key.first, key.second,
                   rows, logs.size(), with_interval(logs, 0.5), with_interval(logs, 0.9),
                   predicted.empty() ? std::nan("") : quantile(std::move(predicted), 0.5));
    }
}

const std::map<std::string, double EngineTraits::*, std::less<>> factor_table{
    {"bandwidth_efficiency", &EngineTraits::bandwidth_efficiency},
    {"step_overhead_seconds", &EngineTraits::step_overhead_seconds},
    {"sequence_overhead_seconds", &EngineTraits::sequence_overhead_seconds},
    {"layer_seconds", &EngineTraits::layer_seconds},
    {"layer_bytes_per_token_and_width", &EngineTraits::layer_bytes_per_token_and_width},
    {"kernel_call_share", &EngineTraits::kernel_call_share},
    {"kernel_seconds", &EngineTraits::kernel_seconds},
    {"eager_layer_seconds", &EngineTraits::eager_layer_seconds},
    {"eager_expert_layer_seconds", &EngineTraits::eager_expert_layer_seconds},
    {"request_overhead_seconds", &EngineTraits::request_overhead_seconds},
    {"request_latency_seconds", &EngineTraits::request_latency_seconds},
    {"chunk_overhead_seconds", &EngineTraits::chunk_overhead_seconds}};

/// The figure of a factor, of `compute_efficiency` with its type behind a dot. Throws UsageError
/// for an unknown one.
double& factor_of(EngineTraits& traits, const std::string& factor) {
    if (factor.starts_with("compute_efficiency."))
        return traits.compute_efficiency[factor.substr(factor.find('.') + 1)];
    if (const auto* found = entry_in(factor_table, factor)) return traits.**found;
    std::vector<std::string> known{"compute_efficiency.bf16"};
    for (const auto& [name, member] : factor_table) known.push_back(name);
    throw UsageError("'" + factor + "' is no factor that can be fitted; known: " +
                     listed(nearest_first(factor, known)));
}

void set(EngineTraits& traits, const std::string& factor, double value) {
    factor_of(traits, factor) =
        factor.find("efficiency") != factor.npos ? std::clamp(value, 0.01, 1.0) : value;
}

EngineTraits with_factors(EngineTraits traits, const std::vector<std::string>& factors,
                          const std::vector<double>& logs) {
    for (std::size_t i = 0; i < factors.size(); ++i) set(traits, factors[i], std::exp(logs[i]));
    return traits;
}

/// Traits of the rows' own version with fitted figures.
EngineTraits traits_of(const Row& row, const std::vector<std::string>& factors,
                       const std::vector<double>& logs) {
    return with_factors(row.serving.target.traits, factors, logs);
}

/// By the closed form, corrected to the simulator at the last solution, twice. The simplex
/// starts at `starts` points, since it gets stuck.
std::vector<double> fitted(const std::vector<const Row*>& rows,
                           const std::vector<std::string>& factors,
                           const std::vector<double>& start, int starts = 4) {
    constexpr double ttft_weight = 0.3;  ///< under load
    std::map<std::string, double> per_source;
    for (const Row* row : rows) per_source[row->source] += 1;
    std::vector<double> at = start;
    for (int round = 0; round < 2; ++round) {
        std::vector<Figures> ratio(rows.size());
        for_each(rows.size(), [&](std::size_t i) {
            const EngineTraits traits = traits_of(*rows[i], factors, at);
            const Figures exact = simulated(*rows[i], traits);
            const Figures quick = estimated(*rows[i], traits);
            for (const auto& [name, figure] : figures)
                ratio[i].*figure = quick.*figure > 0 ? exact.*figure / quick.*figure : 1;
        });
        std::vector<double> of_rows(rows.size());
        const auto cost = [&](const std::vector<double>& logs) {
            for_each(rows.size(), [&](std::size_t i) {
                const Figures quick = estimated(*rows[i], traits_of(*rows[i], factors, logs));
                of_rows[i] = 0;
                for (const auto& [name, figure] : figures) {
                    const double predicted = quick.*figure * ratio[i].*figure;
                    const double measured = rows[i]->measured.*figure;
                    const bool first = figure == &Figures::ttft;
                    const double weight =
                        first && rows[i]->traffic.arrival().in_flight != 1 ? ttft_weight : 1;
                    if (measured > 0 && predicted > 0)
                        of_rows[i] += weight * std::hypot(std::log(predicted / measured), 0.02);
                }
                of_rows[i] /= std::sqrt(per_source.at(rows[i]->source));
            });
            double sum = std::accumulate(of_rows.begin(), of_rows.end(), 0.0);
            for (std::size_t i = 0; i < logs.size(); ++i)
                sum += 0.01 * (logs[i] - start[i]) * (logs[i] - start[i]);
            return sum;
        };
        std::vector<std::vector<double>> tried{at};
        Rng rng(7);
        for (int i = 0; i < (round == 0 ? starts : 1); ++i) {
            std::vector<double> from = round == 0 ? start : at;
            if (i > 0)
                for (double& log : from) log += 0.6 * rng.normal();
            tried.push_back(minimised(cost, minimised(cost, from, 300), 300));
        }
        at = *std::min_element(tried.begin(), tried.end(),
                               [&](const auto& a, const auto& b) { return cost(a) < cost(b); });
        at = minimised(cost, at, 500);
    }
    return at;
}

std::string text_of(const std::vector<std::string>& factors, EngineTraits traits) {
    std::string result;
    for (const std::string& factor : factors)
        result += fmt::format(" {} {:.4g}", factor, factor_of(traits, factor));
    return result;
}

/// `vllm`, `vllm<0.14` or `vllm>=0.14`; a row without a version is of the newest.
bool is_of(const Row& row, const std::string& wanted) {
    const std::size_t sign = wanted.find_first_of("<>");
    if (row.engine != wanted.substr(0, sign)) return false;
    if (sign == std::string::npos) return true;
    const bool below = wanted[sign] == '<';
    const std::string bound = wanted.substr(sign + (below ? 1 : 2));
    return (!row.version.empty() && compare_to_bound(row.version, bound) < 0) == below;
}

std::vector<const Row*> rows_of(const std::vector<Row>& all, const std::string& engine) {
    std::vector<const Row*> rows;
    for (const Row& row : all)
        if (is_of(row, engine) && row.why_not.empty()) rows.push_back(&row);
    if (rows.empty()) throw UsageError("no row of '" + engine + "' can be predicted");
    return rows;
}

std::vector<double> start_of(const Row& row, const std::vector<std::string>& factors) {
    EngineTraits traits = row.serving.target.traits;
    std::vector<double> start;
    for (const std::string& factor : factors)
        start.push_back(std::log(std::max(1e-6, factor_of(traits, factor))));
    return start;
}

/// Each row as the simulator predicts it by figures that were fitted without the rows of its
/// `name` (the source, the model).
std::vector<Figures> left_out(const std::vector<const Row*>& rows,
                              const std::vector<std::string>& factors,
                              const std::vector<double>& start, std::string Row::*name) {
    std::vector<Figures> result(rows.size());
    std::map<std::string, std::vector<std::size_t>> of;
    for (std::size_t i = 0; i < rows.size(); ++i) of[rows[i]->*name].push_back(i);
    for (const auto& [left, mine] : of) {
        std::vector<const Row*> others;
        std::copy_if(rows.begin(), rows.end(), std::back_inserter(others),
                     [&](const Row* row) { return row->*name != left && !row->judged_only(); });
        std::vector<double> without = start;
        if (!factors.empty() && !others.empty()) without = fitted(others, factors, start, 1);
        fmt::print("without {}:{}\n", left,
                   text_of(factors, traits_of(*rows.front(), factors, without)));
        for_each(mine.size(), [&](std::size_t i) {
            const Row& row = *rows[mine[i]];
            result[mine[i]] = simulated(row, traits_of(row, factors, without));
        });
    }
    return result;
}

void fit_engine(const std::vector<Row>& all, const std::string& engine,
                const std::vector<std::string>& factors) {
    const std::vector<const Row*> rows = rows_of(all, engine);
    std::vector<const Row*> fitted_to;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(fitted_to),
                 [](const Row* row) { return !row->judged_only(); });
    const std::vector<double> best = fitted(fitted_to, factors, start_of(*rows.front(), factors));
    fmt::print("\nfitted to all sources:{}\n",
               text_of(factors, traits_of(*rows.front(), factors, best)));
    std::vector<Figures> by_all(rows.size());
    for_each(rows.size(), [&](std::size_t i) {
        by_all[i] = simulated(*rows[i], traits_of(*rows[i], factors, best));
    });
    const std::vector<Figures> without = left_out(rows, factors, best, &Row::source);
    Groups fit;
    Groups held_out;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        add(fit, *rows[i], by_all[i]);
        add(held_out, *rows[i], without[i]);
    }
    print("fitted to all", fit);
    print("source left out", held_out);
}

Residual residual_of(const Row& row, const Figures& predicted) {
    Residual result{.version = row.version,
                    .chip = row.hardware,
                    .architecture = row.serving.target.hardware.architecture,
                    .family = family_of(row.serving.target.model),
                    .model = row.model,
                    .configuration = row.hardware + row.version + row.command,
                    .setup = row.setup + row.model};
    for (std::size_t i = 0; i < figures.size(); ++i) {
        const double measured = row.measured.*figures[i].second;
        const double of = predicted.*figures[i].second;
        if (measured > 0 && of > 0) result.logs[i] = std::log(measured / of);
    }
    return result;
}

/// The lines below `checked:` of an engine's traits.
void print_intervals(const std::vector<Row>& all, const std::string& engine,
                     const std::vector<std::string>& factors) {
    const std::vector<const Row*> rows = rows_of(all, engine);
    const std::vector<Figures> predicted =
        left_out(rows, factors, start_of(*rows.front(), factors), &Row::model);
    std::vector<Residual> residuals;
    for (std::size_t i = 0; i < rows.size(); ++i)
        residuals.push_back(residual_of(*rows[i], predicted[i]));
    fmt::print("checked:\n");
    for (const CostCheck& check : checks_of(residuals)) fmt::print("  - {}\n", text_of(check));
    const auto held = coverage(residuals);
    fmt::print(
        "# of rows whose model was left out of the intervals, within them: tokens/s {:.0f} %, "
        "TPOT {:.0f} %, TTFT {:.0f} %\n",
        held[0] * 100, held[1] * 100, held[2] * 100);
}

/// Spearman's, without a correction for ties.
double rank_correlation(const std::vector<double>& one, const std::vector<double>& other) {
    const auto ranks = [](const std::vector<double>& values) {
        std::vector<double> result;
        for (const double value : values)
            result.push_back(double(count_if(values, [&](double its) { return its < value; })));
        return result;
    };
    const std::vector<double> a = ranks(one);
    const std::vector<double> b = ranks(other);
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    const auto n = double(a.size());
    return 1 - 6 * sum / (n * (n * n - 1));
}

/// Mean rank correlation of tokens/s within groups of at least three rows, and how many groups.
void print_ranks(const std::vector<Row>& rows, const std::vector<Figures>& predicted,
                 const char* title, const std::function<std::string(const Row&)>& group_of) {
    std::map<std::string, std::map<std::string, std::vector<std::size_t>>> groups;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (predicted[i].tokens > 0) groups[rows[i].engine][group_of(rows[i])].push_back(i);
    for (const auto& [engine, of] : groups) {
        double sum = 0;
        double weights = 0;
        std::size_t count = 0;
        for (const auto& [name, all] : of) {
            if (all.size() < 3) continue;
            std::vector<double> one;
            std::vector<double> other;
            for (const std::size_t i : all) {
                one.push_back(predicted[i].tokens);
                other.push_back(rows[i].measured.tokens);
            }
            const double weight = double(all.size() - 1);
            sum += weight * rank_correlation(one, other);
            weights += weight;
            ++count;
        }
        if (count > 0)
            fmt::print("{:<16} {}: {:.3f} in {} groups\n", engine, title, sum / weights, count);
    }
}

/// How many rows are within the stated intervals.
void print_coverage(const std::vector<Row>& rows, const std::vector<Figures>& predicted) {
    std::map<std::string, std::array<std::pair<double, double>, figures.size()>> within;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i].why_not.empty()) continue;
        const Residual residual = residual_of(rows[i], predicted[i]);
        const ServingTarget& target = rows[i].serving.target;
        const CostCheck* check = check_of(target.traits, target.hardware, target.model);
        for (std::size_t f = 0; f < figures.size(); ++f)
            if (residual.logs[f] && check != nullptr)
                for (const std::string& key : {std::string("all"), rows[i].engine,
                                               rows[i].engine + " " + rows[i].hardware}) {
                    within[key][f].first +=
                        within_range(check->*checked_figures[f], *residual.logs[f]) ? 1 : 0;
                    within[key][f].second += 1;
                }
    }
    fmt::print("\nwithin the stated 90 % intervals\n");
    for (const auto& [key, counts] : within)
        fmt::print("{:<40} tokens/s {:.0f} %, TPOT {:.0f} %, TTFT {:.0f} % of {:.0f} rows\n", key,
                   counts[0].first / counts[0].second * 100,
                   counts[1].first / counts[1].second * 100,
                   counts[2].first / counts[2].second * 100, counts[0].second);
}

void print_each(const Row& row, const Figures& predicted) {
    const Figures& m = row.measured;
    const auto change = [](double p, double q) {
        return q > 0 ? fmt::format("{:+.0f} %", (p / q - 1) * 100) : std::string("-");
    };
    fmt::print(
        "{:>10.5g} {:>10.5g} {:>7} | {:>9.4g} {:>9.4g} {:>7} | {:>8.4g} {:>8.4g} {:>7}  {}, "
        "{} in flight, {:.0f} + {:.0f}: {}\n",
        m.tokens, predicted.tokens, change(predicted.tokens, m.tokens), m.tpot * 1e3,
        predicted.tpot * 1e3, change(predicted.tpot, m.tpot), m.ttft * 1e3, predicted.ttft * 1e3,
        change(predicted.ttft, m.ttft), row.source, row.traffic.arrival().in_flight,
        row.means.prompt_tokens, row.means.output_tokens, row.command);
}

void judge(const std::vector<Row>& rows, bool each) {
    std::vector<Figures> predicted(rows.size());
    for_each(rows.size(), [&](std::size_t i) {
        if (rows[i].why_not.empty())
            predicted[i] = simulated(rows[i], rows[i].serving.target.traits);
    });
    Groups groups;
    std::map<std::string, std::size_t> not_predicted;
    if (each)
        fmt::print("{:>10} {:>10} {:>7} | {:>9} {:>9} {:>7} | {:>8} {:>8}\n", "tokens/s",
                   "predicted", "", "TPOT ms", "predicted", "", "TTFT ms", "predicted");
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (each) print_each(rows[i], predicted[i]);
        if (!rows[i].why_not.empty())
            ++not_predicted[rows[i].source + " (" + rows[i].engine + "): " + rows[i].why_not];
        add(groups, rows[i], predicted[i]);
    }
    for (const auto& [why, count] : not_predicted)
        fmt::print("NOT PREDICTED: {} of {}\n", count, why);
    print("by the traits that ship", groups);
    const auto lengths = [](const Row& row) {
        return fmt::format("{} {} {} {:.0f} {:.0f}", row.version, row.model, row.hardware,
                           row.means.prompt_tokens, row.means.output_tokens);
    };
    fmt::print("\nrank correlation of tokens/s within one model, chip and lengths\n");
    print_ranks(rows, predicted, "and load", [&](const Row& row) {
        return lengths(row) + " " + std::to_string(row.traffic.arrival().in_flight);
    });
    print_ranks(rows, predicted, "over loads", lengths);
    print_coverage(rows, predicted);
}

}  // namespace

int main(int count, char** words) {
    try {
        std::vector<std::string> arguments(words + 1, words + count);
        Catalogue catalogue = Catalogue::standard();
        std::vector<std::string> files;
        while (arguments.size() > 1 && (arguments[0] == "--rows" || arguments[0] == "--model")) {
            if (arguments[0] == "--rows") files.push_back(arguments[1]);
            else catalogue.use_model(arguments[1]);
            arguments.erase(arguments.begin(), arguments.begin() + 2);
        }
        if (files.empty()) files.emplace_back(SERVETUNE_MEASURED);
        std::vector<Row> rows;
        for (const std::string& file : files) read_rows(file, catalogue, rows);
        const std::string what = arguments.empty() ? "" : arguments[0];
        std::vector<std::string> factors;
        if (arguments.size() > 2) factors.assign(arguments.begin() + 2, arguments.end());
        if (what.empty() || what == "--each") judge(rows, what == "--each");
        else if (what == "--intervals" && arguments.size() > 1)
            print_intervals(rows, arguments[1], factors);
        else if (what == "--fit" && arguments.size() > 1)
            fit_engine(rows, arguments[1],
                       !factors.empty() ? factors
                                        : std::vector<std::string>{
                                              "compute_efficiency.bf16", "compute_efficiency.fp8",
                                              "bandwidth_efficiency", "step_overhead_seconds",
                                              "sequence_overhead_seconds",
                                              "request_overhead_seconds", "layer_seconds"});
        else throw UsageError(usage);
        return 0;
    } catch (const Error& error) {
        fmt::print(stderr, "accuracy: {}\n", error.what());
        return 2;
    }
}
