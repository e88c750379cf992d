// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/files.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

namespace servetune::test {

/// A help text as Python's argparse writes it, of the stored facts of a version: a switch with its
/// listed way off (`--enable-x, --disable-x`, else `--x, --no-x`), other flags with their values.
/// No word of the engine's own.
inline std::string help_text_of(const std::filesystem::path& facts) {
    const auto file = nlohmann::json::parse(read_file(facts));
    std::string text =
        "usage: serve [-h] [model]\n\noptions:\n  -h, --help            show this\n  --model "
        "MODEL\n";
    for (const auto& [flag, fact] : file.at("flags").items()) {
        std::string value = flag.substr(2);
        for (char& c : value)
            c = c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        if (fact.contains("values")) {
            value = "{";
            for (const auto& one : fact["values"])
                value += (value.size() == 1 ? "" : ",") +
                         (one.is_string() ? one.get<std::string>() : one.dump());
            value += "}";
        }
        value = fact.value("type", "") == "bool" ? "" : " " + value;
        text += "  " + flag + value;
        if (fact.contains("negations"))
            for (const auto& off : fact["negations"]) text += ", " + off.get<std::string>();
        else if (fact.value("negatable", false)) text += ", --no-" + flag.substr(2);
        text += "\n                        What it does. (default: None)\n";
    }
    return text;
}

}  // namespace servetune::test
