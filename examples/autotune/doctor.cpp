// SPDX-License-Identifier: Apache-2.0
// `autotune doctor`: what this machine has for measuring on it, and what to do where that is not
// enough.
#include "checkup.hpp"
#include "commands.hpp"
#include "output.hpp"

#include "servetune/detail/base/number_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

std::string_view word_of(Checkup::State state) {
    switch (state) {
        case Checkup::State::fine: return "fine";
        case Checkup::State::worth_knowing: return "worth knowing";
        case Checkup::State::stops: return "stops you";
    }
    return "";
}

std::vector<Checkup> all_checkups() {
    const Catalogue catalogue = Catalogue::standard();
    const std::vector<Checkup> gpus = checkups_of_gpus();
    const bool nvidia = gpus.size() > 1;  // only nvidia-smi tells more than which there are
    std::vector<Checkup> result = gpus;
    for (auto&& part : {checkups_of_engines(catalogue), checkups_of_containers(nvidia),
                        checkups_of_machine(), checkups_of_folders(catalogue)})
        result.insert(result.end(), part.begin(), part.end());
    return result;
}

}  // namespace

int doctor(bool json) {
    const std::vector<Checkup> checkups = all_checkups();
    const auto stops = static_cast<std::size_t>(
        std::count_if(checkups.begin(), checkups.end(),
                      [](const Checkup& one) { return one.state == Checkup::State::stops; }));
    if (json) {
        OrderedJson list = OrderedJson::array();
        for (const Checkup& one : checkups)
            list.push_back(
                {{"name", one.name},
                 {"state", word_of(one.state)},
                 {"found", one.found},
                 {"do", one.remedy.empty() ? OrderedJson(nullptr) : OrderedJson(one.remedy)}});
        put_json(OrderedJson{{"stops", stops}, {"checks", list}});
    } else {
        for (const Checkup& one : checkups)
            put(stdout, "{:13}  {}: {}{}\n", word_of(one.state), one.name, one.found,
                one.remedy.empty() ? "" : "; do: " + one.remedy);
        if (stops == 0) put(stdout, "nothing stops you\n");
        else put(stdout, "{} stop{} you\n", counted_text(stops, "thing"), stops == 1 ? "s" : "");
    }
    return stops == 0 ? done : environment_error;
}

}  // namespace autotune
