// SPDX-License-Identifier: Apache-2.0
// The cost model against measured rows (README.md): accuracy [--rows FILE] [--fit
// ENGINE[<VERSION|>=VERSION] [FACTOR...]]
#include "base/files.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "engine/command_reader.hpp"
#include "engine/version.hpp"
#include "perf/quick_estimate.hpp"
#include "predict/fit.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/detail/load/statistics.hpp"
#include "servetune/detail/predict/serving.hpp"
#include "servetune/error.hpp"
#include "servetune/rng.hpp"
#include "study/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace servetune;

struct Figures {
    double tokens = 0;  ///< output tokens/s
    double tpot = 0;    ///< mean, seconds; 0: none
    double ttft = 0;
};

struct Row {
    std::string source, engine, version, hardware, command;
    std::string lengths{};  ///< as the file has them
    std::string why_not{};  ///< it cannot be predicted
    Serving serving{};
    SimulatedTraffic traffic;
    TrafficMeans means{};
    Figures measured{};

    [[nodiscard]] CostModel cost(const EngineTraits& traits) const {
        return CostModel({serving.target.model, serving.target.hardware, traits}, serving.settings);
    }
};

Figures simulated(const Row& row, const EngineTraits& traits) {
    SimulatedRun run = simulate(row.cost(traits), row.traffic);
    LoadRun load;
    load.records = std::move(run.records);
    load.duration_seconds = run.duration_seconds;
    const Metrics metrics =
        metrics_of(statistics_of(load, {row.traffic.requests().size(), row.traffic.arrival(), {}}));
    const auto figure = [&](const char* name) {
        const auto found = metrics.find(name);
        return found != metrics.end() ? found->second.value : 0;
    };
    return {figure("output_tokens_per_second"), figure("time_per_output_token_mean_seconds"),
            figure("time_to_first_token_mean_seconds")};
}

Figures estimated(const Row& row, const EngineTraits& traits) {
    const QuickEstimate quick = quick_estimate(row.cost(traits), row.means, row.traffic.arrival());
    return {quick.output_tokens_per_second, quick.time_per_output_token_seconds,
            quick.time_to_first_token_seconds};
}

/// |predicted / measured - 1| of the judged figures: a row has one or two.
std::vector<double> errors_of(const Row& row, const Figures& predicted) {
    std::vector<double> result;
    const auto add = [&](double value, double measured) {
        if (measured > 0) result.push_back(value > 0 ? std::abs(value / measured - 1) : 1);
    };
    add(predicted.tokens, row.measured.tokens);
    add(predicted.tpot, row.measured.tpot);
    return result;
}

std::vector<PlannedRequest> chat_lengths(const Catalogue& catalogue) {
    Workload chat;
    chat.dataset = {Dataset::Kind::trace,
                    (catalogue.root() / "workloads" / "chat_lengths.csv").string()};
    return plan_requests(chat).requests;
}

SimulatedTraffic traffic_of(const std::vector<PlannedRequest>& spread, double requests,
                            double input, double output, Arrival arrival) {
    double in = 0;
    double out = 0;
    for (const PlannedRequest& shape : spread) {
        in += static_cast<double>(shape.input_tokens) / static_cast<double>(spread.size());
        out += static_cast<double>(shape.output_tokens) / static_cast<double>(spread.size());
    }
    std::vector<SimulatedTraffic::Request> result(static_cast<std::size_t>(requests));
    for (std::size_t i = 0; i < result.size(); ++i) {
        const bool spreads = !spread.empty();
        const double of_in =
            spreads ? static_cast<double>(spread[i % spread.size()].input_tokens) / in : 1;
        const double of_out =
            spreads ? static_cast<double>(spread[i % spread.size()].output_tokens) / out : 1;
        result[i].input_tokens = whole_number_within(std::round(input * of_in), 1, 1'000'000);
        result[i].output_tokens = whole_number_within(std::round(output * of_out), 1, 1'000'000);
    }
    return {std::move(result), arrival};
}

std::vector<Row> read_rows(const std::string& file, const Catalogue& catalogue) {
    const std::vector<CsvRow> csv = parse_csv(read_file(file), file);
    const std::vector<PlannedRequest> chat = chat_lengths(catalogue);
    std::map<std::string, ServingReader> readers;
    std::vector<Row> result;
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
                .traffic = traffic_of(cell[5] == "chat" ? chat : std::vector<PlannedRequest>{},
                                      number(7), number(8), number(9), arrival),
                .measured = {number(10), number(11), number(12)}};
        row.means = TrafficMeans::of(row.traffic);
        const std::string key = row.engine + row.version + row.hardware;
        if (!readers.contains(key)) {
            const Engine engine = catalogue.engine(row.engine);
            readers.emplace(key, ServingReader(engine, catalogue.traits(row.engine, row.version),
                                               catalogue.all_models(),
                                               catalogue.hardware(row.hardware), row.version,
                                               std::make_shared<const CommandReader>(
                                                   std::vector{engine}, catalogue.root())));
        }
        try {
            const std::size_t options = row.command.find(" | ");  // of an options file
            Command command{shell_words(row.command.substr(0, options))};
            if (options != std::string::npos)
                command.files["options.yaml"] = row.command.substr(options + 3);
            row.serving = readers.at(key).read(command);
            row.why_not = row.serving.refused.cause;
            row.serving.target.traits.log.clear();  // each prediction copies the traits
            row.serving.target.traits.defaults.clear();
            if (row.why_not.empty() &&
                row.cost(row.serving.target.traits).memory().cache_tokens == 0)
                row.why_not = "no memory for the cache";
        } catch (const UsageError& error) {
            row.why_not = error.what();
        }
        result.push_back(std::move(row));
    }
    return result;
}

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return percentile(values, share);
}

/// `12 % [10, 15]`: a quantile and its 95 % interval by resampling rows.
std::string with_interval(const std::vector<std::vector<double>>& rows, double share) {
    const auto of = [&](const std::function<std::size_t(std::size_t)>& pick) {
        std::vector<double> all;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const std::vector<double>& row = rows[pick(i)];
            all.insert(all.end(), row.begin(), row.end());
        }
        return quantile(std::move(all), share) * 100;
    };
    Rng rng(1);
    std::vector<double> drawn;
    for (int i = 0; i < 2000; ++i)
        drawn.push_back(of([&](std::size_t) { return rng.index(rows.size()); }));
    return fmt::format("{:5.1f} % [{:.1f}, {:.1f}]", of([](std::size_t i) { return i; }),
                       quantile(drawn, 0.025), quantile(drawn, 0.975));
}

using Errors = std::map<std::string, std::vector<std::vector<double>>>;

void print(const char* title, const Errors& errors) {
    fmt::print("\n{:<50} {:>5} {:>24} {:>24}\n", title, "rows", "median", "90 %");
    for (const auto& [name, rows] : errors)
        fmt::print("{:<50} {:>5} {:>24} {:>24}\n", name, rows.size(), with_interval(rows, 0.5),
                   with_interval(rows, 0.9));
}

/// The figure of a factor; of all number types together it is the first one's. Throws UsageError
/// for an unknown one.
double factor_of(const EngineTraits& traits, const std::string& factor) {
    if (factor == "bandwidth_efficiency") return traits.bandwidth_efficiency;
    if (factor == "step_overhead_seconds") return traits.step_overhead_seconds;
    if (factor == "sequence_overhead_seconds") return traits.sequence_overhead_seconds;
    if (factor == "layer_seconds") return traits.layer_seconds;
    if (factor == "request_overhead_seconds") return traits.request_overhead_seconds;
    if (factor == "chunk_overhead_seconds") return traits.chunk_overhead_seconds;
    if (factor == "compute_efficiency") return traits.compute_efficiency.begin()->second;
    if (factor.starts_with("compute_efficiency."))
        return traits.compute(factor.substr(factor.find('.') + 1));
    const std::vector<std::string> known{"bandwidth_efficiency",      "step_overhead_seconds",
                                         "sequence_overhead_seconds", "layer_seconds",
                                         "request_overhead_seconds",  "chunk_overhead_seconds",
                                         "compute_efficiency"};
    throw UsageError("'" + factor + "' is no factor that can be fitted; known: " +
                     listed(nearest_first(factor, known)));
}

void set(EngineTraits& traits, const std::string& factor, double value) {
    const auto share = [](double v) { return std::clamp(v, 0.01, 1.0); };
    if (factor == "bandwidth_efficiency") traits.bandwidth_efficiency = share(value);
    else if (factor == "step_overhead_seconds") traits.step_overhead_seconds = value;
    else if (factor == "sequence_overhead_seconds") traits.sequence_overhead_seconds = value;
    else if (factor == "layer_seconds") traits.layer_seconds = value;
    else if (factor == "request_overhead_seconds") traits.request_overhead_seconds = value;
    else if (factor == "chunk_overhead_seconds") traits.chunk_overhead_seconds = value;
    else if (factor == "compute_efficiency") {
        const double ratio = value / traits.compute_efficiency.begin()->second;
        for (auto& [type, efficiency] : traits.compute_efficiency)
            efficiency = share(efficiency * ratio);
    } else traits.compute_efficiency[factor.substr(factor.find('.') + 1)] = share(value);
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
/// starts at several points, since it gets stuck.
std::vector<double> fitted(const std::vector<const Row*>& rows,
                           const std::vector<std::string>& factors,
                           const std::vector<double>& start) {
    std::map<std::string, double> per_source;
    for (const Row* row : rows) per_source[row->source] += 1;
    std::vector<double> at = start;
    for (int round = 0; round < 2; ++round) {
        std::vector<Figures> ratio;
        for (const Row* row : rows) {
            const EngineTraits traits = traits_of(*row, factors, at);
            const Figures exact = simulated(*row, traits);
            const Figures quick = estimated(*row, traits);
            ratio.push_back({exact.tokens / quick.tokens,
                             quick.tpot > 0 ? exact.tpot / quick.tpot : 1,
                             exact.ttft / quick.ttft});
        }
        const auto cost = [&](const std::vector<double>& logs) {
            double sum = 0;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                const Figures quick = estimated(*rows[i], traits_of(*rows[i], factors, logs));
                const double weight = 1 / std::sqrt(per_source.at(rows[i]->source));
                const auto add = [&](double predicted, double measured) {
                    if (measured > 0 && predicted > 0)
                        sum += weight * std::hypot(std::log(predicted / measured), 0.02);
                };
                add(quick.tokens * ratio[i].tokens, rows[i]->measured.tokens);
                add(quick.tpot * ratio[i].tpot, rows[i]->measured.tpot);
                if (rows[i]->traffic.arrival().in_flight == 1)
                    add(quick.ttft * ratio[i].ttft, rows[i]->measured.ttft);
            }
            for (std::size_t i = 0; i < logs.size(); ++i)
                sum += 0.01 * (logs[i] - start[i]) * (logs[i] - start[i]);
            return sum;
        };
        std::vector<std::vector<double>> tried{at};
        Rng rng(7);
        for (int i = 0; i < (round == 0 ? 4 : 1); ++i) {
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

std::string text_of(const std::vector<std::string>& factors, const EngineTraits& traits) {
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

void fit_engine(const std::vector<Row>& all, const std::string& engine,
                const std::vector<std::string>& factors) {
    std::vector<const Row*> rows;
    std::vector<std::string> sources;
    for (const Row& row : all) {
        if (!is_of(row, engine) || !row.why_not.empty()) continue;
        rows.push_back(&row);
        if (std::find(sources.begin(), sources.end(), row.source) == sources.end())
            sources.push_back(row.source);
    }
    if (rows.empty()) throw UsageError("no row of '" + engine + "' can be predicted");
    std::vector<double> start;
    for (const std::string& factor : factors)
        start.push_back(
            std::log(std::max(2e-5, factor_of(rows.front()->serving.target.traits, factor))));
    std::vector<const Row*> fitted_to;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(fitted_to),
                 [](const Row* row) { return !row->source.ends_with("(judged only)"); });
    const std::vector<double> best = fitted(fitted_to, factors, start);
    fmt::print("\nfitted to all sources:{}\n",
               text_of(factors, traits_of(*rows.front(), factors, best)));
    Errors by_all;
    Errors held_out;
    for (const std::string& source : sources) {
        std::vector<const Row*> others;
        std::copy_if(fitted_to.begin(), fitted_to.end(), std::back_inserter(others),
                     [&](const Row* row) { return row->source != source; });
        if (others.empty()) continue;
        const std::vector<double> without = fitted(others, factors, start);
        fmt::print("without {}:{}\n", source,
                   text_of(factors, traits_of(*rows.front(), factors, without)));
        for (const Row* row : rows) {
            if (row->source != source) continue;
            for (const std::string& key : {source, engine + " " + row->hardware, engine}) {
                by_all[key].push_back(
                    errors_of(*row, simulated(*row, traits_of(*row, factors, best))));
                held_out[key].push_back(
                    errors_of(*row, simulated(*row, traits_of(*row, factors, without))));
            }
        }
    }
    print("fitted to all", by_all);
    print("left out", held_out);
}

void print_rows(const std::vector<Row>& rows) {
    Errors errors;
    fmt::print("{:>10} {:>10} {:>7} | {:>9} {:>9} {:>7} | {:>8} {:>8}\n", "tokens/s", "predicted",
               "", "TPOT ms", "predicted", "", "TTFT ms", "predicted");
    for (const Row& row : rows) {
        Figures predicted;
        if (row.why_not.empty()) predicted = simulated(row, row.serving.target.traits);
        const Figures& m = row.measured;
        const auto change = [](double p, double q) {
            return q > 0 ? fmt::format("{:+.0f} %", (p / q - 1) * 100) : std::string("-");
        };
        fmt::print(
            "{:>10.5g} {:>10.5g} {:>7} | {:>9.4g} {:>9.4g} {:>7} | {:>8.4g} {:>8.4g}  {}, {} in "
            "flight, {:.0f} + {:.0f}: {}{}\n",
            m.tokens, predicted.tokens, change(predicted.tokens, m.tokens), m.tpot * 1e3,
            predicted.tpot * 1e3, change(predicted.tpot, m.tpot), m.ttft * 1e3,
            predicted.ttft * 1e3, row.source, row.traffic.arrival().in_flight,
            row.means.prompt_tokens, row.means.output_tokens, row.command,
            row.why_not.empty() ? "" : "  NOT PREDICTED: " + row.why_not);
        for (const std::string& key :
             {row.source + " (" + row.engine + ")", row.engine + " " + row.hardware,
              row.engine + " " + row.version + " " + row.hardware, row.engine})
            errors[key].push_back(errors_of(row, predicted));
    }
    print("by the traits that ship", errors);
}

}  // namespace

int main(int count, char** words) {
    try {
        std::vector<std::string> arguments(words + 1, words + count);
        std::string file = SERVETUNE_MEASURED;
        if (arguments.size() > 1 && arguments[0] == "--rows") {
            file = arguments[1];
            arguments.erase(arguments.begin(), arguments.begin() + 2);
        }
        const Catalogue catalogue = Catalogue::standard();
        const std::vector<Row> rows = read_rows(file, catalogue);
        if (arguments.empty()) print_rows(rows);
        else if (arguments.size() < 2 || arguments[0] != "--fit")
            throw UsageError(
                "usage: accuracy [--rows FILE] [--fit ENGINE[<VERSION|>=VERSION] [FACTOR...]]");
        else {
            std::vector<std::string> factors(arguments.begin() + 2, arguments.end());
            if (factors.empty())
                factors = {"compute_efficiency.bf16",
                           "compute_efficiency.fp8",
                           "bandwidth_efficiency",
                           "step_overhead_seconds",
                           "sequence_overhead_seconds",
                           "request_overhead_seconds",
                           "layer_seconds"};
            fit_engine(rows, arguments[1], factors);
        }
        return 0;
    } catch (const Error& error) {
        fmt::print(stderr, "accuracy: {}\n", error.what());
        return 2;
    }
}
