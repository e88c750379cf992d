// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

namespace servetune {

/// Ends what is said of a damaged journal.
inline constexpr const char* rescue_remedy =
    "; 'autotune status STUDY --rescue' copies what can still be read";

/// An open SQLite file. Every failure is an IoError that names `file`.
class SqliteConnection {
public:
    enum class Access {
        write,          ///< makes the file where there is none
        read,           ///< beside other processes
        read_unchanged  ///< without locks and without files beside it: nobody may write meanwhile
    };

    /// `named`: the file of the messages, where another one is read in its place; `kind`: what it
    /// is.
    SqliteConnection(const std::filesystem::path& file, Access access, std::filesystem::path named,
                     const char* kind = "journal")
        : named_(std::move(named)), kind_(kind), remedy_(kind_ == "journal" ? rescue_remedy : "") {
        const bool writes = access == Access::write;
        const int flags = writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                 : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
        const int code = sqlite3_open_v2((writes ? file.string() : address(file, access)).c_str(),
                                         &handle_, flags, nullptr);
        if (code != SQLITE_OK) {
            const std::string why =
                handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
            sqlite3_close_v2(handle_);
            throw IoError(kind_ + " " + named_.string() + ": " + why);
        }
        sqlite3_busy_handler(handle_, &SqliteConnection::on_busy, this);
        sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, most_bytes);
        patience_ = writes ? longest_wait : std::chrono::seconds(5);
    }
    ~SqliteConnection() { sqlite3_close_v2(handle_); }
    SqliteConnection(const SqliteConnection&) = delete;
    SqliteConnection& operator=(const SqliteConnection&) = delete;

    /// A statement that is finalised with it; `step` is false at the end of the rows.
    class Statement {
    public:
        Statement(SqliteConnection& connection, const char* sql) : connection_(connection) {
            connection.check(sqlite3_prepare_v2(connection.handle_, sql, -1, &statement_, nullptr));
        }
        ~Statement() { sqlite3_finalize(statement_); }
        Statement(const Statement&) = delete;
        Statement& operator=(const Statement&) = delete;

        Statement& bind(const std::string& text) {
            connection_.check(sqlite3_bind_text(statement_, ++bound_, text.data(),
                                                static_cast<int>(text.size()), SQLITE_TRANSIENT));
            return *this;
        }
        Statement& bind(std::uint64_t number) {
            connection_.check(
                sqlite3_bind_int64(statement_, ++bound_, static_cast<sqlite3_int64>(number)));
            return *this;
        }
        Statement& bind(double number) {
            connection_.check(sqlite3_bind_double(statement_, ++bound_, number));
            return *this;
        }
        bool step() {
            const int code = sqlite3_step(statement_);
            if (code != SQLITE_ROW && code != SQLITE_DONE) connection_.check(code);
            return code == SQLITE_ROW;
        }
        [[nodiscard]] std::string text(int column) const {
            const auto* bytes = sqlite3_column_text(statement_, column);
            return bytes == nullptr
                       ? ""
                       : std::string(
                             reinterpret_cast<const char*>(bytes),
                             static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
        }
        [[nodiscard]] std::uint64_t integer(int column) const {
            return static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column));
        }
        void get(int column, std::string& into) const { into = text(column); }
        void get(int column, std::uint64_t& into) const { into = integer(column); }
        void get(int column, double& into) const {
            into = sqlite3_column_double(statement_, column);
        }

    private:
        SqliteConnection& connection_;
        sqlite3_stmt* statement_ = nullptr;
        int bound_ = 0;
    };

    /// What is told, once for each wait, when another process holds the lock for longer than
    /// `silent_wait`.
    void on_wait(std::function<void(const std::string&)> say) { say_ = std::move(say); }
    /// What is damaged is being rescued: that is not said to be the remedy, and a file that was cut
    /// is read as far as it goes.
    void being_rescued() {
        remedy_.clear();
        run("PRAGMA writable_schema = ON");
    }
    /// Rows that the last statement changed itself.
    [[nodiscard]] int changed() const { return sqlite3_changes(handle_); }

    /// What was measured is worth more than a while of waiting: somebody may have left a shell
    /// open.
    static constexpr std::chrono::seconds longest_wait{600};
    static constexpr std::chrono::milliseconds silent_wait{500};

    void run(const std::string& sql) {
        check(sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr));
    }
    std::uint64_t number(const char* sql) {
        Statement statement(*this, sql);
        return statement.step() ? statement.integer(0) : 0;
    }
    std::string text(const char* sql) {
        Statement statement(*this, sql);
        return statement.step() ? statement.text(0) : "";
    }

private:
    void check(int code) const {
        if (code == SQLITE_OK) return;
        const bool held = (code & 0xFF) == SQLITE_BUSY;
        throw IoError(kind_ + " " + named_.string() + ": " + sqlite3_errmsg(handle_) +
                      (held ? "; another process held its lock for " +
                                  std::to_string(patience_.count()) +
                                  " s (a shell with an open transaction?): `fuser` with the file's "
                                  "name says which"
                            : "") +
                      ((code & 0xFF) == SQLITE_CORRUPT ? remedy_ : ""));
    }
    /// 0: give up.
    static int on_busy(void* connection, int before) {
        auto& self = *static_cast<SqliteConnection*>(connection);
        const auto now = std::chrono::steady_clock::now();
        if (before == 0) self.busy_since_ = now;
        if (before == 0) self.said_ = false;
        const auto waited = now - self.busy_since_;
        if (waited > self.patience_) return 0;
        if (waited > silent_wait && self.say_ && !std::exchange(self.said_, true))
            self.say_(self.kind_ + " " + self.named_.string() +
                      ": another process holds its lock; waiting for up to " +
                      std::to_string(self.patience_.count()) + " s");
        std::this_thread::sleep_for(
            std::chrono::milliseconds(std::min(1 << std::min(before, 6), 50)));
        return 1;
    }
    /// As a URI, in which three characters have a meaning of their own.
    static std::string address(const std::filesystem::path& file, Access access) {
        std::string path;
        for (const char c : std::filesystem::absolute(file).string())
            path += c == '%' ? "%25" : c == '?' ? "%3f" : c == '#' ? "%23" : std::string(1, c);
        return "file:" + path +
               (access == Access::read_unchanged ? "?mode=ro&immutable=1" : "?mode=ro");
    }

    std::filesystem::path named_;
    std::string kind_;
    std::string remedy_;  ///< ends what is said of a damaged file
    static constexpr int most_bytes =
        64 << 20;  ///< of a text; the longest that is kept has some hundred KiB
    std::chrono::seconds patience_{};
    std::chrono::steady_clock::time_point busy_since_{};
    bool said_ = false;
    std::function<void(const std::string&)> say_{};
    sqlite3* handle_ = nullptr;
};

/// All or nothing: taken back unless `commit` is reached.
class SqliteTransaction {
public:
    explicit SqliteTransaction(SqliteConnection& connection) : connection_(connection) {
        connection_.run("BEGIN IMMEDIATE");
    }
    ~SqliteTransaction() {
        if (committed_) return;
        try {
            connection_.run("ROLLBACK");
        } catch (const Error&) {  // SQLite has taken it back already
        }
    }
    SqliteTransaction(const SqliteTransaction&) = delete;
    SqliteTransaction& operator=(const SqliteTransaction&) = delete;
    void commit() {
        connection_.run("COMMIT");
        committed_ = true;
    }

private:
    SqliteConnection& connection_;
    bool committed_ = false;
};

}  // namespace servetune
