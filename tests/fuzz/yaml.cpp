// SPDX-License-Identifier: Apache-2.0
// Any bytes as YAML: every node can be asked for everything, and line ends and a byte order mark
// change nothing.
#include "study_file/yaml.hpp"
#include "fuzz/target.hpp"

#include <set>
#include <string>

using namespace servetune;
using namespace servetune::fuzz;

namespace {

void ask_everything(const Yaml& node) {
    must_hold(node.place().starts_with("f:"), "a node knows its file");
    (void)accepted([&] { (void)node.text(); });
    (void)accepted([&] { (void)node.value(); });
    (void)accepted([&] { (void)node.values(); });
    (void)accepted([&] { (void)node.boolean(); });
    (void)accepted([&] { (void)node.integer(); });
    (void)accepted([&] { (void)node.real(); });
    (void)accepted([&] { must_hold(node.seconds() >= 0, "a duration is not negative"); });
    (void)accepted([&] { must_hold(node.fraction() >= 0, "a share is not negative"); });
    if (node.is_sequence())
        for (const Yaml& item : node.items()) ask_everything(item);
    if (!node.is_mapping()) return;
    std::set<std::string> keys;
    for (const auto& [key, child] : node.entries()) {
        must_hold(keys.insert(key).second, "a key stands once");
        must_hold(node.entry(key) == &child, "a key is found");
        must_hold(node.without(Key{key, is::value}).entry(key) == nullptr,
                  "without a key it is not found");
        ask_everything(child);
    }
}

bool same(const Yaml& a, const Yaml& b) {
    if (a.kind() != b.kind()) return false;
    if (a.is_scalar()) return a.text() == b.text();
    if (a.is_sequence()) {
        bool equal = a.items().size() == b.items().size();
        for (std::size_t i = 0; equal && i < a.items().size(); ++i)
            equal = same(a.items()[i], b.items()[i]);
        return equal;
    }
    if (!a.is_mapping()) return true;
    bool equal = a.entries().size() == b.entries().size();
    for (std::size_t i = 0; equal && i < a.entries().size(); ++i)
        equal = a.entries()[i].first == b.entries()[i].first &&
                same(a.entries()[i].second, b.entries()[i].second);
    return equal;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = text_of_input(data, size);
    (void)accepted([&] {
        const Yaml node = Yaml::parse(text, "f");
        if (size < 10'000) ask_everything(node);  // `without` copies: quadratic in the breadth
        if (!text.starts_with("\xEF\xBB\xBF"))
            must_hold(same(Yaml::parse("\xEF\xBB\xBF" + std::string(text), "f"), node),
                      "a mark is skipped");
        if (text.find('\r') != std::string_view::npos) return;
        std::string crlf;
        for (const char c : text) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
        must_hold(same(Yaml::parse(crlf, "f"), node), "CRLF is LF");
    });
    return 0;
}
