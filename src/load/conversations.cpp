// SPDX-License-Identifier: Apache-2.0
#include "data_files.hpp"
#include "servetune/detail/load/calibration.hpp"
#include "servetune/error.hpp"
#include "servetune/rng.hpp"
#include "text_stream.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <optional>
#include <queue>

namespace servetune {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_conversation_bytes =
    std::size_t{64} << 20U;  ///< of one conversation or line; the longest real ones have a few MiB
constexpr std::size_t most_kept_bytes =
    std::size_t{2} << 30U;      ///< of all prompts that are kept: 500 million tokens of English
constexpr int most_depth = 64;  ///< of brackets; a conversation has three

int skip_blanks(TextStream& stream) {
    while (stream.peek() == ' ' || stream.peek() == '\t' || stream.peek() == '\n' ||
           stream.peek() == '\r')
        (void)stream.next();
    return stream.peek();
}

/// Goes past the object that begins here; its text, where it is `wanted`. Only brackets and quotes
/// are looked at; the parser says what else is wrong.
void read_object(TextStream& stream, bool wanted, std::string& text) {
    const std::size_t start = stream.line_number();
    text.clear();
    std::size_t bytes = 0;
    const auto take = [&](std::string_view part) {
        bytes += part.size();
        if (bytes > most_conversation_bytes)
            stream.fail(start, "a conversation of at most " +
                                   std::to_string(most_conversation_bytes >> 20U) + " MiB wanted");
        if (wanted) text += part;
    };
    const auto next = [&] {
        const int c = stream.next();
        if (c < 0)
            stream.fail(start, "the file ends in the middle of the conversation that begins here");
        const char byte = static_cast<char>(c);
        take({&byte, 1});
        return byte;
    };
    int depth = 0;
    do {
        const char c = next();
        if (c == '"') {
            for (char inside = 0; inside != '"';) {
                for (std::string_view part = stream.before('"', '\\'); !part.empty();
                     part = stream.before('"', '\\'))
                    take(part);
                inside = next();
                if (inside == '\\') (void)next();
            }
        } else if (c == '{' || c == '[') {
            if (++depth > most_depth)
                stream.fail(start,
                            "brackets at most " + std::to_string(most_depth) + " deep wanted");
        } else if (c == '}' || c == ']') --depth;
    } while (depth > 0);
}

void check_kept(const TextStream& stream, std::size_t line, std::size_t bytes) {
    if (bytes > most_kept_bytes)
        stream.fail(line, "prompts of at most " + std::to_string(most_kept_bytes >> 20U) +
                              " MiB together wanted; ask for fewer requests");
}

/// What the first two turns say; nothing where there are fewer.
std::optional<std::pair<std::string, std::string>> first_turns(const TextStream& stream,
                                                               std::size_t line,
                                                               Json& conversation) {
    const auto turns = conversation.find("conversations");
    if (turns == conversation.end()) return std::nullopt;
    if (!turns->is_array())
        stream.fail(line, "'conversations': a list of turns wanted, got " +
                              std::string(turns->type_name()));
    if (turns->size() < 2) return std::nullopt;
    std::pair<std::string, std::string> result;
    for (const std::size_t i : {0U, 1U}) {
        Json& turn = (*turns)[i];
        const std::string where = "conversations[" + std::to_string(i) + "]";
        if (!turn.is_object() || !turn.contains("value") || !turn["value"].is_string())
            stream.fail(line, "'" + where + "': a turn {\"from\": ..., \"value\": text} wanted");
        (i == 0 ? result.first : result.second) = std::move(turn["value"].get_ref<std::string&>());
    }
    return result;
}

/// Those with the smallest keys, smallest first: keys that are a function of seed and position make
/// it a random sample in random order, in one pass and with no more in memory than what is kept.
class Sample {
public:
    explicit Sample(std::size_t most) : most_(most) {}
    [[nodiscard]] bool wants(std::uint64_t key) const {
        return kept_.size() < most_ || key < kept_.top().first;
    }
    void add(std::uint64_t key, FilePrompt prompt) {
        if (kept_.size() == most_) {
            bytes_ -= kept_.top().second.text.size();
            kept_.pop();
        }
        bytes_ += prompt.text.size();
        kept_.emplace(key, std::move(prompt));
    }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    std::vector<FilePrompt> sorted() {
        std::vector<FilePrompt> result(kept_.size());
        for (auto at = result.rbegin(); at != result.rend(); ++at, kept_.pop())
            *at = kept_.top().second;
        return result;
    }

private:
    struct ByKey {
        bool operator()(const std::pair<std::uint64_t, FilePrompt>& a,
                        const std::pair<std::uint64_t, FilePrompt>& b) const {
            return a.first < b.first;
        }
    };
    std::size_t most_;
    std::size_t bytes_ = 0;
    std::priority_queue<std::pair<std::uint64_t, FilePrompt>,
                        std::vector<std::pair<std::uint64_t, FilePrompt>>, ByKey>
        kept_;
};

/// The text of `prompt`, `text` or `messages` (their contents, a blank line between).
std::string prompt_text(const TextStream& stream, std::size_t line, const Json& object) {
    if (!object.is_object())
        stream.fail(line, "an object with prompt, text or messages wanted, got " +
                              std::string(object.type_name()));
    for (const char* key : {"prompt", "text"})
        if (const auto found = object.find(key); found != object.end()) {
            if (!found->is_string())
                stream.fail(line,
                            "'" + std::string(key) + "': text wanted, got " + found->type_name());
            return found->get<std::string>();
        }
    const auto messages = object.find("messages");
    if (messages == object.end()) stream.fail(line, "one of prompt, text, messages wanted");
    std::string result;
    if (!messages->is_array() || messages->empty())
        stream.fail(line, "'messages': a list of {\"role\", \"content\"} wanted");
    for (const Json& message : *messages) {
        if (!message.is_object() || !message.contains("content") || !message["content"].is_string())
            stream.fail(line, "'messages': a list of {\"role\", \"content\": text} wanted");
        result += (result.empty() ? "" : "\n\n") + message["content"].get<std::string>();
    }
    return result;
}

}  // namespace

FilePrompts read_conversations(const std::string& file, const Dataset& dataset, std::size_t count,
                               std::uint64_t seed, double scale) {
    const auto least = double(dataset.min_tokens.value_or(sharegpt_min_tokens));
    const auto most_prompt = double(dataset.max_prompt_tokens.value_or(sharegpt_max_prompt_tokens));
    const auto most_total = double(dataset.max_total_tokens.value_or(sharegpt_max_total_tokens));
    TextStream stream(file);
    if (skip_blanks(stream) != '[')
        stream.fail(stream.line_number(), "a JSON array of conversations wanted");
    (void)stream.next();
    Sample sample(count);
    FilePrompts result;
    std::string text;
    for (int c = skip_blanks(stream); c != ']'; c = skip_blanks(stream)) {
        if (result.read > 0) {
            if (c != ',')
                stream.fail(stream.line_number(), "',' or ']' wanted after a conversation");
            (void)stream.next();
            c = skip_blanks(stream);
        }
        const std::size_t line = stream.line_number();
        if (c < 0) stream.fail(line, "the file ends before the ']' of its array");
        if (c != '{') stream.fail(line, "a conversation {\"conversations\": [...]} wanted");
        const std::uint64_t key = derive_seed(seed, result.read++);
        const bool wanted = sample.wants(key);
        read_object(stream, wanted, text);
        if (!wanted) continue;  // there are enough with smaller keys
        Json object = json_of_line(stream, line, text);
        auto turns = first_turns(stream, line, object);
        if (!turns) continue;
        const double prompt = estimated_tokens(turns->first) * scale;
        const double answer = dataset.output_tokens ? double(*dataset.output_tokens)
                                                    : estimated_tokens(turns->second) * scale;
        if (prompt < least || prompt > most_prompt || prompt + answer > most_total ||
            (!dataset.output_tokens && answer < least))
            continue;
        sample.add(key, {std::move(turns->first), prompt, std::llround(answer)});
        check_kept(stream, line, sample.bytes());
    }
    (void)stream.next();
    if (skip_blanks(stream) >= 0)
        stream.fail(stream.line_number(), "nothing wanted after the array");
    result.prompts = sample.sorted();
    result.kept = result.prompts.size();
    if (result.kept == 0)
        throw ParseError(file + ": none of its " + std::to_string(result.read) +
                         " conversations has two turns of fitting lengths: at least " +
                         std::to_string(std::llround(least)) +
                         " tokens each, a prompt of at most " +
                         std::to_string(std::llround(most_prompt)) + ", together at most " +
                         std::to_string(std::llround(most_total)));
    Rng rng(derive_seed(seed, ~std::uint64_t{0}));
    const std::size_t different = result.prompts.size();
    while (result.prompts.size() < count)
        result.prompts.push_back(FilePrompt(result.prompts[rng.index(different)]));
    return result;
}

FilePrompts read_prompts(const std::string& file, std::size_t most, double scale) {
    TextStream stream(file);
    FilePrompts result;
    std::string text;
    std::size_t bytes = 0;
    for (std::size_t line = stream.line_number();
         result.prompts.size() < most && stream.line(text, most_conversation_bytes);
         line = stream.line_number()) {
        if (text.find_first_not_of(" \t") == std::string::npos) continue;
        const Json object = json_of_line(stream, line, text);
        FilePrompt prompt;
        prompt.text = prompt_text(stream, line, object);
        if (prompt.text.empty()) stream.fail(line, "a prompt that is not empty wanted");
        if (const auto tokens = object.find("output_tokens"); tokens != object.end()) {
            if (!tokens->is_number_integer() || *tokens < 1 || *tokens > most_length_tokens)
                stream.fail(line, "'output_tokens': an integer in [1, " +
                                      std::to_string(most_length_tokens) + "] wanted, got " +
                                      tokens->dump());
            prompt.output_tokens = tokens->get<std::int64_t>();
        }
        prompt.tokens = estimated_tokens(prompt.text) * scale;
        check_kept(stream, line, bytes += prompt.text.size());
        result.prompts.push_back(std::move(prompt));
    }
    if (result.prompts.empty())
        throw ParseError(file + ": at least one prompt wanted, the file has none");
    result.read = result.kept = result.prompts.size();
    return result;
}

}  // namespace servetune
