// SPDX-License-Identifier: Apache-2.0
#include "launches.hpp"

#include "base/lower_case.hpp"
#include "base/text.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "shell_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>

namespace servetune {
namespace {

/// A name as its owner's folder or a path does not change it; empty: a variable or a placeholder.
std::string bare_model_name(std::string_view printed) {
    while (!printed.empty() && printed.find_first_of("\"'`/,") == 0) printed.remove_prefix(1);
    while (!printed.empty() && std::string_view("\"'`/,").find(printed.back()) != std::string_view::npos) printed.remove_suffix(1);
    if (printed.find_first_of("$<{%") != std::string_view::npos || printed.find("...") != std::string_view::npos) return "";
    printed = printed.substr(printed.rfind('/') + 1);
    return lower_case(std::string(printed.substr(0, printed.find(':'))));
}

/// The models that a command names: behind flags, and behind `serve`.
std::vector<std::string> models_in(const std::vector<std::string>& words) {
    constexpr std::array<std::string_view, 9> flags{"--model",     "--model-path", "-m",      "--served-model-name", "--model-name",
                                                    "--tokenizer", "--hf-repo",    "--alias", "--model-id"};
    std::vector<std::string> result;
    const auto add = [&](std::string_view value) {
        if (!value.empty()) result.emplace_back(value);
    };
    for (std::size_t i = 0; i < words.size(); ++i) {
        const auto equals = words[i].find('=');
        const std::string_view flag = std::string_view(words[i]).substr(0, equals);
        const bool of_python = flag == "-m" && i > 0 && words[i - 1].find("python") != std::string::npos;
        if (!of_python && std::find(flags.begin(), flags.end(), flag) != flags.end()) {
            if (equals != std::string::npos) add(std::string_view(words[i]).substr(equals + 1));
            else
                for (std::size_t value = i + 1; value < words.size() && !words[value].starts_with('-'); ++value) add(words[value]);
        }
        const bool serves = words[i] == "serve" || words[i].ends_with("-serve");
        if (serves && i + 1 < words.size() && !words[i + 1].starts_with('-') && words[i + 1] != "serve") add(words[i + 1]);
    }
    return result;
}

std::string start_of_command(const std::string& command) {
    std::size_t end = std::min<std::size_t>(command.size(), 80);
    while (end < command.size() && end > 0 && (static_cast<unsigned char>(command[end]) & 0xC0U) == 0x80U) --end;  // not inside a character
    return command.substr(0, end);
}

std::string family_of(const std::string& name) { return name.substr(0, name.find('-')); }

enum class SameModel { yes, no, unknown };

SameModel serves_model(const Launches::Launch& launch, const std::vector<std::string>& benchmarked) {
    const std::vector<std::string> served = models_in(shell_words(launch.text));
    bool comparable = false;
    for (const std::string& one : served) {
        const std::string name = bare_model_name(one);
        if (name.empty()) return SameModel::unknown;
        const bool is_path = one.starts_with('/') || one.starts_with('.') || one.starts_with('~');
        for (const std::string& other : benchmarked) {
            const std::string wanted = bare_model_name(other);
            if (wanted == name) return SameModel::yes;
            // A folder may be called anything.
            const bool other_path = other.starts_with('/') || other.starts_with('.') || other.starts_with('~');
            const bool file_of_it = (is_path || other_path) && (wanted.starts_with(name) || name.starts_with(wanted));
            comparable = comparable || (!is_path && !other_path) || (family_of(wanted) == family_of(name) && !file_of_it);
        }
    }
    return comparable ? SameModel::no : SameModel::unknown;
}

/// The words of a heading that tell it from others.
std::set<std::string> telling_words(std::string_view heading) {
    constexpr std::array<std::string_view, 27> usual{"the",     "with",    "for",        "and",         "of",    "on",      "in",
                                                     "to",      "run",     "running",    "server",      "serve", "serving", "launch",
                                                     "start",   "deploy",  "deployment", "benchmark",   "model", "models",  "using",
                                                     "command", "example", "results",    "performance", "step",  "default"};
    std::set<std::string> result;
    std::string word;
    for (const char c : std::string(heading) + " ") {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0 || (c == '.' && !word.empty())) {
            word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
            continue;
        }
        while (word.ends_with('.')) word.pop_back();
        const bool number = word.find_first_not_of("0123456789.") == std::string::npos;
        if (word.size() > 1 && !number && std::find(usual.begin(), usual.end(), word) == usual.end()) result.insert(word);
        word.clear();
    }
    return result;
}

/// How many headings two places share.
std::size_t shared_depth(const DocumentPlace& a, const DocumentPlace& b) {
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

void Launches::add(const std::string& text, const std::string& engine, DocumentPlace place) {
    if (parted_) ++group_;
    parted_ = false;
    forget_clients();
    several_.clear();
    constexpr std::size_t most = 200;  // no block is of a command that stands so many commands above it
    if (launches_.size() == most) launches_.erase(launches_.begin());
    launches_.push_back({text, engine, std::move(place), group_});
}

void Launches::interrupt() {
    ++group_;
    parted_ = false;
    forget_clients();
    several_.clear();
}

void Launches::add_several(std::vector<Launch> launches) {
    interrupt();
    several_ = std::move(launches);
}

const Launches::Launch* Launches::one_of_several() const {
    const Launch* result = nullptr;
    for (const std::vector<std::string>& models : clients_)
        for (const Launch& launch : several_) {
            const SameModel same = models.empty() ? SameModel::unknown : serves_model(launch, models);
            if (same == SameModel::unknown || (same == SameModel::yes && result != nullptr && result != &launch)) return nullptr;
            if (same == SameModel::yes) result = &launch;
        }
    return result;
}

void Launches::forget_clients() {
    benchmarked_.clear();
    clients_.clear();
}

void Launches::measured() {
    parted_ = true;
    forget_clients();
}

void Launches::read_clients(std::string_view text) {
    std::map<std::string, std::string> variables;
    for (const std::string& line : shell_lines(text)) {
        std::vector<std::string> words = shell_words(line);
        for (const std::string& word : words) {
            const auto equals = word.find('=');
            if (equals == 0 || equals == std::string::npos || word.starts_with('-')) break;
            variables["$" + word.substr(0, equals)] = variables["${" + word.substr(0, equals) + "}"] = word.substr(equals + 1);
        }
        const auto client = std::find_if(words.begin(), words.end(), [](const std::string& word) {
            return !word.starts_with('-') && word.substr(word.rfind('/') + 1).find("bench") != std::string::npos;
        });
        if (client == words.end() || client - words.begin() > 12) continue;
        words.erase(words.begin(), client);
        if (std::none_of(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("--"); })) continue;
        std::vector<std::string> named;
        for (const std::string& model : models_in(words)) {
            const auto known = variables.find(model);
            if (const std::string& value = known == variables.end() ? model : known->second; !bare_model_name(value).empty())
                named.push_back(value);
        }
        benchmarked_ = named;
        constexpr std::size_t most_clients = 100;
        if (!several_.empty() && clients_.size() < most_clients && std::find(clients_.begin(), clients_.end(), named) == clients_.end())
            clients_.push_back(named);
        parted_ = true;  // what is launched behind it takes the place of what was measured
    }
}

Launches::Choice Launches::for_block(const DocumentPlace& place, const std::vector<std::string>& labels) const {
    if (launches_.empty()) return {};
    std::vector<const Launch*> candidates;  // of one text the last
    const auto collect = [&](std::size_t group, auto&& wanted) {
        candidates.clear();
        for (const Launch& launch : launches_) {
            if (launch.group != group || !wanted(launch)) continue;
            std::erase_if(candidates, [&](const Launch* other) { return other->text == launch.text; });
            candidates.push_back(&launch);
        }
    };
    collect(launches_.back().group, [](const Launch&) { return true; });
    if (!benchmarked_.empty()) {
        const auto is = [&](SameModel what) {
            return [&, what](const Launch& launch) { return serves_model(launch, benchmarked_) == what; };
        };
        const auto nearest = std::find_if(launches_.rbegin(), launches_.rend(), is(SameModel::yes));
        if (nearest != launches_.rend()) collect(nearest->group, is(SameModel::yes));
        else collect(launches_.back().group, is(SameModel::unknown));
        if (candidates.empty()) {
            const std::vector<std::string> started = models_in(shell_words(launches_.back().text));
            return {nullptr, "the benchmark names model " + benchmarked_.front() + ", and the command above starts " +
                                 (started.empty() ? "none that it names" : started.front())};
        }
    }
    if (candidates.size() == 1) return {candidates.front()};
    const Launch* last = candidates.back();
    // A text without headings tells what came after what.
    if (std::all_of(candidates.begin(), candidates.end(), [](const Launch* one) { return one->place.empty(); }))
        return {last, "", start_of_command(candidates.front()->text)};
    if (std::all_of(candidates.begin(), candidates.end() - 1,
                    [&](const Launch* other) { return shared_depth(other->place, place) < shared_depth(last->place, place); }))
        return {last};
    std::set<std::string> said;
    for (const std::string& label : labels) said.merge(telling_words(label));
    std::vector<const Launch*> named;
    for (const Launch* launch : candidates) {
        if (launch->place.empty()) continue;
        std::set<std::string> own = telling_words(launch->place.back().second);
        for (const Launch* other : candidates)
            if (other != launch && !other->place.empty())
                for (const std::string& word : telling_words(other->place.back().second)) own.erase(word);
        if (std::any_of(own.begin(), own.end(), [&](const std::string& word) { return said.contains(word); })) named.push_back(launch);
    }
    if (named.size() == 1) return {named.front()};
    return {nullptr, "several commands: " + start_of_command(candidates[0]->text) + " | " + start_of_command(candidates[1]->text)};
}

}  // namespace servetune
