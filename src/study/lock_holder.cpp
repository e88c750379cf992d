// SPDX-License-Identifier: Apache-2.0
#include "lock_holder.hpp"

#include <unistd.h>

#include <array>
#include <fstream>
#include <iomanip>
#include <random>
#include <sstream>

namespace servetune {
namespace {

constexpr int digits_of_beats = 20;  // of the largest number

std::string boot_of_machine() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string text;
    std::getline(file, text);
    return text;
}

std::string name_of_machine() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0')
        return "an unnamed machine";
    std::string text(name.data());
    for (char& c : text)
        if (c <= ' ') c = '_';  // a word of a line
    return text;
}

/// The rest of the next line, which begins with `key` and a space; nothing: it does not.
std::optional<std::string> said_next(std::istream& lines, const std::string& key) {
    std::string line;
    if (!std::getline(lines, line) || !line.starts_with(key + " ")) return std::nullopt;
    return line.substr(key.size() + 1);
}

}  // namespace

LockHolder LockHolder::here() {
    std::random_device random;
    std::ostringstream start;
    for (int i = 0; i < 4; ++i) start << std::hex << std::setw(8) << std::setfill('0') << random();
    return {
        std::to_string(::getpid()), name_of_machine(), boot_of_machine(), start.str(), 0, false};
}

std::optional<LockHolder> LockHolder::in(const std::string& text) {
    std::istringstream lines(text);
    LockHolder found;
    if (!std::getline(lines, found.process) || found.process.empty()) return std::nullopt;
    const auto host = said_next(lines, "host");
    const auto boot = said_next(lines, "boot");
    const auto start = said_next(lines, "start");
    std::string beats;
    if (!host || !boot || !start || !std::getline(lines, beats)) return std::nullopt;
    found.ended = beats.starts_with("ended ");
    if (!found.ended && !beats.starts_with("beats ")) return std::nullopt;
    std::istringstream number(beats.substr(6));
    if (!(number >> found.beats)) return std::nullopt;
    found.host = *host;
    found.boot = *boot;
    found.start = *start;
    return found;
}

std::string LockHolder::text() const {
    std::ostringstream out;
    out << process << "\nhost " << host << "\nboot " << boot << "\nstart " << start
        << (ended ? "\nended " : "\nbeats ") << std::setw(digits_of_beats) << std::setfill('0')
        << beats << '\n';
    return out.str();
}

std::string LockHolder::name() const { return "process " + process + " on " + host; }

}  // namespace servetune
