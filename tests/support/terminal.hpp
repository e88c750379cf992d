// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace servetune::test {

/// The rows that a terminal of so many columns shows of a stream of bytes, what has scrolled away
/// included. It knows what `autotune` prints: text, \r, \n, ESC [ A (up), ESC [ J (clear to the end
/// of the screen), ESC [ K (clear to the end of the row) and four colours.
class ShownRows {
public:
    explicit ShownRows(std::size_t columns) : columns_(columns) {}

    void take(const std::string& bytes) {
        for (const char c : bytes) {
            if (!escape_.empty() || c == '\033') {
                escape_ += c;
                if (escape_.size() > 2 && std::isalpha(static_cast<unsigned char>(c)) != 0)
                    end_of_escape();
            } else if (c == '\r') column_ = 0;
            else if (c == '\n') next_row();
            else if ((static_cast<unsigned char>(c) & 0xC0U) == 0x80U) rows_[row_].back() += c;
            else put(c);
        }
    }
    [[nodiscard]] const std::vector<std::string>& rows() const { return rows_; }
    [[nodiscard]] std::string text() const {
        std::string result;
        for (const std::string& row : rows_) result += row + "\n";
        return result;
    }
    /// Sequences that it does not know, which a terminal may take for anything.
    [[nodiscard]] const std::string& unknown() const { return unknown_; }
    /// What changes colours: green, red, faint and the end of these.
    [[nodiscard]] const std::string& colours() const { return colours_; }

private:
    void next_row() {
        if (++row_ == rows_.size()) rows_.emplace_back();
    }
    void put(char c) {
        if (column_ == columns_) {  // a terminal wraps when the next character comes
            column_ = 0;
            next_row();
        }
        std::string& row = rows_[row_];
        if (row.size() < column_) row.resize(column_, ' ');
        if (column_ < row.size()) row[column_] = c;
        else row += c;
        ++column_;
    }
    void end_of_escape() {
        if (escape_ == "\033[A") row_ -= row_ > 0 ? 1 : 0;
        else if (escape_ == "\033[J") {
            rows_.resize(row_ + 1);
            rows_[row_].resize(std::min(rows_[row_].size(), column_));
        } else if (escape_ == "\033[K") rows_[row_].resize(std::min(rows_[row_].size(), column_));
        else if (escape_ == "\033[0m" || escape_ == "\033[2m" || escape_ == "\033[31m" ||
                 escape_ == "\033[32m")
            colours_ += escape_;
        else unknown_ += escape_;
        escape_.clear();
    }

    std::size_t columns_;
    std::vector<std::string> rows_{""};
    std::size_t row_ = 0;
    std::size_t column_ = 0;
    std::string escape_{};
    std::string unknown_{};
    std::string colours_{};
};

/// A program whose input, output and errors are a terminal of so many columns.
class OnTerminal {
public:
    OnTerminal(const std::vector<std::string>& argv, const std::filesystem::path& folder,
               unsigned short columns)
        : rows_(columns) {
        std::vector<char*> words;
        for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        ours_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (ours_ < 0 || grantpt(ours_) != 0 || unlockpt(ours_) != 0)
            throw std::runtime_error("cannot make a terminal");
        const std::string name =
            ptsname(ours_);  // NOLINT(concurrency-mt-unsafe): the tests have one thread
        const winsize size{24, columns, 0, 0};
        ioctl(ours_, TIOCSWINSZ, &size);
        pid_ = fork();
        if (pid_ < 0) throw std::runtime_error("cannot fork");
        if (pid_ == 0) {
            setsid();
            const int its = open(name.c_str(), O_RDWR);
            if (its < 0 || dup2(its, 0) < 0 || dup2(its, 1) < 0 || dup2(its, 2) < 0 ||
                chdir(folder.c_str()) != 0)
                _exit(126);
            execv(words[0], words.data());
            _exit(127);
        }
    }
    ~OnTerminal() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
        close(ours_);
    }
    OnTerminal(const OnTerminal&) = delete;
    OnTerminal& operator=(const OnTerminal&) = delete;

    [[nodiscard]] pid_t id() const { return pid_; }
    /// What a person types, also before somebody asks for it.
    void type(const std::string& text) const {
        if (write(ours_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
            throw std::runtime_error("cannot type");
    }
    /// Reads what comes until its end, a minute at most, and calls `look` after each piece. The
    /// exit code.
    template <class Look>
    int watch(const Look& look) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        std::array<char, 4096> buffer{};
        while (std::chrono::steady_clock::now() < deadline) {
            pollfd waiting{ours_, POLLIN, 0};
            if (poll(&waiting, 1, 100) <= 0) continue;
            const ssize_t got = read(ours_, buffer.data(), buffer.size());
            if (got <= 0) break;  // EIO: nobody holds the terminal any more
            rows_.take({buffer.data(), std::size_t(got)});
            look(rows_);
        }
        int status = 0;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    [[nodiscard]] const ShownRows& shown() const { return rows_; }

private:
    ShownRows rows_;
    int ours_ = -1;
    pid_t pid_ = -1;
};

}  // namespace servetune::test
