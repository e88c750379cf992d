// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace servetune::test {

/// How the test server answers one request: its timing and its vices. Written as words,
/// `crlf,no_usage,first=0.2,reset=3`; a word's number may be left out where `behaviour_words` has
/// one. Absent: not so.
struct Behaviour {
    std::optional<double> first{}, gap{}, tokens{}, chunk_tokens{};
    std::optional<double> share{}, cold{}, cold_times{};

    std::optional<double> reasoning{}, reasoning_content{}, tool_calls{}, thinking{};
    std::optional<double> function_call{}, audio{}, parts{}, unread{}, hidden{}, abort{};
    std::optional<double> no_role{}, role_early{}, empty_chunks{}, utf8{}, big{};
    std::optional<double> no_usage{}, usage_in_finish{}, continuous_usage{}, cached{};
    std::optional<double> finish_apart{}, finish_stop{}, no_finish{}, fewer{}, no_done{},
        plain_words{};

    std::optional<double> crlf{}, cr{}, no_space{}, spaced_json{}, multiline{}, fields{}, ping{};

    std::optional<double> http_chunks{}, split{}, slow_headers{};
    std::optional<double> content_length{}, until_close{}, connection_close{};

    std::optional<double> status{}, redirect{}, loading{}, html{}, not_sse{}, garbage{}, silent{};
    std::optional<double> no_ignore_eos{}, no_stream_options{}, no_max_tokens{}, vague{},
        models_status{};
    std::optional<double> reset{}, close{}, stall{}, truncated{}, error_event{}, endless{};
};

struct BehaviourWord {
    std::string_view name;
    std::optional<double> Behaviour::*field;
    std::optional<double>
        alone;  ///< the number it has when none is written; nothing: a number is wanted
    std::string_view meaning;
};

/// What the timing words are where none is written.
inline constexpr double first_default = 0.005;
inline constexpr double gap_default = 0.001;
inline constexpr double cold_default = 1.6;

/// After how many token chunks an answer breaks off when the word has no number.
inline constexpr double half_of_them = -1;

inline constexpr std::array<BehaviourWord, 63> behaviour_words{{
    // Timing and length.
    {"first", &Behaviour::first, {}, "seconds from the request to the first token"},
    {"gap", &Behaviour::gap, {}, "seconds between token chunks"},
    {"tokens", &Behaviour::tokens, {}, "tokens of the answer, whatever was asked for"},
    {"chunk_tokens", &Behaviour::chunk_tokens, {}, "tokens in each chunk"},
    {"share",
     &Behaviour::share,
     {},
     "only this share of the requests, evenly spread, has the other words; the rest is served "
     "well"},
    {"cold",
     &Behaviour::cold,
     {},
     "the server's first N answers are slower (of the server, not of one request)"},
    {"cold_times", &Behaviour::cold_times, 1.6, "so many times slower (1.6)"},
    // What the events hold.
    {"reasoning", &Behaviour::reasoning, 1, "token text is in delta.reasoning"},
    {"reasoning_content", &Behaviour::reasoning_content, 1,
     "token text is in delta.reasoning_content"},
    {"tool_calls", &Behaviour::tool_calls, 1, "token text is in the arguments of a tool call"},
    {"function_call", &Behaviour::function_call, 1,
     "token text is in the arguments of delta.function_call"},
    {"audio", &Behaviour::audio, 1, "token text is in delta.audio.transcript"},
    {"parts", &Behaviour::parts, 1, "token text is in a list of parts, delta.content[0].text"},
    {"unread", &Behaviour::unread, 1, "token text is in delta.thoughts, which no interface has"},
    {"hidden", &Behaviour::hidden, half_of_them,
     "the first N tokens are counted as reasoning and not sent"},
    {"thinking", &Behaviour::thinking, half_of_them,
     "only the first N chunks are reasoning (with reasoning, reasoning_content or unread), then "
     "content"},
    {"no_role", &Behaviour::no_role, 1, "no chunk with the role first (chat)"},
    {"role_early", &Behaviour::role_early, 1,
     "the chunk with the role comes at once, not with the first token"},
    {"empty_chunks", &Behaviour::empty_chunks, 1, "before each token N chunks with empty text"},
    {"utf8", &Behaviour::utf8, 1, "token text has characters of 2, 3 and 4 bytes"},
    {"plain_words", &Behaviour::plain_words, 1, "token text is a word, without the time in it"},
    {"big", &Behaviour::big, 10e6, "the first token's text has N bytes"},
    {"no_usage", &Behaviour::no_usage, 1, "no token counts, asked for or not"},
    {"usage_in_finish", &Behaviour::usage_in_finish, 1,
     "token counts in the event with the finish reason (llama.cpp)"},
    {"continuous_usage", &Behaviour::continuous_usage, 1, "token counts in every event"},
    {"cached", &Behaviour::cached, {}, "prompt tokens that usage says came from the prefix cache"},
    {"finish_apart", &Behaviour::finish_apart, 1,
     "the finish reason has an event of its own, after the last token (SGLang)"},
    {"finish_stop", &Behaviour::finish_stop, 1, "the finish reason is 'stop'"},
    {"no_finish", &Behaviour::no_finish, 1, "no finish reason"},
    {"fewer", &Behaviour::fewer, half_of_them,
     "N tokens fewer than asked for, finish reason 'stop'"},
    {"abort", &Behaviour::abort, half_of_them,
     "the answer ends after N tokens, finish reason 'abort'"},
    {"no_done", &Behaviour::no_done, 1, "no data: [DONE]"},
    // How events are written.
    {"crlf", &Behaviour::crlf, 1, "lines of the stream end in CR LF"},
    {"cr", &Behaviour::cr, 1, "lines of the stream end in CR"},
    {"no_space", &Behaviour::no_space, 1, "no space after data:"},
    {"spaced_json", &Behaviour::spaced_json, 1,
     "JSON with spaces after colons and commas, as json.dumps writes it"},
    {"multiline", &Behaviour::multiline, 1, "each event is cut into two data: lines"},
    {"fields", &Behaviour::fields, 1, "event: and id: lines around data:"},
    {"ping", &Behaviour::ping, 1, "a comment before each event"},
    // How bytes are sent.
    {"http_chunks", &Behaviour::http_chunks, 7, "HTTP chunks of N bytes, whatever the events"},
    {"split", &Behaviour::split, 1, "the answer is written N bytes at a time"},
    {"slow_headers", &Behaviour::slow_headers, 0.001,
     "the head is written a byte at a time, this many seconds apart"},
    {"content_length", &Behaviour::content_length, 1,
     "the stream comes whole, with a Content-Length, when its last token is due"},
    {"until_close", &Behaviour::until_close, 1,
     "neither length nor chunks: the answer ends with the connection"},
    {"connection_close", &Behaviour::connection_close, 1,
     "the connection is closed after the answer, and the head says so"},
    // Answers that are none.
    {"status", &Behaviour::status, 500, "an HTTP error"},
    {"redirect", &Behaviour::redirect, 1, "302 to /elsewhere of this server"},
    {"loading", &Behaviour::loading, 1,
     "503 to everything in the server's first N seconds (of the server, not of one request)"},
    {"html", &Behaviour::html, 1, "200 with a page of HTML"},
    {"not_sse", &Behaviour::not_sse, 1, "200 text/event-stream with lines that are no events"},
    {"garbage", &Behaviour::garbage, 1, "bytes that are not HTTP, then the end of the connection"},
    {"silent", &Behaviour::silent, 1, "no byte, for ever"},
    {"no_ignore_eos", &Behaviour::no_ignore_eos, 422,
     "requests with ignore_eos are refused with this status"},
    {"no_stream_options", &Behaviour::no_stream_options, 400,
     "requests with stream_options are refused with this status"},
    {"no_max_tokens", &Behaviour::no_max_tokens, 400,
     "requests with max_tokens are refused with this status"},
    {"vague", &Behaviour::vague, 1, "these refusals do not say which field they mean"},
    {"models_status", &Behaviour::models_status, 404,
     "the list of models is answered with this status (of the server, not of one request)"},
    // Answers that break off, or do not end.
    {"reset", &Behaviour::reset, half_of_them, "after N token chunks the connection is reset"},
    {"close", &Behaviour::close, half_of_them, "after N token chunks the connection ends"},
    {"stall", &Behaviour::stall, half_of_them, "after N token chunks nothing comes any more"},
    {"truncated", &Behaviour::truncated, half_of_them,
     "after N token chunks half an event, then the connection ends"},
    {"error_event", &Behaviour::error_event, half_of_them,
     "after N token chunks an event with an error, then [DONE]"},
    {"endless", &Behaviour::endless, 0.01,
     "after [DONE] comments follow, this many seconds apart, for ever"},
}};

/// Throws std::invalid_argument for an unknown word (and lists the known ones), a missing or a
/// negative number.
Behaviour parse_behaviour(std::string_view words);

/// `over`'s words where it has them, else `under`'s.
Behaviour merged(const Behaviour& under, const Behaviour& over);

/// One line for each word.
std::string describe_behaviour_words();

}  // namespace servetune::test
