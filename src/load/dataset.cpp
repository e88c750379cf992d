// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/load/dataset.hpp"

#include "arrival_process.hpp"
#include "base/present.hpp"
#include "data_files.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"
#include "vocabulary.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace servetune {
namespace {

// A plan is held in memory, at about 5 bytes a token.
constexpr std::int64_t most_requests = 1'000'000;
constexpr std::int64_t most_total_tokens = 500'000'000;

/// Streams of random numbers, each its own: lengths do not depend on how many words were drawn.
enum Stream : std::uint64_t { lengths = 1, bodies, arrivals, groups, samples, blocks, own_parts };

class Planner {
public:
    Planner(const Workload& workload, const PlanOptions& options)
        : workload_(workload),
          dataset_(workload.dataset),
          options_(options),
          symbols_(options.calibration),
          overhead_(options.calibration.overhead_tokens),
          per_word_(options.calibration.tokens_per_word) {
        plan_.lengths_exact = options.calibration.exact;
    }

    Plan plan() {
        switch (dataset_.kind) {
            case Dataset::Kind::random: random(); break;
            case Dataset::Kind::sharegpt: sharegpt(); break;
            case Dataset::Kind::trace: trace(); break;
            case Dataset::Kind::prompts: prompts(); break;
            case Dataset::Kind::shared_prefix: shared_prefix(); break;
            case Dataset::Kind::multi_turn: multi_turn(); break;
        }
        if (workload_.longest > 0 && dataset_.kind != Dataset::Kind::multi_turn)
            keep_longest(plan_.requests, plan_.requests.size());
        if (!(dataset_.kind == Dataset::Kind::trace &&
              workload_.arrival.kind == Arrival::Kind::trace)) {
            const std::vector<double> times =
                arrival_times(workload_.arrival, plan_.requests.size(), Rng(seed(arrivals)));
            for (std::size_t i = 0; i < times.size(); ++i) plan_.requests[i].at_seconds = times[i];
        }
        finish();
        return std::move(plan_);
    }

private:
    [[nodiscard]] std::uint64_t seed(Stream stream) const {
        return derive_seed(workload_.seed, stream);
    }
    [[nodiscard]] std::uint64_t salted(std::uint64_t name) const {
        return derive_seed(options_.salt.value_or(0), name);
    }

    [[noreturn]] void fail(const std::string& message) const {
        throw UsageError("workload '" + workload_.name + "': " + message);
    }

    std::int64_t needed(const std::optional<std::int64_t>& value, const char* name) const {
        if (!value) fail("a data set of this kind needs " + std::string(name));
        if (*value < 1 || *value > most_length_tokens)
            fail(std::string(name) + ": an integer in [1, " + std::to_string(most_length_tokens) +
                 "] wanted, got " + std::to_string(*value));
        return *value;
    }
    std::size_t count() const {
        if (!workload_.requests) fail("how many requests wanted ('requests:')");
        return checked_count(*workload_.requests);
    }
    std::size_t checked_count(std::int64_t requests) const {
        if (requests < 1 || requests > most_requests)
            fail("'requests': an integer in [1, " + std::to_string(most_requests) +
                 "] wanted, got " + std::to_string(requests));
        return std::size_t(requests);
    }
    /// For kinds whose file ends somewhere.
    std::size_t at_most() const {
        return workload_.requests ? count() : std::size_t(most_requests);
    }

    std::string path() const {
        if (dataset_.path.empty()) fail("a data set of this kind needs a path");
        return file_of(dataset_).string();
    }

    /// Before any prompt is made: a line of YAML can ask for more than there is memory.
    void check_total(double tokens) const {
        if (tokens > double(most_total_tokens))
            fail("prompts of at most " + std::to_string(most_total_tokens) +
                 " tokens together wanted; ask for fewer requests or shorter ones");
    }
    /// How many symbols make a prompt of `tokens`, at least one.
    std::size_t symbols_for(std::int64_t tokens) {
        const double words = std::floor(double(tokens - overhead_) / per_word_ + 0.5);
        if (words < 1) ++longer_than_asked_;
        return words < 1 ? 1 : std::size_t(words);
    }
    [[nodiscard]] std::int64_t tokens_of(std::size_t symbols) const {
        return overhead_ + std::llround(double(symbols) * per_word_);
    }

    /// Adds a request of these symbols. Its header is written last, by what the salt and `name`
    /// say; the fingerprint knows only what comes after it.
    void add(std::vector<std::uint32_t>& symbols, std::uint64_t name, bool header,
             PlannedRequest request) {
        const std::size_t from = header ? std::min(symbols.size(), symbols_.header_end()) : 0;
        note("sym", symbols.size());
        for (std::size_t i = from; i < symbols.size(); ++i) mix(symbols[i]);
        if (header) symbols_.write_key(symbols, symbols_.header_begin(), salted(name));
        request.text = symbols_.text(symbols);
        push(std::move(request));
    }
    /// Adds a text from a file, behind a header of its own where there is a salt.
    void add_text(const FilePrompt& prompt, std::int64_t output_tokens) {
        PlannedRequest request;
        double tokens = prompt.tokens + double(overhead_);
        if (options_.salt) {
            std::vector<std::uint32_t> header(symbols_.header_end());
            symbols_.fill(header, 0, header.size(), Rng(0));
            symbols_.write_key(header, symbols_.header_begin(), salted(plan_.requests.size()));
            request.text = symbols_.text(header) + "\n\n";
            tokens += double(header.size()) * per_word_ + 1;
        }
        note("text", prompt.text.size());
        plan_.fingerprint.bits = mix64(plan_.fingerprint.bits ^ fingerprint_of(prompt.text).bits);
        request.text += prompt.text;
        request.input_tokens = std::max<std::int64_t>(1, std::llround(tokens));
        request.output_tokens = output_tokens;
        push(std::move(request));
    }
    void push(PlannedRequest request) {
        note("out", std::uint64_t(request.output_tokens));
        note("after", request.follows ? *request.follows + 1 : 0);
        plan_.requests.push_back(std::move(request));
    }
    void mix(std::uint64_t value) {
        plan_.fingerprint.bits = mix64(plan_.fingerprint.bits ^ value);
    }
    void note(std::string_view what, std::uint64_t value) {
        mix(fingerprint_of(what).bits);
        mix(value);
    }

    void random() {
        const std::size_t n = count();
        const std::int64_t input = needed(dataset_.input_tokens, "input_tokens");
        const std::int64_t output = needed(dataset_.output_tokens, "output_tokens");
        if (!(dataset_.range_ratio >= 0 && dataset_.range_ratio <= 1))
            fail("range_ratio: a number in [0, 1] wanted");
        Rng rng(seed(lengths));
        const auto drawn = [&](std::int64_t around) {
            const auto low = std::max<std::int64_t>(
                1, std::llround(std::floor(double(around) * (1 - dataset_.range_ratio))));
            const auto high = std::max(
                low,
                std::int64_t(std::llround(std::ceil(double(around) * (1 + dataset_.range_ratio)))));
            return low + std::int64_t(rng.index(std::size_t(high - low) + 1));
        };
        if (input <= overhead_)
            fail("input_tokens " + std::to_string(input) + ": the server counts " +
                 std::to_string(overhead_) + " tokens around any text, so at least " +
                 std::to_string(overhead_ + 1) + " wanted");
        check_total(double(n) * double(input) * (1 + dataset_.range_ratio));
        for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t length = drawn(input);
            add_random(i, length, drawn(output));
        }
        describe("random words");
    }
    void add_random(std::size_t i, std::int64_t tokens, std::int64_t output) {
        std::vector<std::uint32_t> symbols(symbols_for(tokens));
        symbols_.fill(symbols, 0, symbols.size(), Rng(derive_seed(seed(bodies), i)));
        PlannedRequest request;
        request.input_tokens = tokens_of(symbols.size());
        request.output_tokens = output;
        add(symbols, i, true, std::move(request));
    }

    void sharegpt() {
        const std::size_t n = count();
        const FilePrompts read = read_conversations(
            path(), dataset_, n, seed(samples), options_.calibration.tokens_per_estimated_token);
        double total = 0;
        for (const FilePrompt& prompt : read.prompts) total += prompt.tokens;
        check_total(total);
        for (const FilePrompt& prompt : read.prompts) add_text(prompt, prompt.output_tokens);
        plan_.lengths_exact = false;
        describe((read.kept < n ? std::to_string(n) + " requests of the " +
                                      std::to_string(read.kept) + " conversations of fitting length"
                                : std::to_string(n) + " conversations of fitting length") +
                 " of " + std::to_string(read.read) + " in " + dataset_.path);
    }

    void prompts() {
        const bool longest = workload_.longest > 0;  // of the whole file
        FilePrompts read = read_prompts(path(), longest ? std::size_t(most_requests) : at_most(),
                                        options_.calibration.tokens_per_estimated_token);
        if (longest)
            stable_sort(read.prompts, [](const FilePrompt& a, const FilePrompt& b) {
                return a.tokens > b.tokens;
            });
        const std::size_t n = workload_.requests ? count() : read.prompts.size();
        double total = 0;
        for (std::size_t i = 0; i < n; ++i) total += read.prompts[i % read.prompts.size()].tokens;
        check_total(total);
        for (std::size_t i = 0; i < n; ++i) {
            const FilePrompt& prompt = read.prompts[i % read.prompts.size()];
            add_text(prompt, dataset_.output_tokens
                                 ? needed(dataset_.output_tokens, "output_tokens")
                                 : prompt.output_tokens);
        }
        plan_.lengths_exact = false;
        describe(std::to_string(std::min(n, read.prompts.size())) + " prompts of " + dataset_.path);
    }
    void trace() {
        const bool longest = workload_.longest > 0;  // of the whole file
        std::vector<TraceRow> rows =
            read_trace(path(), longest ? std::size_t(most_requests) : at_most());
        if (workload_.requests && rows.size() < count())
            fail("'requests': " + std::to_string(count()) + " wanted, " + dataset_.path + " has " +
                 std::to_string(rows.size()) + "; ask for as many, or leave it out");
        if (longest) keep_longest(rows, at_most());
        double total = 0;
        for (const TraceRow& row : rows) total += double(row.input_tokens);
        check_total(total);
        const bool timed = workload_.arrival.kind == Arrival::Kind::trace;
        if (timed && !rows.front().seconds)
            fail("arrival {rate: timestamps}: " + dataset_.path + " has no time stamps");
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const TraceRow& row = rows[i];
            const std::int64_t output = dataset_.output_tokens
                                            ? needed(dataset_.output_tokens, "output_tokens")
                                            : row.output_tokens;
            if (row.blocks.empty()) add_random(i, row.input_tokens, output);
            else add_blocks(i, row, output);
            if (timed)
                plan_.requests.back().at_seconds = present(row.seconds) / workload_.arrival.speed;
        }
        describe(std::to_string(rows.size()) + " requests of " + dataset_.path +
                 ", their texts random words");
    }
    /// A prompt of named blocks: equal names, equal text, so that requests share what they shared
    /// in the trace.
    void add_blocks(std::size_t i, const TraceRow& row, std::int64_t output) {
        std::vector<std::uint32_t> symbols(symbols_for(row.input_tokens));
        const auto block =
            std::size_t(std::max(1.0, std::floor(double(row.block_tokens) / per_word_)));
        for (std::size_t at = 0, k = 0; at < symbols.size(); at += block, ++k) {
            const bool named = k < row.blocks.size();
            const std::uint64_t name = named ? derive_seed(seed(blocks), row.blocks[k])
                                             : derive_seed(derive_seed(seed(own_parts), i), k);
            symbols_.fill(symbols, at, std::min(symbols.size(), at + block), Rng(name));
        }
        PlannedRequest request;
        request.input_tokens = tokens_of(symbols.size());
        request.output_tokens = output;
        add(symbols, row.blocks.front(), true, std::move(request));
    }

    void shared_prefix() {
        const std::size_t n = count();
        const std::int64_t prefix = needed(dataset_.prefix_tokens, "prefix_tokens");
        const std::int64_t own = needed(dataset_.input_tokens, "input_tokens");
        const std::int64_t output = needed(dataset_.output_tokens, "output_tokens");
        const auto group_count =
            std::size_t(needed(dataset_.prefix_groups.value_or(1), "prefix_groups"));
        check_total(double(n) * double(prefix + own));
        std::vector<std::size_t> group(n);  // evenly many of each, in random order
        for (std::size_t i = 0; i < n; ++i) group[i] = i % group_count;
        Rng rng(seed(groups));
        for (std::size_t i = n; i > 1; --i) std::swap(group[i - 1], group[rng.index(i)]);
        const auto prefix_symbols =
            std::size_t(std::max(1.0, std::floor(double(prefix) / per_word_)));
        for (std::size_t i = 0; i < n; ++i) {
            std::vector<std::uint32_t> symbols(
                std::max(prefix_symbols + 1, symbols_for(prefix + own)));
            symbols_.fill(symbols, 0, prefix_symbols, Rng(derive_seed(seed(bodies), group[i])));
            symbols_.fill(symbols, prefix_symbols, symbols.size(),
                          Rng(derive_seed(seed(own_parts), i)));
            symbols_.write_key(symbols, prefix_symbols, derive_seed(seed(own_parts), i));
            PlannedRequest request;
            request.input_tokens = tokens_of(symbols.size());
            request.output_tokens = output;
            add(symbols, group[i], true, std::move(request));
        }
        describe("random words behind " + std::to_string(std::min(n, group_count)) +
                 " shared prefixes of " + std::to_string(prefix) + " tokens");
    }

    void multi_turn() {
        const std::size_t n = count();
        const std::int64_t input = needed(dataset_.input_tokens, "input_tokens");
        const std::int64_t output = needed(dataset_.output_tokens, "output_tokens");
        const auto turns = std::size_t(needed(dataset_.turns, "turns"));
        check_total(double(n) * double(input));
        const std::size_t conversations = (n + turns - 1) / turns;
        const bool closed =
            workload_.arrival.kind == Arrival::Kind::concurrency && workload_.arrival.in_flight > 0;
        const std::size_t at_a_time =
            closed ? std::min(conversations, std::size_t(workload_.arrival.in_flight))
                   : conversations;
        for (std::size_t first = 0; first < conversations; first += at_a_time) {
            const std::size_t together = std::min(at_a_time, conversations - first);
            for (std::size_t turn = 0; turn < turns; ++turn)
                for (std::size_t c = first; c < first + together && plan_.requests.size() < n; ++c)
                    add_turn(c, turn, together, input, output);
        }
        describe(std::to_string(conversations) + " conversations of " + std::to_string(turns) +
                 " turns of random words");
    }
    void add_turn(std::size_t conversation, std::size_t turn, std::size_t together,
                  std::int64_t input, std::int64_t output) {
        const std::size_t index = plan_.requests.size();
        std::vector<std::uint32_t> symbols(symbols_for(input));
        symbols_.fill(symbols, 0, symbols.size(),
                      Rng(derive_seed(derive_seed(seed(bodies), conversation), turn)));
        PlannedRequest request;
        // What the server counts for a later turn includes the answers before it: not known.
        request.input_tokens = turn == 0 ? tokens_of(symbols.size()) : 0;
        request.output_tokens = output;
        if (turn > 0) request.follows = index - together;
        add(symbols, conversation, turn == 0, std::move(request));
    }

    void describe(const std::string& what) {
        const bool asked =
            options_.calibration.exact || options_.calibration.tokens_per_estimated_token != 1;
        plan_.description =
            what + (plan_.lengths_exact ? "; lengths as the server counts them"
                    : asked ? "; lengths estimated, " + scale() + " tokens for one of the estimate"
                            : "; lengths estimated, the server was not asked");
        if (longer_than_asked_ > 0)
            plan_.description += "; " + std::to_string(longer_than_asked_) +
                                 " prompts are longer than asked, for the server counts " +
                                 std::to_string(overhead_) + " tokens around any text";
    }
    [[nodiscard]] std::string scale() const {
        std::string text = std::to_string(options_.calibration.tokens_per_estimated_token);
        return text.substr(0, text.find('.') + 3);
    }

    /// The longest prompts, with the longest answer as far as no request is longer than the
    /// longest; no more tokens together than the first `usual` of them have.
    template <class Request>
    void keep_longest(std::vector<Request>& all, std::size_t usual) const {
        std::int64_t answer = 0, most = 0, tokens = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::int64_t length = all[i].input_tokens + all[i].output_tokens;
            answer = std::max(answer, all[i].output_tokens);
            most = std::max(most, length);
            if (i < usual) tokens += length;
        }
        stable_sort(all, [](const Request& a, const Request& b) {
            return a.input_tokens > b.input_tokens;
        });
        all.resize(std::min(all.size(), std::size_t(workload_.longest)));
        std::size_t kept = 0;
        for (; kept < all.size() && tokens > 0; ++kept) {
            Request& one = all[kept];
            one.output_tokens =
                std::max(one.output_tokens, std::min(answer, most - one.input_tokens));
            tokens -= one.input_tokens + one.output_tokens;
        }
        all.resize(kept);
    }

    void finish() {
        double input = 0;
        double output = 0;
        std::size_t inputs = 0;
        std::size_t outputs = 0;
        for (const PlannedRequest& request : plan_.requests) {
            input += double(request.input_tokens);
            inputs += request.input_tokens > 0 ? 1 : 0;
            output += double(request.output_tokens);
            outputs += request.output_tokens > 0 ? 1 : 0;
        }
        if (inputs > 0) plan_.mean_input_tokens = input / double(inputs);
        if (outputs > 0) plan_.mean_output_tokens = output / double(outputs);
    }

    const Workload& workload_;
    const Dataset& dataset_;
    const PlanOptions& options_;
    Symbols symbols_;
    std::int64_t overhead_;
    double per_word_;
    Plan plan_;
    std::size_t longer_than_asked_ = 0;
};

}  // namespace

std::filesystem::path file_of(const Dataset& dataset) {
    std::filesystem::path beside = std::filesystem::path(dataset.folder) / dataset.path;
    std::error_code unknown;
    return std::filesystem::exists(beside, unknown) ? beside : std::filesystem::path(dataset.path);
}

Plan plan_requests(const Workload& workload, const PlanOptions& options) {
    return Planner(workload, options).plan();
}

}  // namespace servetune
