// SPDX-License-Identifier: Apache-2.0
#include "live_page.hpp"

#include "observers.hpp"
#include "output.hpp"
#include "study_journal.hpp"

#include "base/text.hpp"
#include "report/report_view.hpp"
#include "servetune/error.hpp"
#include "servetune/recommendation.hpp"
#include "servetune/report.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/clocks.hpp"
#include "study/verdict.hpp"
#include "trial/metric_text.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>

namespace autotune {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t most_connections = 64;
constexpr std::uint32_t most_head_bytes = 8192;
constexpr std::chrono::seconds request_time{10}, answer_time{30};

/// When the journal's files were last written: cheap to look at, and different after every event.
using JournalStamp = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

JournalStamp stamp_of(const fs::path& folder) {
    const std::string file = SqliteJournal::file_of(folder).string();
    struct stat of_file {};
    struct stat of_log {};
    constexpr std::int64_t a_second = 1'000'000'000;
    const auto time = [](const struct stat& one) {
        return one.st_mtim.tv_sec * a_second + one.st_mtim.tv_nsec;
    };
    if (stat(file.c_str(), &of_file) != 0) of_file = {};
    if (stat((file + "-wal").c_str(), &of_log) != 0) of_log = {};
    return {time(of_file), of_file.st_size, time(of_log), of_log.st_size};
}

std::string best_text(const Problem& problem, const std::vector<Trial>& trials) {
    const std::vector<Trial> search = search_history(problem, trials);
    const Standings standings = problem.standings(search);
    const BestSoFar so_far = best_so_far(problem, standings);
    if (so_far.best == nullptr) return "";
    const std::string text =
        "best " + figure_text(problem.objective.leading().metric, so_far.best->estimate().mean);
    if (!so_far.gain) return text;
    return fmt::format(
        "{}, {} over the default ({})", text, gain_text(so_far.gain->value, so_far.gain->scale),
        so_far.gain->has_interval() ? with_interval(*so_far.gain) : "not confirmed yet");
}

/// The host of a request, without its port.
bool names_this_machine(std::string host) {
    host = lower_case(host.substr(0, host.find(':', host.starts_with('[') ? host.find(']') : 0)));
    return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

void keep_to_this_program(int descriptor) { (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

}  // namespace

/// All but `phase` and `ended` is of the thread that answers.
struct LivePage::Server {
    Server(std::shared_ptr<const StudySetup> of, fs::path at, const Budget& until,
           std::uint16_t port, std::function<bool()> measures);
    ~Server() { context.stop(); }

    void accept();
    /// The whole answer, head and body.
    std::string answer(const http::request<http::empty_body>& request);
    std::string page();
    std::string state();
    void refresh();
    /// Changes with everything that the page shows, and with each start of a server.
    [[nodiscard]] std::string version() const {
        return fmt::format("{:.3f}-{}-{}{}", began_at, journal_version, measured ? 1 : 0,
                           over ? 1 : 0);
    }

    std::shared_ptr<const StudySetup> setup;
    fs::path folder;
    Budget budget;
    std::function<bool()> running;
    double began = steady_seconds(), began_at = unix_seconds();

    JournalStamp stamp{};
    std::vector<Trial> trials{};
    std::size_t journal_version = 0;
    bool measured = false;       ///< somebody runs the study
    bool over = false;           ///< `end` is known, and what was written before it is read
    std::string_view stopped{};  ///< why the study has ended, of one that nobody runs
    std::string best{}, made{}, made_version{};

    std::mutex mutex{};  ///< of what follows
    std::condition_variable shown{};
    std::string doing{}, end{};
    std::string_view end_reason{};
    double doing_since = 0, asked_at = 0;
    bool end_is_shown = false;

    std::size_t connections = 0;
    asio::io_context context{1};
    tcp::acceptor acceptor{context};
    std::jthread thread{};  // last: ends before what it uses
};

/// One request of one client.
class LivePage::Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(tcp::socket socket, Server& server) : stream_(std::move(socket)), server_(server) {
        ++server_.connections;
        parser_.header_limit(most_head_bytes);
    }
    ~Connection() { --server_.connections; }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void start() {
        stream_.expires_after(request_time);
        http::async_read_header(stream_, buffer_, parser_,
                                [self = shared_from_this()](const error_code& error, std::size_t) {
                                    if (!error) self->answer();
                                });
    }

private:
    void answer() {
        answer_ = server_.answer(parser_.get());
        stream_.expires_after(answer_time);
        asio::async_write(stream_, asio::buffer(answer_),
                          [self = shared_from_this()](error_code error, std::size_t) {
                              self->stream_.socket().shutdown(tcp::socket::shutdown_send, error);
                          });
    }

    beast::tcp_stream stream_;
    Server& server_;
    beast::flat_buffer buffer_{2 * most_head_bytes};
    http::request_parser<http::empty_body> parser_{};
    std::string answer_{};
};

LivePage::Server::Server(std::shared_ptr<const StudySetup> of, fs::path at, const Budget& until,
                         std::uint16_t port, std::function<bool()> measures)
    : setup(std::move(of)), folder(std::move(at)), budget(until), running(std::move(measures)) {
    const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
    error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error) keep_to_this_program(acceptor.native_handle());
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error)
        throw IoError(
            fmt::format("cannot serve a page on 127.0.0.1:{}: {}", port,
                        error == asio::error::address_in_use
                            ? "the port is taken; choose another, or port 0 for any that is free"
                            : error.message()));
    accept();
    thread = std::jthread([this] {
        constexpr int lower = 10;  // the load generator goes first
        (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), lower);
        while (!context.stopped()) try {
                context.run();
                // NOLINTNEXTLINE(bugprone-empty-catch): no memory for one client; the others stay
            } catch (const std::exception&) {
            }
    });
}

void LivePage::Server::accept() {
    acceptor.async_accept([this](const error_code& error, tcp::socket socket) {
        if (error) std::this_thread::sleep_for(std::chrono::milliseconds(50));  // no descriptors
        else if (connections < most_connections) {
            keep_to_this_program(socket.native_handle());
            std::make_shared<Connection>(std::move(socket), *this)->start();
        }
        accept();
    });
}

std::string LivePage::Server::answer(const http::request<http::empty_body>& request) {
    http::status status = http::status::ok;
    std::string type = "text/plain; charset=utf-8", body;
    const std::string path(request.target().substr(0, request.target().find('?')));
    const auto refuse = [&](http::status with, const std::string& why) {
        status = with;
        body = why + "\n";
    };
    if (request.method() != http::verb::get)
        refuse(http::status::method_not_allowed, "this page can only be read: GET");
    else if (request.count(http::field::host) != 1 ||
             !names_this_machine(std::string(request[http::field::host])))
        refuse(http::status::misdirected_request,
               "this page is for this machine: ask for it as 127.0.0.1 or localhost");
    else try {
            if (path == "/") {
                body = page();
                type = "text/html; charset=utf-8";
            } else if (path == "/state") {
                body = state();
                type = "application/json";
            } else refuse(http::status::not_found, "there are / and /state");
        } catch (const std::exception& error) {  // no reason to lose a study
            refuse(http::status::internal_server_error,
                   "this page cannot be made: " + printable_line(secrets()(error.what())));
        }
    return fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
        "Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\r\n{}",
        static_cast<int>(status), std::string(http::obsolete_reason(status)), type, body.size(),
        body);
}

void LivePage::Server::refresh() {
    const bool was_measured = std::exchange(measured, running()), was_over = over;
    {
        const std::scoped_lock lock(mutex);
        over = !end.empty();
    }
    const JournalStamp now = stamp_of(folder);
    // Two events within a tick of the clock have one stamp: the last is read at the end.
    if (now == stamp && journal_version > 0 && measured == was_measured && over == was_over) return;
    try {
        trials =
            std::get<1>(now) == 0 ? std::vector<Trial>{} : SqliteJournal::read(folder).trials();
    } catch (const IoError&) {
        // Being made or moved at this moment; what was read last stays.
        if (journal_version > 0) return void(stamp = {});  // it is read again
    }
    stamp = now;
    ++journal_version;
    best = best_text(*setup->problem, trials);
    stopped = measured ? "" : ended_because(*setup, trials, folder);
}

std::string LivePage::Server::page() {
    refresh();
    if (const std::string now = version(); made_version != now) {
        // Fitting the models takes seconds of a core, which a running load test would miss.
        made = html_report(*setup, trials, over ? end_reason : stopped, !measured, now);
        made_version = now;
    }
    const std::scoped_lock lock(mutex);
    end_is_shown = over;
    shown.notify_all();
    return made;
}

std::string LivePage::Server::state() {
    refresh();
    const std::scoped_lock lock(mutex);
    asked_at = steady_seconds();
    std::size_t told = 0, failed = 0;
    std::vector<const Trial*> pending;
    for (const Trial& trial : trials) {
        told += trial.told() ? 1 : 0;
        failed += trial.failure() != nullptr ? 1 : 0;
        if (!trial.told() && trial.started_at) pending.push_back(&trial);
    }
    OrderedJson result{{"version", version()}, {"told", told},
                       {"failed", failed},     {"best", best},
                       {"running", measured},  {"trial", ""},
                       {"left", nullptr},      {"ended", over ? std::string_view(end) : stopped}};
    if (measured) {
        Spent spent = spent_in(*setup, budget, trials);
        spent.run_seconds = steady_seconds() - began;
        spent.at_once = std::max<std::size_t>(1, pending.size());
        const double left = seconds_left(budget, spent, unix_seconds());
        if (std::isfinite(left)) result["left"] = left;
        if (!pending.empty()) {
            const Trial& trial = *pending.back();
            result["trial"] = fmt::format("trial {}", trial.id);
            result["tried"] = tried_text(*setup->problem, trial);
            result["began"] = *trial.started_at;
            if (doing_since >= *trial.started_at && pending.size() == 1) result["phase"] = doing;
        }
    }
    return shown_json(std::move(result));
}

LivePage::LivePage(std::shared_ptr<const StudySetup> setup, fs::path folder, const Budget& budget,
                   std::uint16_t port, std::function<bool()> running)
    : server_(std::make_unique<Server>(std::move(setup), std::move(folder), budget, port,
                                       std::move(running))) {}

LivePage::~LivePage() = default;

void LivePage::phase(const std::string& what) {
    const std::scoped_lock lock(server_->mutex);
    server_->doing = what;
    server_->doing_since = unix_seconds();
}

void LivePage::ended(std::string_view reason, const std::string& how) {
    constexpr double looks_within_seconds = 3;
    constexpr std::chrono::seconds patience{3};
    std::unique_lock lock(server_->mutex);
    server_->end = how;
    server_->end_reason = reason;
    if (steady_seconds() - server_->asked_at > looks_within_seconds) return;
    if (!server_->shown.wait_for(lock, patience, [this] { return server_->end_is_shown; })) return;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the answer is on its way
}

std::string LivePage::url() const {
    return fmt::format("http://127.0.0.1:{}/", server_->acceptor.local_endpoint().port());
}

}  // namespace autotune
