// SPDX-License-Identifier: Apache-2.0
// Any bytes as the answer to a request, cut where the bytes say: the same however it is cut, and a
// success only with all it needs.
#include "fuzz/target.hpp"
#include "load/answer_reader.hpp"

#include <algorithm>

using namespace servetune;
using namespace servetune::fuzz;

namespace {

RequestRecord read(std::string_view text, std::size_t piece, int status, const char* type,
                   bool stream) {
    RequestRecord record;
    simdjson::dom::parser parser;
    AnswerReader reader(record, 8, {.stream = stream, .exact_length = true, .keep_text = true},
                        parser);
    reader.begin(status, type);
    double now = 0;
    for (std::size_t at = 0; at < text.size(); at += piece)
        if (!reader.feed(text.substr(at, piece), ++now, false)) break;
    reader.end(++now);
    return record;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text = text_of_input(data + 1, size - 1);
    const bool stream = (data[0] & 1) != 0;
    const int status = (data[0] & 2) != 0 ? 500 : 200;
    const char* type = stream ? "text/event-stream" : "application/json";
    const RequestRecord whole = read(text, size, status, type, stream);
    const RequestRecord cut = read(text, 1 + data[0] / 4U, status, type, stream);
    must_hold(whole.end == cut.end && whole.chunks == cut.chunks &&
                  whole.empty_chunks == cut.empty_chunks,
              "cuts change nothing");
    must_hold(whole.output_tokens == cut.output_tokens && whole.finish_reason == cut.finish_reason,
              "cuts change nothing that is counted");
    must_hold(whole.gaps.size() + 1 == std::max<std::size_t>(whole.chunks, 1),
              "a gap between any two chunks");
    must_hold(!whole.succeeded() ||
                  (status == 200 && whole.output_tokens == 8 && !whole.finish_reason.empty()),
              "a success has what it needs");
    must_hold(whole.succeeded() || !whole.error.empty(), "a failure has a reason");
    return 0;
}
