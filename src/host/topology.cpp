// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/host/topology.hpp"

#include "base/nesting.hpp"
#include "base/text.hpp"
#include "nvidia_smi.hpp"
#include "run_command.hpp"
#include "servetune/error.hpp"
#include "start_program.hpp"

#include <nlohmann/json.hpp>

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>
#include <tuple>

namespace servetune {
namespace {

std::vector<Device> visible_of(const std::vector<Device>& all) {
    std::vector<GpuState> states;
    for (const Device& device : all) states.push_back({.index = device.index, .uuid = device.uuid});
    std::vector<Device> result;
    for (const GpuState& state : only_named(named_gpus(""), std::move(states)))
        result.push_back(*std::find_if(all.begin(), all.end(), [&](const Device& device) {
            return device.uuid == state.uuid;
        }));
    return result;
}

}  // namespace

std::string FoundDevices::text() const {
    std::vector<std::pair<std::string, int>> kinds;
    for (const Device& device : visible) {
        constexpr double gib = 1UL << 30UL;
        const auto memory = std::llround(static_cast<double>(device.memory_bytes) / gib);
        const std::string kind =
            device.name + (memory > 0 ? ", " + std::to_string(memory) + " GiB each" : "");
        const auto known = std::find_if(kinds.begin(), kinds.end(),
                                        [&](const auto& one) { return one.first == kind; });
        if (known == kinds.end()) kinds.emplace_back(kind, 1);
        else ++known->second;
    }
    std::string result;
    for (const auto& [kind, count] : kinds)
        result += (result.empty() ? "" : " + ") + std::to_string(count) + " x " + kind;
    return result;
}

FoundDevices find_devices(const std::string& nvidia_smi, std::chrono::milliseconds within) {
    NvidiaSmi smi(nvidia_smi, within);
    if (!smi.present()) return {};
    SmiAnswer<Device> answer = smi.devices();
    FoundDevices result;
    result.all = std::move(answer.rows);
    if (result.all.empty()) result.trouble = "nvidia-smi: " + answer.trouble.words;
    result.visible = visible_of(result.all);
    return result;
}

namespace {

std::optional<int> counted_number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value >= 0
               ? std::optional(value)
               : std::nullopt;
}

/// `0-3,8`; nothing for what is no list, such as `N/A`.
std::set<int> listed_numbers(std::string_view text) {
    constexpr int most = 1 << 16;
    std::set<int> result;
    std::istringstream ranges{std::string(trimmed(text))};
    for (std::string range; std::getline(ranges, range, ',');) {
        const auto dash = range.find('-');
        const auto first = counted_number(range.substr(0, dash));
        const auto last =
            dash == std::string::npos ? first : counted_number(range.substr(dash + 1));
        if (!first || !last || *first > *last || *last > most) return {};
        for (int number = *first; number <= *last; ++number) result.insert(number);
    }
    return result;
}

/// The header is underlined by terminal escapes in some versions.
std::string without_escapes(const std::string& line) {
    std::string result;
    for (std::size_t at = 0; at < line.size(); ++at) {
        if (line[at] == '\x1b') at = std::min(line.find('m', at), line.size());
        else result += line[at];
    }
    return result;
}

/// Cells as they are between tabs; of a text whose tabs have become blanks, the words.
std::vector<std::string> row_cells(const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    const bool tabs = line.find('\t') != std::string::npos;
    for (std::string cell; tabs ? static_cast<bool>(std::getline(stream, cell, '\t'))
                                : static_cast<bool>(stream >> cell);)
        cells.emplace_back(trimmed(cell));
    return cells;
}

/// `GPU3` -> 3
std::optional<int> gpu_number(const std::string& cell) {
    return cell.starts_with("GPU") ? counted_number(std::string_view(cell).substr(3))
                                   : std::nullopt;
}

/// What a way to group devices is worth: pairs by NVLink, links, pairs of a node.
using Worth = std::tuple<int, int, int>;

Worth operator+(const Worth& a, const Worth& b) {
    return {std::get<0>(a) + std::get<0>(b), std::get<1>(a) + std::get<1>(b),
            std::get<2>(a) + std::get<2>(b)};
}

/// The best grouping of devices 0 .. n - 1, by what each pair is worth.
class Grouping {
public:
    Grouping(std::vector<std::vector<Worth>> pairs, std::size_t size)
        : pairs_(std::move(pairs)), size_(size), known_(std::size_t{1} << pairs_.size()) {}

    std::vector<std::vector<std::size_t>> best() {
        const auto all = static_cast<std::uint32_t>(known_.size() - 1);
        (void)look_at(all);
        std::vector<std::vector<std::size_t>> groups;
        for (std::uint32_t left = all; left != 0; left &= ~known_[left].first)
            if (std::vector<std::size_t> group = members(known_[left].first); group.size() == size_)
                groups.push_back(std::move(group));
        std::stable_sort(groups.begin(), groups.end(), [&](const auto& a, const auto& b) {
            return worth_within(a) > worth_within(b);
        });
        return groups;
    }

private:
    static std::uint32_t set_of(const std::vector<std::size_t>& devices) {
        std::uint32_t set = 0;
        for (const std::size_t one : devices) set |= std::uint32_t{1} << one;
        return set;
    }
    static std::vector<std::size_t> members(std::uint32_t set) {
        std::vector<std::size_t> result;
        for (std::size_t i = 0; i < 32; ++i)
            if ((set >> i & 1U) != 0) result.push_back(i);
        return result;
    }
    [[nodiscard]] Worth worth_within(const std::vector<std::size_t>& group) const {
        Worth sum{};
        for (std::size_t a = 0; a < group.size(); ++a)
            for (std::size_t b = a + 1; b < group.size(); ++b)
                sum = sum + pairs_[group[a]][group[b]];
        return sum;
    }
    /// What the devices in `left` are worth, in the best way; remembers the group of the first one,
    /// which is it alone where it is left over.
    Worth look_at(std::uint32_t left) {
        if (left == 0) return {};
        if (known_[left].looked_at) return known_[left].worth;
        const std::vector<std::size_t> devices = members(left);
        Known best;
        const auto consider = [&](std::uint32_t group, const Worth& worth) {
            const Worth sum = worth + look_at(left & ~group);
            if (best.looked_at && !(sum > best.worth)) return;
            best = {true, group, sum};
        };
        std::vector<std::size_t> group{devices.front()};
        const auto extend = [&](const auto& self, std::size_t from) -> void {
            if (group.size() == size_) return consider(set_of(group), worth_within(group));
            for (std::size_t i = from; i < devices.size(); ++i) {
                group.push_back(devices[i]);
                self(self, i + 1);
                group.pop_back();
            }
        };
        if (devices.size() >= size_) extend(extend, 1);
        if (devices.size() % size_ != 0) consider(set_of({devices.front()}), {});
        known_[left] = best;
        return best.worth;
    }

    struct Known {
        bool looked_at = false;
        std::uint32_t first = 0;
        Worth worth{};
    };
    std::vector<std::vector<Worth>> pairs_;
    std::size_t size_;
    std::vector<Known> known_;  ///< by the set of devices that are left
};

/// nvidia-smi's number of a device that a list names.
std::optional<int> device_number(const std::string& name, const FoundDevices& found) {
    if (const auto number = counted_number(name)) return number;
    for (const Device& device : found.all)
        if (name.starts_with("GPU-") && device.uuid.starts_with(name)) return device.index;
    return std::nullopt;
}

Worth worth_of_pair(std::optional<int> a, std::optional<int> b, const DeviceTopology& topology) {
    if (!a || !b) return {};
    const auto links = topology.nvlinks.find({std::min(*a, *b), std::max(*a, *b)});
    const auto node_a = topology.numa_nodes.find(*a);
    const auto node_b = topology.numa_nodes.find(*b);
    const bool near = node_a != topology.numa_nodes.end() && node_b != topology.numa_nodes.end() &&
                      node_a->second == node_b->second;
    const int count = links == topology.nvlinks.end() ? 0 : links->second;
    return {count > 0 ? 1 : 0, count, near ? 1 : 0};
}

std::string numbers_text(const std::set<int>& numbers) {
    std::string text;
    for (const int one : numbers) text += (text.empty() ? "" : ",") + std::to_string(one);
    return text;
}

}  // namespace

std::string DeviceTopology::text() const {
    std::vector<std::set<int>> islands;  // what NVLink joins, over others too
    for (const auto& [pair, links] : nvlinks) {
        std::set<int> joined{pair.first, pair.second};
        std::erase_if(islands, [&, &ends = pair](const std::set<int>& island) {
            const bool touched = island.contains(ends.first) || island.contains(ends.second);
            if (touched) joined.insert(island.begin(), island.end());
            return touched;
        });
        islands.push_back(std::move(joined));
    }
    std::sort(islands.begin(), islands.end());
    std::string result;
    for (const std::set<int>& island : islands)
        result += (result.empty() ? "NVLink joins " : "; NVLink joins ") + numbers_text(island);
    std::map<std::set<int>, std::set<int>> nodes;
    for (const auto& [gpu, near] : numa_nodes) nodes[near].insert(gpu);
    for (const auto& [near, gpus] : nodes)
        result += (result.empty() ? "" : "; ") + std::string("NUMA node ") + numbers_text(near) +
                  ": " + numbers_text(gpus);
    return result;
}

DeviceTopology parse_topology(const std::string& text) {
    DeviceTopology result;
    std::istringstream lines(text);
    std::vector<std::optional<int>> columns;  // the GPU of each, none of an adapter's
    std::size_t numa_column = 0;
    for (std::string line; std::getline(lines, line);) {
        line = without_escapes(line);
        std::vector<std::string> cells = row_cells(line);
        const bool of_gpu = !cells.empty() && gpu_number(cells.front()).has_value();
        if (columns.empty()) {
            if (line.find("CPU Affinity") == std::string::npos) continue;
            const bool tabs = line.find('\t') != std::string::npos;
            const std::size_t first = tabs && !of_gpu ? 1 : 0;  // above the names of the rows
            for (std::size_t i = first; i < cells.size() && !cells[i].starts_with("CPU"); ++i)
                columns.push_back(gpu_number(cells[i]));
            if (std::none_of(columns.begin(), columns.end(),
                             [](const auto& column) { return column.has_value(); }))
                columns.clear();
            if (line.find("NUMA Affinity") != std::string::npos) numa_column = columns.size() + 2;
            continue;
        }
        if (!of_gpu) continue;
        const int row = gpu_number(cells.front()).value_or(0);
        for (std::size_t i = 0; i < columns.size() && i + 1 < cells.size(); ++i) {
            const std::string& cell = cells[i + 1];
            const auto links = cell.starts_with("NV")
                                   ? counted_number(std::string_view(cell).substr(2))
                                   : std::nullopt;
            if (columns[i] && links && *links > 0 && *columns[i] != row)
                result.nvlinks[{std::min(row, *columns[i]), std::max(row, *columns[i])}] = *links;
        }
        if (numa_column == 0 || numa_column >= cells.size()) continue;
        if (std::set<int> nodes = listed_numbers(cells[numa_column]); !nodes.empty())
            result.numa_nodes[row] = std::move(nodes);
    }
    return result;
}

DeviceTopology find_topology(const std::string& nvidia_smi, std::chrono::milliseconds within) {
    const auto file = find_program(nvidia_smi);
    if (file.empty()) return {};
    try {
        constexpr std::size_t output_bytes = 1UL << 20UL;
        const RanCommand command = run_command({file.string(), "topo", "-m"}, within, output_bytes);
        return command.end == RanCommand::End::exited && command.exit_code == 0
                   ? parse_topology(command.output)
                   : DeviceTopology{};
    } catch (const IoError&) {
        return {};
    }
}

std::vector<std::vector<std::string>> groups_of_devices(const std::string& gpus,
                                                        const FoundDevices& found,
                                                        std::int64_t count,
                                                        const DeviceTopology& topology) {
    std::vector<std::string> known;
    if (const auto named = named_gpus(gpus)) known = *named;
    else
        for (const Device& device : found.visible) known.push_back(std::to_string(device.index));
    if (known.empty()) return {};
    const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(count, 1));
    if (known.size() < wanted)
        throw IoError("the configuration takes " + std::to_string(wanted) +
                      " devices, and there are " + std::to_string(known.size()));
    std::vector<std::vector<std::string>> result(known.size() / wanted);
    constexpr std::size_t most = 16;
    if (topology.empty() || wanted == 1 || known.size() > most) {
        for (std::size_t i = 0; i < result.size() * wanted; ++i)
            result[i / wanted].push_back(known[i]);
        return result;
    }
    std::vector<std::optional<int>> numbers;
    for (const std::string& name : known) numbers.push_back(device_number(name, found));
    std::vector<std::vector<Worth>> pairs(known.size(), std::vector<Worth>(known.size()));
    for (std::size_t a = 0; a < known.size(); ++a)
        for (std::size_t b = 0; b < known.size(); ++b)
            if (a != b) pairs[a][b] = worth_of_pair(numbers[a], numbers[b], topology);
    result.clear();
    for (const auto& group : Grouping(std::move(pairs), wanted).best()) {
        result.emplace_back();
        for (const std::size_t member : group) result.back().push_back(known[member]);
    }
    return result;
}

std::vector<std::vector<std::string>> shares_of_devices(std::vector<std::string> names,
                                                        const FoundDevices& found,
                                                        const std::vector<std::int64_t>& counts,
                                                        const DeviceTopology& topology) {
    std::vector<std::size_t> order(counts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return counts[a] > counts[b]; });
    std::vector<std::vector<std::string>> result(counts.size());
    for (const std::size_t i : order) {
        if (counts[i] == 0) continue;
        std::string list;
        for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
        const auto groups = groups_of_devices(list, found, counts[i], topology);
        if (names.empty() || groups.empty())
            throw IoError("the engines take more devices than there are");
        result[i] = groups.front();
        for (const std::string& device : result[i]) std::erase(names, device);
    }
    return result;
}

std::vector<int> cores_near(const std::vector<std::string>& devices, const FoundDevices& found,
                            const DeviceTopology& topology, const std::filesystem::path& nodes) {
    std::set<int> near;
    for (const std::string& name : devices) {
        const auto number = device_number(name, found);
        const auto known = number ? topology.numa_nodes.find(*number) : topology.numa_nodes.end();
        if (known == topology.numa_nodes.end()) return {};
        for (const int node : known->second) {
            std::ifstream stream(nodes / ("node" + std::to_string(node)) / "cpulist");
            std::string cores;
            if (!std::getline(stream, cores)) return {};
            near.merge(listed_numbers(cores));
        }
    }
    cpu_set_t mine;
    CPU_ZERO(&mine);
    if (sched_getaffinity(0, sizeof(mine), &mine) != 0) return {};
    std::vector<int> result;
    for (const int core : near)
        if (core < CPU_SETSIZE && CPU_ISSET(core, &mine)) result.push_back(core);
    return static_cast<int>(result.size()) == CPU_COUNT(&mine) ? std::vector<int>{} : result;
}

namespace {

using MachineJson = nlohmann::ordered_json;

MachineJson json_of_devices(const std::vector<Device>& devices) {
    MachineJson result = MachineJson::array();
    for (const Device& device : devices)
        result.push_back({{"index", device.index},
                          {"uuid", device.uuid},
                          {"name", device.name},
                          {"memory_bytes", device.memory_bytes},
                          {"driver", device.driver}});
    return result;
}

std::vector<Device> devices_from(const MachineJson& list) {
    std::vector<Device> result;
    for (const MachineJson& one : list)
        result.push_back({one.at("index").get<int>(), one.at("uuid").get<std::string>(),
                          one.at("name").get<std::string>(),
                          one.at("memory_bytes").get<std::uint64_t>(),
                          one.at("driver").get<std::string>()});
    return result;
}

}  // namespace

FoundMachine find_machine() {
    FoundMachine machine{find_devices()};
    if (machine.devices.all.size() > 1) machine.topology = find_topology();
    return machine;
}

std::string json_of(const FoundMachine& machine) {
    MachineJson links = MachineJson::array();
    for (const auto& [pair, count] : machine.topology.nvlinks)
        links.push_back({pair.first, pair.second, count});
    MachineJson nodes = MachineJson::array();
    for (const auto& [device, near] : machine.topology.numa_nodes) nodes.push_back({device, near});
    const MachineJson object{{"all", json_of_devices(machine.devices.all)},
                             {"visible", json_of_devices(machine.devices.visible)},
                             {"nvlinks", links},
                             {"numa_nodes", nodes}};
    return object.dump(-1, ' ', false, MachineJson::error_handler_t::replace);
}

FoundMachine machine_from_json(std::string_view json) {
    try {
        const auto object = MachineJson::parse(json, RefuseDeep());
        FoundMachine machine;
        machine.devices.all = devices_from(object.at("all"));
        machine.devices.visible = devices_from(object.at("visible"));
        for (const MachineJson& link : object.at("nvlinks"))
            machine.topology.nvlinks[{link.at(0).get<int>(), link.at(1).get<int>()}] =
                link.at(2).get<int>();
        for (const MachineJson& node : object.at("numa_nodes"))
            node.at(1).get_to(machine.topology.numa_nodes[node.at(0).get<int>()]);
        return machine;
    } catch (const nlohmann::json::exception& error) {
        throw ParseError(std::string("not a machine as a journal keeps it: ") + error.what());
    }
}

}  // namespace servetune
