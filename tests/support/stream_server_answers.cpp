// SPDX-License-Identifier: Apache-2.0
// The stream server's answers: when each token is due, and how an answer ends or breaks off.
#include "support/stream_server_loop.hpp"

#include "support/answers.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace servetune::test {

namespace {

using Pace = StreamServerOptions::Pace;

}  // namespace

void StreamServer::Loop::schedule_first(Connection& connection) {
    Answer& answer = *connection.answer;
    const Behaviour& behaviour = answer.request.behaviour;
    std::int64_t due = answer.truth.received_ns + in_ns(behaviour.first.value_or(first_default));
    if (shared_.options.pace == Pace::staggered) {
        // Multiples of the golden ratio spread evenly, however many there are.
        const double share = static_cast<double>(answer.request.number) * 0.6180339887498949;
        due += in_ns((share - std::floor(share)) * static_cast<double>(answer.gap_ns) / 1e9);
    } else if (shared_.options.pace == Pace::lockstep && answer.gap_ns > 0) {
        const std::int64_t since = due - shared_.started_ns;
        due = shared_.started_ns + (since + answer.gap_ns - 1) / answer.gap_ns * answer.gap_ns;
    }
    if (!answer.request.stream || behaviour.content_length)
        due += (answer.chunks - 1) * answer.gap_ns;
    due_.push({due, connection.slot, false, answer.serial});
}

void StreamServer::Loop::step(Connection& connection, std::int64_t due) {
    Answer& answer = *connection.answer;
    if (answer.endless) {
        bytes_.clear();
        answer.writer.comment(bytes_);
        due_.push({now_ns() + in_ns(*answer.request.behaviour.endless), connection.slot, false,
                   answer.serial});
        return write(connection, bytes_);
    }
    if (answer.breaks != nullptr && answer.chunks_sent >= answer.break_at)
        return break_off(connection);
    bytes_.clear();
    const std::int64_t now = now_ns();
    shared_.lateness.add(now - due);
    const Behaviour& behaviour = answer.request.behaviour;
    const bool whole = !answer.request.stream || behaviour.content_length;
    if (whole && answer.breaks != nullptr) return break_off(connection);
    if (!answer.request.stream) {
        answer.writer.whole(bytes_, now);
        answer.tokens_sent = answer.request.tokens;
        answer.truth.chunk_sent_ns.push_back(now);
        shared_.generation_tokens += static_cast<std::uint64_t>(answer.tokens_sent);
        return finish(connection);
    }
    if (!std::exchange(answer.begun, true) && answer.request.chat && !behaviour.no_role &&
        (!behaviour.role_early || whole))
        answer.writer.role(bytes_);
    for (std::int64_t i = 0; i < answer.coalesce && answer.chunks_sent < answer.chunks; ++i) {
        if (answer.breaks != nullptr && answer.chunks_sent >= answer.break_at) break;
        const std::int64_t tokens =
            std::min(answer.chunk_tokens, answer.request.tokens - answer.tokens_sent);
        const std::int64_t stamp = i == 0 ? now : now_ns();
        answer.tokens_sent += tokens;
        ++answer.chunks_sent;
        answer.truth.chunk_sent_ns.push_back(stamp);
        answer.writer.token(bytes_, stamp, tokens, answer.tokens_sent);
        shared_.generation_tokens.fetch_add(static_cast<std::uint64_t>(tokens),
                                            std::memory_order_relaxed);
    }
    if (answer.chunks_sent == answer.chunks && answer.breaks == nullptr) return finish(connection);
    std::int64_t next = due + answer.gap_ns * answer.coalesce;
    if (next < now)
        next = shared_.options.pace == Pace::lockstep && answer.gap_ns > 0
                   ? now + answer.gap_ns - (now - due) % answer.gap_ns
                   : now;
    due_.push({next, connection.slot, false, answer.serial});
    write(connection, bytes_);
}

void StreamServer::Loop::break_off(Connection& connection) {
    Answer& answer = *connection.answer;
    const std::string_view word = answer.breaks->name;
    bytes_.clear();
    const bool stream = answer.request.stream && !answer.request.behaviour.content_length;
    if (stream && !answer.begun && answer.request.chat && !answer.request.behaviour.no_role &&
        !answer.request.behaviour.role_early && word != "reset")
        answer.writer.role(bytes_);
    if (word == "stall") {
        answer.truth.end = word;
        return write(connection, bytes_);  // and nothing is due any more
    }
    if (word == "error_event") {
        if (stream) answer.writer.error(bytes_), answer.writer.close_body(bytes_);
        else
            bytes_ = plain_answer(
                200, "application/json",
                R"({"error":{"message":"the engine died","type":"InternalServerError","code":500}})");
        if (answer.close_after) connection.after_out = Connection::After::close;
    } else {
        if (word == "truncated" && stream) answer.writer.half_event(bytes_);
        else if (word == "truncated")
            bytes_ = plain_answer(200, "application/json", std::string(400, ' ')),
            bytes_.resize(bytes_.size() - 390), bytes_ += R"({"choices":)";
        connection.after_out =
            word == "reset" ? Connection::After::reset : Connection::After::close;
    }
    end_answer(connection, word, 200);
    if (bytes_.empty() && connection.out.empty()) return close_connection(connection);
    write(connection, bytes_);
    if (connection.id < 0) return;
    connection.received_ns = now_ns();
    process_input(connection);
}

void StreamServer::Loop::finish(Connection& connection) {
    Answer& answer = *connection.answer;
    if (answer.request.stream) {
        answer.writer.end(bytes_);
        if (answer.request.behaviour.endless) {
            ++shared_.ended_length;
            answer.endless = true;
            answer.truth.end = "endless";
            due_.push({now_ns() + in_ns(*answer.request.behaviour.endless), connection.slot, false,
                       answer.serial});
            return write(connection, bytes_);
        }
        if (answer.request.behaviour.content_length) {
            std::string head;
            answer.writer.head(head, static_cast<std::int64_t>(bytes_.size()));
            bytes_.insert(0, head);
        }
        answer.writer.close_body(bytes_);
    }
    ++(answer.writer.finish_reason() == "stop" ? shared_.ended_stop : shared_.ended_length);
    if (answer.close_after) connection.after_out = Connection::After::close;
    end_answer(connection, "answered", 200);
    write(connection, bytes_);
    if (connection.id < 0) return;
    connection.received_ns = now_ns();
    process_input(connection);
}

void StreamServer::Loop::end_answer(Connection& connection, std::string_view end, int status) {
    RequestTruth truth = std::move(connection.answer->truth);
    truth.output_tokens = connection.answer->tokens_sent;
    connection.answer.reset();
    if (truth.end.empty()) truth.end = end;
    truth.status = status;
    truth.done_ns = now_ns();
    shared_.keep(std::move(truth));
}

}  // namespace servetune::test
