// SPDX-License-Identifier: Apache-2.0
#include "gguf_header.hpp"

#include "base/files.hpp"
#include "servetune/detail/base/ranges.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace servetune {
namespace {

using Json = nlohmann::json;

class GgufReader {
public:
    explicit GgufReader(const std::filesystem::path& file)
        : name_(file.string()), file_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
        std::error_code error;
        size_ = std::filesystem::file_size(file, error);
        if (error || file_.id() < 0) throw IoError("cannot read " + name_);
    }

    GgufHeader header() {
        if (taken(4) != "GGUF") fail("'GGUF' wanted");
        if (const auto version = number(4); version < 2 || version > 3)
            fail("version 2 or 3 wanted, got " + std::to_string(version));
        const std::uint64_t tensors = count("tensors");
        Json all = Json::object();
        for (std::uint64_t left = count("keys"); left > 0; --left) read_key(all);
        GgufHeader result;
        const std::string kind = all.value(Json::json_pointer("/general/architecture"), "");
        if (all.contains(kind) && all[kind].is_object()) result.config = all[kind];
        result.config["tokenizer"] = all["tokenizer"];
        result.config["model_type"] = "gguf-" + kind;
        result.config["architectures"] = {"gguf"};
        std::vector<std::pair<std::uint64_t, std::size_t>> places;
        for (std::uint64_t i = 0; i < tensors; ++i) {
            GgufTensor& tensor = result.tensors.emplace_back(GgufTensor{text()});
            const std::uint64_t dimensions = number(4);
            if (dimensions > 8) fail("'" + tensor.name + "' has too many dimensions");
            for (std::uint64_t d = 0; d < dimensions; ++d) tensor.values *= double(number(8));
            tensor.matrix = dimensions > 1;
            (void)number(4);  // its type; where the next one begins says more
            places.emplace_back(number(8), i);
        }
        sort(places);
        for (std::size_t i = 0; i < places.size(); ++i) {
            GgufTensor& tensor = result.tensors[places[i].second];
            const auto end = i + 1 < places.size() ? places[i + 1].first : size_ - at_;
            if (end < places[i].first || end > size_ - at_)
                fail("'" + tensor.name + "' lies behind the file's end");
            tensor.bytes = double(end - places[i].first);
        }
        return result;
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        throw ParseError(name_ + ": byte " + std::to_string(at_) + ": " + what);
    }
    std::string_view taken(std::uint64_t bytes) {
        constexpr std::size_t chunk = 1UL << 18UL;
        if (bytes > chunk) fail("a text of " + std::to_string(bytes) + " bytes");
        if (at_ + bytes > start_ + buffer_.size()) {
            buffer_.resize(chunk);
            const auto got = ::pread(file_.id(), buffer_.data(), chunk, static_cast<off_t>(at_));
            buffer_.resize(std::size_t(std::max<ssize_t>(got, 0)));
            start_ = at_;
        }
        if (at_ + bytes > start_ + buffer_.size()) fail("the file ends here");
        const auto from = at_ - start_;
        at_ += bytes;
        return std::string_view(buffer_).substr(from, bytes);
    }
    std::uint64_t number(std::size_t bytes) {  // little-endian, as our processors
        std::uint64_t result = 0;
        std::memcpy(&result, taken(bytes).data(), bytes);
        return result;
    }
    std::uint64_t count(const char* of) {
        const std::uint64_t result = number(8);
        if (result > 100'000) fail(std::to_string(result) + " " + of);
        return result;
    }
    std::string text() { return std::string(taken(number(8))); }

    void read_key(Json& all) {
        const std::string key = text();
        Json* at = &all;
        for (std::size_t from = 0; from <= key.size();) {
            const auto dot = std::min(key.find('.', from), key.size());
            at = &(*at)[key.substr(from, dot - from)];
            if (!at->is_null() && !at->is_object()) fail("'" + key + "' stands twice");
            from = dot + 1;
        }
        *at = value(number(4), key);
    }
    Json value(std::uint64_t type, const std::string& key) {
        constexpr std::array<std::size_t, 13> sizes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
        constexpr std::uint64_t of_float = 6, of_text = 8, of_list = 9, of_double = 12;
        if (type == of_text) return text();
        if (type >= sizes.size()) fail("'" + key + "' is of no known type");
        if (type != of_list) {
            const std::uint64_t bits = number(sizes[type]);
            if (type == of_float) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
            return type == of_double ? Json(std::bit_cast<double>(bits)) : Json(bits);
        }
        const std::uint64_t each = number(4), entries = number(8);
        if (each == of_list || entries > 10'000'000) fail("'" + key + "' is no list that fits");
        const bool kept = each != of_text && entries <= 1000;
        Json list = Json::array();
        for (std::uint64_t i = 0; i < entries; ++i)
            if (each == of_text) (void)taken(number(8));
            else if (Json one = value(each, key); kept) list.push_back(std::move(one));
        return kept ? list : Json(entries);
    }

    std::string name_;
    Descriptor file_;
    std::uint64_t size_ = 0, at_ = 0, start_ = 0;
    std::string buffer_{};
};

}  // namespace

GgufHeader read_gguf_header(const std::filesystem::path& file) { return GgufReader(file).header(); }

}  // namespace servetune
