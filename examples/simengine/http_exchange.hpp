// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace simengine {

struct HttpRequest {
    std::string method;
    std::string path;  ///< without what follows a question mark
    std::string query{};
    std::string body{};
    std::string authorization{};
};

/// The way back to one client, for one request: one whole answer, or a stream. Valid until it has
/// been answered or is gone.
class Exchange {
public:
    virtual void answer(int status, std::string_view content_type, std::string_view body) = 0;
    /// Of a stream of events: its head, then what an AnswerWriter made, then the end.
    virtual void begin_stream() = 0;
    virtual void write(std::string_view bytes) = 0;
    virtual void end_stream() = 0;
    /// Closes the connection in the middle of an answer.
    virtual void break_off() = 0;
    /// Names the work that goes on for it, so that whoever does it can be told when the client
    /// leaves.
    virtual void set_work(std::size_t id) = 0;

protected:
    ~Exchange() = default;
};

}  // namespace simengine
