// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/ranges.hpp"
#include "support/http.hpp"

#include <netinet/tcp.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace servetune::test {

/// Given bytes, and what comes behind them. `leave`: goes when the next request comes.
struct Canned {
    std::string bytes{};
    enum class Then { keep, leave, close, reset, wait, repeat } then = Then::keep;
    std::size_t piece = 1U << 20U;  ///< bytes of one write, each a moment after the one before
    std::string repeated{};         ///< each millisecond, until the client leaves
};

/// An HTTP answer of this status.
inline Canned answer(int status, const std::string& body, const std::string& headers = "") {
    return {"HTTP/1.1 " + std::to_string(status) + " X\r\n" + headers +
            "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body};
}

/// The address of a port where nobody listens.
inline std::string nobody_listens() { return "http://127.0.0.1:" + std::to_string(free_port()); }

/// A server that gives the same bytes to every request, or by its path (else 404).
class CannedServer {
public:
    using Page = std::pair<int, std::string>;  ///< status and body
    using Pages = std::map<std::string, Page>;

    explicit CannedServer(Canned canned) : CannedServer(Pages(), std::move(canned)) {}
    explicit CannedServer(Pages pages) : CannedServer(std::move(pages), answer(404, "{}")) {}
    ~CannedServer() {
        stopping_ = true;
        threads_.front().join();
        for (std::size_t i = 1; i < threads_.size(); ++i) threads_[i].join();
    }
    CannedServer(const CannedServer&) = delete;
    CannedServer& operator=(const CannedServer&) = delete;
    [[nodiscard]] int port() const { return port_; }
    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    /// Heads and bodies, as they came.
    [[nodiscard]] std::vector<std::string> requests() {
        const std::lock_guard lock(mutex_);
        return requests_;
    }

private:
    CannedServer(Pages pages, Canned other) : pages_(std::move(pages)), other_(std::move(other)) {
        sockaddr_in address = loopback(0);
        socklen_t size = sizeof address;
        bind(listener_.id(), reinterpret_cast<sockaddr*>(&address), size);
        getsockname(listener_.id(), reinterpret_cast<sockaddr*>(&address), &size);
        listen(listener_.id(), 64);
        port_ = ntohs(address.sin_port);
        threads_.emplace_back([this] { accept_all(); });
    }
    [[nodiscard]] bool readable(int id) const {
        pollfd one{id, POLLIN, 0};
        while (!stopping_)
            if (poll(&one, 1, 10) > 0) return true;
        return false;
    }
    void accept_all() {
        while (readable(listener_.id())) {
            const int id = accept4(listener_.id(), nullptr, nullptr, SOCK_CLOEXEC);
            if (id < 0) continue;
            const int on = 1;
            setsockopt(id, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            threads_.emplace_back([this, id] { serve(id); });
        }
    }
    void serve(int id) {
        std::string in, path;
        Canned canned;
        do {
            if (!(in.empty() ? readable(id) : true) || canned.then == Canned::Then::leave ||
                !read_request(id, in, path))
                break;
            const auto* page = entry_in(pages_, path);
            canned = page == nullptr ? other_ : answer(page->first, page->second);
        } while (write_answer(id, canned));
        if (canned.then == Canned::Then::reset) {
            const linger at_once{1, 0};
            setsockopt(id, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        }
        close(id);
    }
    bool read_request(int id, std::string& in, std::string& path) {
        std::string buffer(65536, '\0');
        for (;;) {
            const auto head = in.find("\r\n\r\n");
            const auto length = in.find("Content-Length: ");
            const std::size_t end =
                head == std::string::npos
                    ? head
                    : head + 4 + (length < head ? std::strtoull(&in[length + 16], nullptr, 10) : 0);
            if (in.size() >= end) {
                const std::lock_guard lock(mutex_);
                requests_.push_back(in.substr(0, end));
                const std::size_t at = in.find(' ') + 1;
                path = in.substr(at, in.find(' ', at) - at);
                in.erase(0, end);
                return true;
            }
            const ssize_t got = recv(id, buffer.data(), buffer.size(), 0);
            if (got <= 0) return false;
            in.append(buffer, 0, std::size_t(got));
        }
    }
    bool write_answer(int id, const Canned& canned) {
        const auto write = [&](const std::string& text) {
            return send(id, text.data(), text.size(), MSG_NOSIGNAL) ==
                   static_cast<ssize_t>(text.size());
        };
        for (std::size_t at = 0; at < canned.bytes.size(); at += canned.piece) {
            if (!write(canned.bytes.substr(at, canned.piece))) return false;
            if (canned.piece < canned.bytes.size())
                std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
        if (canned.then == Canned::Then::wait) (void)readable(id);
        while (canned.then == Canned::Then::repeat && !stopping_ && write(canned.repeated))
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return canned.then == Canned::Then::keep || canned.then == Canned::Then::leave;
    }

    const Pages pages_;
    const Canned other_;
    Socket listener_;
    int port_ = 0;
    std::atomic<bool> stopping_{false};
    std::mutex mutex_;
    std::vector<std::string> requests_{};
    std::vector<std::thread> threads_{};  ///< the first accepts; it alone adds the others
};

}  // namespace servetune::test
