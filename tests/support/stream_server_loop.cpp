// SPDX-License-Identifier: Apache-2.0
// The stream server's loop: what is due, what has come, and the bytes of each connection.
#include "support/stream_server_loop.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace servetune::test {

// ---- the loop ----

StreamServer::Loop::Loop(Shared& shared, std::size_t index)
    : shared_(shared), index_(index), input_(65536) {
    const int on = 1;
    setsockopt(listener_.id(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    fcntl(listener_.id(), F_SETFL, O_NONBLOCK);
    if (shared_.options.threads > 1)
        setsockopt(listener_.id(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    sockaddr_in address = loopback(shared_.port != 0 ? shared_.port : shared_.options.port);
    socklen_t size = sizeof address;
    if (bind(listener_.id(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        getsockname(listener_.id(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        (shared_.options.listening && listen(listener_.id(), 8192) != 0))
        throw std::runtime_error("stream server: cannot listen on port " +
                                 std::to_string(shared_.options.port) + ": " +
                                 std::strerror(errno));
    shared_.port = ntohs(address.sin_port);
    if (shared_.options.listening) watch(listener_.id(), listener_tag, EPOLLIN);
    watch(timer_.id(), timer_tag, EPOLLIN);
    watch(stop_.id(), stop_tag, EPOLLIN);
}

void StreamServer::Loop::watch(int id, std::uint64_t tag, std::uint32_t events,
                               int operation) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag;
    epoll_ctl(epoll_.id(), operation, id, &event);
}

void StreamServer::Loop::stop() {
    const std::uint64_t one = 1;
    if (thread_.joinable() && ::write(stop_.id(), &one, sizeof one) == sizeof one) thread_.join();
    for (const auto& connection : connections_)
        if (connection->id >= 0) close_connection(*connection);
}

void StreamServer::Loop::run() {
    if (shared_.options.core >= 0) {
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET(static_cast<std::size_t>(shared_.options.core) + index_, &cores);
        sched_setaffinity(0, sizeof cores, &cores);
    }
    std::array<epoll_event, 512> events{};
    for (;;) {
        const bool busy = !ready_.empty() || (!due_.empty() && due_.top().at <= now_ns());
        if (!busy) arm();
        const int count =
            epoll_wait(epoll_.id(), events.data(), static_cast<int>(events.size()), busy ? 0 : -1);
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            const std::uint64_t tag = event.data.u64;
            if (tag == stop_tag) return;
            if (tag == listener_tag) accept_all();
            if (tag >= stop_tag) continue;
            Connection& connection = *connections_[tag >> 32U];
            const auto same = [&] {
                return connection.id >= 0 &&
                       connection.generation == static_cast<std::uint32_t>(tag);
            };
            if (same() && (event.events & EPOLLOUT) != 0) flush(connection);
            if (same() && (event.events & ~std::uint32_t{EPOLLOUT}) != 0) read(connection);
        }
        send_what_is_due();
        look_at_input();
    }
}

/// Few at a time: of many requests that come at once, the last is stamped when it comes and not
/// when the others have been answered.
void StreamServer::Loop::look_at_input() {
    for (int i = 0; i < 16 && !ready_.empty(); ++i) {
        const auto [slot, generation] = ready_.front();
        ready_.pop_front();
        Connection& connection = *connections_[slot];
        if (connection.id < 0 || connection.generation != generation) continue;
        connection.ready = false;
        process_input(connection);
    }
}

void StreamServer::Loop::arm() {
    const std::int64_t next = due_.empty() ? 0 : due_.top().at;
    if (next == armed_at_ && next == 0) return;
    itimerspec when{};
    when.it_value = {next / second_ns, next % second_ns};
    timerfd_settime(timer_.id(), TFD_TIMER_ABSTIME, &when, nullptr);
    armed_at_ = next;
}

void StreamServer::Loop::send_what_is_due() {
    const std::int64_t until = now_ns();
    for (int sends = 0; sends < most_sends_in_a_row && !due_.empty() && due_.top().at <= until;
         ++sends) {
        const Due due = due_.top();
        due_.pop();
        Connection& connection = *connections_[due.slot];
        if (due.pause && connection.id >= 0 && connection.generation == due.serial) {
            connection.pausing = false;
            flush(connection);
        } else if (!due.pause && connection.answer && connection.answer->serial == due.serial)
            step(connection, due.at);
    }
}

void StreamServer::Loop::accept_all() {
    for (int id = 0;
         (id = accept4(listener_.id(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        const int on = 1;
        setsockopt(id, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (free_slots_.empty()) {
            free_slots_.push_back(static_cast<std::uint32_t>(connections_.size()));
            connections_.push_back(std::make_unique<Connection>());
            connections_.back()->slot = free_slots_.back();
        }
        Connection& connection = *connections_[free_slots_.back()];
        free_slots_.pop_back();
        const std::uint32_t slot = connection.slot, generation = connection.generation + 1;
        connection = Connection{};
        connection.id = id, connection.slot = slot, connection.generation = generation;
        ++shared_.connections;
        watch(id, std::uint64_t{slot} << 32U | generation, EPOLLIN);
    }
}

void StreamServer::Loop::close_connection(Connection& connection) {
    if (connection.answer)
        end_answer(connection, shared_.stopping ? "unfinished" : "abandoned", 200);
    if (connection.after_out == Connection::After::reset) {
        const linger at_once{1, 0};
        setsockopt(connection.id, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    close(connection.id);
    connection.id = -1;
    connection.in = {}, connection.out = {};
    free_slots_.push_back(connection.slot);
}

// ---- bytes ----

void StreamServer::Loop::read(Connection& connection) {
    for (;;) {
        const ssize_t got = recv(connection.id, input_.data(), input_.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (got <= 0) return close_connection(connection);
        connection.in.append(input_.data(), static_cast<std::size_t>(got));
        connection.received_ns = now_ns();
        if (!std::exchange(connection.ready, true))
            ready_.emplace_back(connection.slot, connection.generation);
        if (static_cast<std::size_t>(got) < input_.size()) return;
    }
}

void StreamServer::Loop::write(Connection& connection, std::string_view bytes) {
    if (connection.out.empty() && connection.slow_left == 0) {
        const ssize_t sent = send(connection.id, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            return close_connection(connection);
        if (sent == static_cast<ssize_t>(bytes.size())) {
            if (connection.after_out != Connection::After::keep) close_connection(connection);
            return;
        }
        bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(0, sent)));
    }
    connection.out += bytes;
    flush(connection);
}

void StreamServer::Loop::flush(Connection& connection) {
    if (connection.pausing) return;
    bool wait = false;
    while (connection.out_at < connection.out.size() && !wait) {
        std::size_t size = connection.out.size() - connection.out_at;
        const bool slow = connection.slow_left > 0;
        if (slow) size = std::min(size, connection.slow_bytes);
        const ssize_t sent =
            send(connection.id, connection.out.data() + connection.out_at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            return close_connection(connection);
        wait = sent < 0 || slow;
        if (sent < 0) continue;
        connection.out_at += static_cast<std::size_t>(sent);
        if (!slow) continue;
        connection.slow_left -= std::min(connection.slow_left, static_cast<std::size_t>(sent));
        if (connection.slow_pause_ns > 0 && connection.out_at < connection.out.size()) {
            connection.pausing = true;
            due_.push({now_ns() + connection.slow_pause_ns, connection.slot, true,
                       connection.generation});
        }
    }
    const bool rest = connection.out_at < connection.out.size();
    if (!rest) {
        connection.out.clear();
        connection.out_at = 0;
        if (connection.after_out != Connection::After::keep) return close_connection(connection);
    }
    const bool wants_out = rest && !connection.pausing;
    if (wants_out != connection.wants_out) {
        connection.wants_out = wants_out;
        watch(connection.id, std::uint64_t{connection.slot} << 32U | connection.generation,
              wants_out ? EPOLLIN | std::uint32_t{EPOLLOUT} : std::uint32_t{EPOLLIN},
              EPOLL_CTL_MOD);
    }
}

}  // namespace servetune::test
