// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/perf/engine_core.hpp"

#include "block_pool.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace servetune {
namespace {

constexpr std::int64_t no_token = std::numeric_limits<std::int64_t>::max();

/// Streams of random numbers with seeds of their own, so that they do not depend on each other.
enum NoiseStream : std::uint64_t { of_run, of_steps, of_guesses };

/// The logarithm's standard deviation of a lognormal variable with this coefficient of variation.
double log_deviation(double cv) { return std::sqrt(std::log1p(cv * cv)); }

/// A lognormal factor with mean 1.
double factor(double deviation, Rng& rng) {
    return deviation > 0 ? std::exp(deviation * rng.normal() - deviation * deviation / 2) : 1;
}

/// Tokens `from + 1 ... from + count`, each attending to at most `window` tokens (0: no limit).
double attended(std::int64_t from, std::int64_t count, std::int64_t window) {
    const auto triangle = [](std::int64_t first,
                             std::int64_t n) {  // first + (first + 1) + ..., n terms
        return double(n) * (double(first) + double(n - 1) / 2);
    };
    if (window == 0) return triangle(from + 1, count);
    const std::int64_t rising = std::clamp<std::int64_t>(window - from, 0, count);
    return triangle(from + 1, rising) + double(count - rising) * double(window);
}

}  // namespace

struct EngineCore::State {
    using Slot = std::uint32_t;

    /// A request, from the queue to its last token.
    struct Sequence {
        std::size_t id = 0;
        std::uint64_t serial = 0;  ///< how many were added before it
        std::int64_t input_tokens = 0;
        std::int64_t output_tokens = 0;
        std::int64_t generated = 0;
        /// tokens to compute before the next one is made: after a preemption the answer so far too
        std::int64_t prompt = 0;
        std::int64_t computed = 0;        ///< tokens whose keys and values are in the cache
        std::int64_t capacity = 0;        ///< tokens that its blocks hold
        std::int64_t unnamed_blocks = 0;  ///< of these blocks, those in no unit
        std::int64_t names_next_at =
            no_token;  ///< so many computed tokens complete the next unit that has a name
        std::int64_t cached = 0;  ///< of the prompt, found in the cache when it was first admitted
        std::size_t seen_units = 0;  ///< from its beginning: found or named
        bool restarted = false;      ///< was preempted
        bool arrives = false;        ///< EngineRequest::prompt_is_computed
        std::vector<BlockPool::Unit> units{};
        std::vector<std::uint64_t> pieces{};

        [[nodiscard]] bool decodes() const { return computed >= prompt; }
        [[nodiscard]] bool finished() const { return generated >= output_tokens; }
        [[nodiscard]] std::int64_t final_tokens() const {
            return input_tokens + output_tokens - 1;
        }  ///< the last is never computed
    };

    State(CostModel model, std::uint64_t seed, const StepNoise& variation);

    [[nodiscard]] std::string refusal(std::int64_t input_tokens, std::int64_t output_tokens,
                                      bool prompt_is_computed) const;
    void add(EngineRequest request);
    void cancel(std::size_t id);
    EngineStep step();

    CostModel cost;
    ServingSettings settings;
    StepNoise noise;
    BlockPool pool;
    EngineCounters counters{};
    std::vector<Slot> running{};  ///< in the order of admission: the youngest last
    std::deque<Slot> waiting{};

private:
    void decode();
    bool make_room(Slot slot, std::int64_t tokens);
    void advance(Sequence& sequence, std::int64_t slots);
    void go_on_with_prompts();
    void admit_waiting();
    bool admit(Sequence& sequence);
    void prefill(Sequence& sequence);
    void preempt_youngest();
    void collect_finished();

    [[nodiscard]] std::int64_t blocks_for(std::int64_t tokens) const {
        return (tokens + settings.block_tokens - 1) / settings.block_tokens;
    }
    [[nodiscard]] std::int64_t promised_blocks(const Sequence& sequence) const;
    [[nodiscard]] std::uint64_t unit_name(const Sequence& sequence, std::size_t unit) const {
        return sequence.pieces[(unit + 1) * std::size_t(unit_tokens / prefix_piece_tokens) - 1];
    }
    [[nodiscard]] std::int64_t named_units(const Sequence& sequence) const {
        return std::int64_t(sequence.pieces.size()) * prefix_piece_tokens / unit_tokens;
    }
    void plan_naming(Sequence& sequence) const;
    void name_units(Sequence& sequence);
    void name_the_rest(Sequence& sequence);
    void release(Sequence& sequence);
    void forget(Slot slot);
    [[nodiscard]] std::int64_t accepted_guesses();
    [[nodiscard]] double noise_factor();

    std::int64_t unit_tokens;  ///< whole pieces and whole blocks
    std::int64_t unit_blocks;
    std::int64_t window;
    std::vector<double> chances{};  ///< that the first guess is right, the first two, ...
    double run_factor = 1;
    double step_deviation = 0;
    Rng step_rng;
    Rng guess_rng;

    std::vector<Sequence> sequences{};
    std::vector<Slot> spare{};
    std::unordered_map<std::size_t, Slot>
        slots{};  ///< by the caller's id; asked, never walked through
    std::uint64_t added = 0;

    // Of the step that is being planned.
    StepWork work{};
    std::vector<TokenEvent> events{};
    std::int64_t budget = 0;
    std::int64_t step_tokens = 0;
    bool preempted = false;
    std::size_t finished = 0;
};

EngineCore::State::State(CostModel model, std::uint64_t seed, const StepNoise& variation)
    : cost(std::move(model)),
      settings(cost.settings()),
      noise(variation),
      pool(cost.memory().cache_blocks,
           std::lcm(settings.block_tokens, prefix_piece_tokens) / settings.block_tokens),
      unit_tokens(std::lcm(settings.block_tokens, prefix_piece_tokens)),
      unit_blocks(unit_tokens / settings.block_tokens),
      window(cost.target().model.sliding_window),
      step_deviation(log_deviation(noise.step_cv)),
      step_rng(derive_seed(seed, of_steps)),
      guess_rng(derive_seed(seed, of_guesses)) {
    check_options("the noise", noise.why_invalid());
    Rng rng(derive_seed(seed, of_run));
    run_factor = factor(log_deviation(noise.run_cv), rng);
    const Speculation& speculation = settings.speculation;
    if (speculation.tokens == 0) return;
    const double right = cost.target().traits.acceptance_of(speculation.method);
    double chance = 1;
    for (std::int64_t i = 0; i < speculation.tokens; ++i) chances.push_back(chance *= right);
}

std::string EngineCore::State::refusal(std::int64_t input_tokens, std::int64_t output_tokens,
                                       bool prompt_is_computed) const {
    const auto told = [&](const std::string& limit, std::int64_t most) {
        return "the request has " + std::to_string(input_tokens + output_tokens) + " tokens (" +
               std::to_string(input_tokens) + " of the prompt, " + std::to_string(output_tokens) +
               " of the answer), " + limit + std::to_string(most);
    };
    if (input_tokens < 1 || output_tokens < 1)
        return "a prompt and an answer of at least one token each wanted, got " +
               std::to_string(input_tokens) + " and " + std::to_string(output_tokens);
    const std::int64_t total = input_tokens + output_tokens;
    if (const std::int64_t most = cost.max_context_tokens(); most > 0 && total > most)
        return told("the longest context is ", most);
    if (const std::int64_t most = cost.memory().cache_blocks * settings.block_tokens; total > most)
        return told("the whole cache holds ", most);
    if (!settings.chunked_prefill && input_tokens > settings.max_batched_tokens &&
        !prompt_is_computed)
        return "the prompt has " + std::to_string(input_tokens) + " tokens, a step at most " +
               std::to_string(settings.max_batched_tokens) +
               ", and prompts are not cut (chunked prefill is off)";
    return {};
}

void EngineCore::State::add(EngineRequest request) {
    if (const std::string why =
            refusal(request.input_tokens, request.output_tokens, request.prompt_is_computed);
        !why.empty())
        throw UsageError(why);
    if (slots.contains(request.id))
        throw UsageError("request " + std::to_string(request.id) + " is already in the engine");
    if (spare.empty()) {
        spare.push_back(static_cast<Slot>(sequences.size()));
        sequences.emplace_back();
    }
    const Slot slot = spare.back();
    spare.pop_back();
    slots.emplace(request.id, slot);
    Sequence& sequence = sequences[slot];
    sequence.id = request.id;
    sequence.serial = added++;
    sequence.input_tokens = sequence.prompt = request.input_tokens;
    sequence.output_tokens = request.output_tokens;
    sequence.generated = sequence.cached = 0;
    sequence.restarted = false;
    sequence.arrives = request.prompt_is_computed;
    if (settings.prefix_cache) sequence.pieces = std::move(request.pieces);
    waiting.push_back(slot);
}

void EngineCore::State::cancel(std::size_t id) {
    const auto* found = entry_in(slots, id);
    if (found == nullptr) return;
    const Slot slot = *found;
    if (std::erase(running, slot) > 0) release(sequences[slot]);
    else std::erase(waiting, slot);
    forget(slot);
}

EngineStep EngineCore::State::step() {
    if (running.empty() && waiting.empty())
        throw UsageError("an engine with nothing to do has no next step");
    work = {};
    events.clear();
    budget = settings.max_batched_tokens;
    step_tokens = 0;
    preempted = false;
    finished = 0;
    if (settings.mixed_steps) decode();
    go_on_with_prompts();
    if (!preempted)
        admit_waiting();  // what was just taken from a sequence is not given to another at once
    if (!settings.mixed_steps && work.prefill_sequences == 0) decode();

    EngineStep result;
    result.work = work;
    result.time = cost.step(work);
    result.seconds = result.time.total * noise_factor();
    result.cache_use = pool.blocks() > 0 ? double(pool.used()) / double(pool.blocks()) : 0;
    const MemoryPlan& memory = cost.memory();
    const double needed =
        cost.activation_bytes(step_tokens, work.decode_sequences + work.prefill_sequences);
    result.out_of_memory =
        needed > memory.activation_bytes +
                     memory.free_bytes;  // less than planned where the cache took too much
    ++counters.steps;
    counters.busy_seconds += result.seconds;
    if (result.out_of_memory) return result;  // nobody will get these tokens
    for (const TokenEvent& event : events) counters.generated_tokens += std::uint64_t(event.tokens);
    result.tokens = events;
    if (finished > 0) collect_finished();
    return result;
}

// ---- one step

/// One token, and guesses, for each running sequence whose prompt is computed, the oldest first.
void EngineCore::State::decode() {
    const std::int64_t wanted = 1 + std::int64_t(chances.size());
    for (std::size_t i = 0; i < running.size() && budget > 0; ++i) {
        const Slot slot = running[i];
        Sequence& sequence = sequences[slot];
        if (!sequence.decodes()) continue;
        const std::int64_t taken = std::min(wanted, budget);
        const std::int64_t needed = std::min(sequence.computed + taken, sequence.final_tokens());
        if (needed > sequence.capacity && !make_room(slot, needed))
            break;  // it was the youngest itself
        budget -= taken;
        step_tokens += taken;
        advance(sequence, taken);
    }
}

/// Blocks for so many tokens, from younger sequences where none are free. False: preempted itself.
bool EngineCore::State::make_room(Slot slot, std::int64_t tokens) {
    Sequence& sequence = sequences[slot];
    const std::int64_t more = blocks_for(tokens) - sequence.capacity / settings.block_tokens;
    while (!pool.take(more)) {
        const bool own = running.back() == slot;
        preempt_youngest();
        if (own) return false;
    }
    sequence.unnamed_blocks += more;
    sequence.capacity += more * settings.block_tokens;
    return true;
}

void EngineCore::State::advance(Sequence& sequence, std::int64_t taken) {
    ++work.decode_sequences;
    work.decode_context_tokens += double(sequence.computed);
    work.decode_windowed_context_tokens +=
        double(window > 0 ? std::min(window, sequence.computed) : sequence.computed);
    const std::int64_t most_right =
        std::min(taken, sequence.output_tokens - sequence.generated) - 1;
    const std::int64_t tokens =
        1 + (chances.empty() ? 0 : std::min(accepted_guesses(), most_right));
    counters.drafted_tokens += std::uint64_t(taken - 1);
    counters.accepted_tokens += std::uint64_t(tokens - 1);
    sequence.computed += tokens;
    sequence.generated += tokens;
    if (sequence.computed >= sequence.names_next_at) name_units(sequence);
    const bool last = sequence.finished();
    finished += last ? 1 : 0;
    events.push_back({.id = sequence.id, .tokens = tokens, .finished = last});
}

void EngineCore::State::go_on_with_prompts() {
    // Admission is in order, so only the last ones admitted can have prompts left.
    auto first = running.end();
    while (first != running.begin() && !sequences[*std::prev(first)].decodes()) --first;
    for (; first != running.end() && budget > 0; ++first) prefill(sequences[*first]);
}

void EngineCore::State::admit_waiting() {
    while (!waiting.empty() && budget > 0 &&
           std::int64_t(running.size()) < settings.max_sequences) {
        const Slot slot = waiting.front();
        if (!admit(sequences[slot])) return;  // first come, first served: nobody overtakes
        waiting.pop_front();
        running.push_back(slot);
        prefill(sequences[slot]);
    }
}

/// Blocks that a sequence was promised when it was admitted and has not taken yet.
std::int64_t EngineCore::State::promised_blocks(const Sequence& sequence) const {
    const double left =
        std::ceil(settings.reserved_share * double(sequence.output_tokens - sequence.generated));
    const std::int64_t tokens = sequence.input_tokens + sequence.generated + std::int64_t(left) -
                                1;  // the last is not computed
    return std::max<std::int64_t>(0,
                                  blocks_for(tokens) - sequence.capacity / settings.block_tokens);
}

/// Gives a waiting sequence the blocks of its whole prompt, cached ones included. False when there
/// are too few, or when the prompt must not be cut and is longer than what is left of the step.
bool EngineCore::State::admit(Sequence& sequence) {
    // The last token of a prompt is computed in any case: the next one follows from it.
    const std::int64_t most_found =
        std::min(named_units(sequence), (sequence.prompt - 1) / unit_tokens);
    std::int64_t free = pool.available() - (blocks_for(sequence.prompt) - most_found * unit_blocks);
    if (free < 0)
        return false;  // not even when all that can be found is found, and in use by others
    std::int64_t found = 0;
    sequence.units.clear();
    for (; found < most_found; ++found) {
        const auto unit = pool.find(unit_name(sequence, std::size_t(found)));
        if (!unit) break;
        sequence.units.push_back(*unit);
        free -= pool.in_use(*unit) ? 0 : unit_blocks;
    }
    free -= (most_found - found) * unit_blocks;
    const bool arrives =
        sequence.arrives && !sequence.restarted;  // what was preempted is computed here
    // A sequence that starts again may have grown longer than a step. Uncut it would never run.
    const bool whole = !settings.chunked_prefill && !arrives &&
                       !(sequence.restarted && sequence.prompt > settings.max_batched_tokens);
    if (whole && sequence.prompt - found * unit_tokens > budget) return false;
    if (settings.reserved_share > 0) {
        sequence.capacity = blocks_for(sequence.prompt) * settings.block_tokens;
        free -= promised_blocks(sequence);
        for (const Slot other : running) free -= promised_blocks(sequences[other]);
    }
    if (free < 0) return false;

    for (const BlockPool::Unit unit : sequence.units) pool.acquire(unit);
    sequence.unnamed_blocks = blocks_for(sequence.prompt) - found * unit_blocks;
    (void)pool.take(sequence.unnamed_blocks);
    sequence.capacity = blocks_for(sequence.prompt) * settings.block_tokens;
    sequence.computed = found * unit_tokens;
    sequence.seen_units = std::size_t(found);
    plan_naming(sequence);
    if (arrives) sequence.computed = sequence.prompt - 1;
    else if (!sequence.restarted &&
             !sequence.arrives) {  // a second start says nothing about the traffic
        sequence.cached = sequence.computed;
        counters.prefix_queried_tokens +=
            settings.prefix_cache ? std::uint64_t(sequence.input_tokens) : 0;
        counters.prefix_hit_tokens += std::uint64_t(sequence.cached);
    }
    return true;
}

/// As much of its prompt as the step has room for.
void EngineCore::State::prefill(Sequence& sequence) {
    const std::int64_t tokens = std::min(sequence.prompt - sequence.computed, budget);
    budget -= tokens;
    step_tokens += tokens;
    ++work.prefill_sequences;
    work.prefill_tokens += tokens;
    work.prefill_pairs += attended(sequence.computed, tokens, 0);
    work.prefill_windowed_pairs += attended(sequence.computed, tokens, window);
    work.prefill_context_tokens += double(sequence.computed);
    sequence.computed += tokens;
    if (sequence.computed >= sequence.names_next_at) name_units(sequence);
    if (!sequence.decodes()) return;
    ++work.prefill_finished;
    const bool first = sequence.generated++ == 0;
    if (first && !sequence.arrives) counters.prompt_tokens += std::uint64_t(sequence.input_tokens);
    const bool last = sequence.finished();
    finished += last ? 1 : 0;
    events.push_back({.id = sequence.id,
                      .tokens = 1,
                      .cached_tokens = first ? sequence.cached : 0,
                      .first = first,
                      .finished = last});
}

void EngineCore::State::preempt_youngest() {
    const Slot slot = running.back();
    running.pop_back();
    Sequence& sequence = sequences[slot];
    if (settings.prefix_cache) name_the_rest(sequence);
    release(sequence);
    sequence.prompt = sequence.input_tokens + sequence.generated;
    sequence.restarted = true;
    waiting.push_front(slot);
    ++counters.preemptions;
    preempted = true;
}

void EngineCore::State::collect_finished() {
    std::size_t kept = 0;
    for (const Slot slot : running) {
        if (!sequences[slot].finished()) {
            running[kept++] = slot;
            continue;
        }
        release(sequences[slot]);
        forget(slot);
        ++counters.requests_finished;
    }
    running.resize(kept);
}

// ---- blocks of a sequence

void EngineCore::State::plan_naming(Sequence& sequence) const {
    const auto next = std::int64_t(sequence.seen_units);
    sequence.names_next_at = next < named_units(sequence) ? (next + 1) * unit_tokens : no_token;
}

/// Units that have become whole can be found by others from now on: those admitted to the same step
/// too, as vLLM does, for each layer writes its keys and values before it reads any.
void EngineCore::State::name_units(Sequence& sequence) {
    while (sequence.computed >= sequence.names_next_at) {
        if (const auto unit = pool.name(unit_name(sequence, sequence.seen_units))) {
            sequence.units.push_back(*unit);
            sequence.unnamed_blocks -= unit_blocks;
        }
        ++sequence.seen_units;
        plan_naming(sequence);
    }
}

/// What a preempted sequence leaves in the cache is found again when it starts again before others
/// have taken the blocks. Its pieces beyond those that others know get names that nobody else has.
void EngineCore::State::name_the_rest(Sequence& sequence) {
    const std::uint64_t own = mix64(~sequence.serial);
    while (std::int64_t(sequence.pieces.size() + 1) * prefix_piece_tokens <= sequence.computed)
        sequence.pieces.push_back(derive_seed(own, sequence.pieces.size()));
    plan_naming(sequence);
    name_units(sequence);
}

/// Gives the blocks back, the end of the sequence first: its beginning may be shared.
void EngineCore::State::release(Sequence& sequence) {
    pool.give_back(sequence.unnamed_blocks);
    for (auto unit = sequence.units.rbegin(); unit != sequence.units.rend(); ++unit)
        pool.release(*unit);
    sequence.units.clear();
    sequence.unnamed_blocks = sequence.capacity = sequence.computed = 0;
    sequence.names_next_at = no_token;
}

void EngineCore::State::forget(Slot slot) {
    slots.erase(sequences[slot].id);
    sequences[slot].pieces.clear();
    spare.push_back(slot);
}

// ---- chance

/// Guesses that are right before the first wrong one, each with the same chance.
std::int64_t EngineCore::State::accepted_guesses() {
    const double u = guess_rng.uniform();
    std::int64_t right = 0;
    for (const double chance : chances) {
        if (u >= chance) break;
        ++right;
    }
    return right;
}

double EngineCore::State::noise_factor() { return run_factor * factor(step_deviation, step_rng); }

EngineCore::EngineCore(CostModel cost, std::uint64_t seed, const StepNoise& noise)
    : state_(std::make_unique<State>(std::move(cost), seed, noise)) {}
EngineCore::EngineCore(EngineCore&&) noexcept = default;
EngineCore& EngineCore::operator=(EngineCore&&) noexcept = default;
EngineCore::~EngineCore() = default;

std::string EngineCore::refusal(std::int64_t input_tokens, std::int64_t output_tokens,
                                bool prompt_is_computed) const {
    return state_->refusal(input_tokens, output_tokens, prompt_is_computed);
}
void EngineCore::add(EngineRequest request) { state_->add(std::move(request)); }
void EngineCore::cancel(std::size_t id) { state_->cancel(id); }
bool EngineCore::idle() const { return state_->running.empty() && state_->waiting.empty(); }
EngineStep EngineCore::step() { return state_->step(); }
void EngineCore::clear_prefix_cache() { state_->pool.forget_unused(); }
std::size_t EngineCore::running() const { return state_->running.size(); }
std::size_t EngineCore::waiting() const { return state_->waiting.size(); }
double EngineCore::cache_use() const {
    const BlockPool& pool = state_->pool;
    return pool.blocks() > 0 ? double(pool.used()) / double(pool.blocks()) : 0;
}
const EngineCounters& EngineCore::counters() const { return state_->counters; }
const CostModel& EngineCore::cost() const { return state_->cost; }

}  // namespace servetune
