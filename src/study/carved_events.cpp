// SPDX-License-Identifier: Apache-2.0
#include "carved_events.hpp"

#include "base/files.hpp"

#include <array>
#include <bit>
#include <string_view>
#include <type_traits>

namespace servetune {
namespace {

// Names and numbers of sqlite.org/fileformat2.html.
constexpr std::size_t page_bytes = 4096, most_local = 4061, least_local = 489, overflow = 4092;
constexpr std::array<std::size_t, 8> widths{0, 1, 2, 3, 4, 6, 8, 8};  // by serial type

/// Behind the end stand zeros.
struct Bytes {
    std::string_view all;
    std::size_t at = 0;

    unsigned byte() {
        const std::size_t here = at++;
        return here < all.size() ? static_cast<unsigned char>(all[here]) : 0;
    }
    std::uint64_t number(std::size_t bytes) {
        std::uint64_t result = 0;
        for (; bytes > 0; --bytes) result = result << 8U | byte();
        return result;
    }
    /// None of ours has more than four bytes.
    std::uint64_t varint() {
        std::uint64_t result = 0;
        unsigned next = 0x80;
        for (int i = 0; i < 4 && next >= 0x80; ++i) {
            next = byte();
            result = result << 7U | (next & 0x7FU);
        }
        return result;
    }
    std::string_view text(std::size_t bytes) {
        const std::string_view result = all.substr(std::min(at, all.size()), bytes);
        at += bytes;
        return result;
    }
};

/// The event whose cell of a table's leaf begins here; without a sequence where there is none.
JournalEvent event_at(std::string_view file, std::size_t begin) {
    JournalEvent event;
    Bytes cell{file, begin};
    const std::size_t size = cell.varint();
    const std::uint64_t sequence = cell.varint();
    Bytes header{file, cell.at};
    const std::size_t head_size = header.varint();
    std::array<std::uint64_t, 8> types{};
    for (std::uint64_t& type : types) type = header.varint();
    if (header.at != cell.at + head_size || types.front() != 0) return event;
    std::size_t local = size;
    if (size > most_local) local = least_local + (size - least_local) % overflow;
    if (local > most_local) local = least_local;
    std::string record(cell.text(local));
    for (std::size_t page = size > local ? cell.number(4) : 0; page != 0 && record.size() < size;) {
        Bytes more{file, (page - 1) * page_bytes};
        page = more.number(4);
        const std::string_view part = more.text(std::min(overflow, size - record.size()));
        if (part.empty()) break;
        record += part;
    }
    Bytes body{record, head_size};
    std::size_t column = 0;
    const auto take = [&](const char*, auto& member) {
        using Member = std::decay_t<decltype(member)>;
        const std::uint64_t type = types[column++];
        if constexpr (std::is_same_v<Member, std::string>) member = body.text((type - 13) / 2);
        else if (std::is_same_v<Member, double> && type == 7)
            member = static_cast<Member>(std::bit_cast<double>(body.number(8)));
        else member = static_cast<Member>(type < 8 ? body.number(widths[type]) : type - 8);
    };
    JournalEvent::for_each_column(event, take);
    take("checksum", event.checksum);
    event.sequence = sequence;
    if (record.size() != size || event.checksum != event.right_checksum()) event.sequence = 0;
    return event;
}

}  // namespace

std::map<std::uint64_t, JournalEvent> carved_events(const std::filesystem::path& journal) {
    std::string bytes = read_file(journal);
    const std::string log = journal.string() + "-wal";
    if (std::filesystem::exists(log)) bytes += read_file(log);
    std::map<std::uint64_t, JournalEvent> found;
    for (std::size_t at = 0; at < bytes.size(); ++at)
        if (JournalEvent event = event_at(bytes, at); event.sequence > 0)
            found.emplace(event.sequence, std::move(event));
    return found;
}

std::size_t missing_at_end(const std::filesystem::path& journal) {
    const std::string bytes = read_file(journal);
    const std::size_t whole = Bytes{bytes, 28}.number(4) * page_bytes;
    return bytes.starts_with("SQLite format 3") && whole > bytes.size() ? whole - bytes.size() : 0;
}

}  // namespace servetune
