// SPDX-License-Identifier: Apache-2.0
// How GPUs are joined, as nvidia-smi's table tells it, and which ones an engine gets for that.
#include "servetune/detail/host/topology.hpp"
#include "servetune/error.hpp"
#include "support/test.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

using NameGroups = std::vector<std::vector<std::string>>;

/// The table of `links[a][b]`, as nvidia-smi prints it; `nodes`: of each GPU, CPU and NUMA
/// affinity.
std::string topology_table(const std::vector<std::vector<std::string>>& links,
                           const std::vector<std::string>& nodes,
                           const std::vector<std::string>& adapters = {}) {
    std::string text;
    for (std::size_t i = 0; i < links.size(); ++i) text += "\tGPU" + std::to_string(i);
    for (const std::string& adapter : adapters) text += "\t" + adapter;
    text += "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n";
    for (std::size_t a = 0; a < links.size(); ++a) {
        text += "GPU" + std::to_string(a);
        for (const std::string& link : links[a]) text += "\t" + (link == "X" ? " X " : link);
        for (std::size_t i = 0; i < adapters.size(); ++i) text += "\tNODE";
        text += "\t" + nodes[a] + "\t\tN/A\n";
    }
    for (const std::string& adapter : adapters) {
        text += adapter;
        for (std::size_t i = 0; i < links.size() + adapters.size(); ++i) text += "\tNODE";
        text += "\t\t\t\t\n";
    }
    return text +
           "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # "
           "NVLinks\n\nNIC Legend:\n\n  NIC0: mlx5_0\n";
}

/// All GPUs joined alike, half of them on each of two nodes.
std::string even_table(std::size_t count, const std::string& link) {
    std::vector<std::vector<std::string>> links(count, std::vector<std::string>(count, link));
    std::vector<std::string> nodes;
    for (std::size_t i = 0; i < count; ++i) {
        links[i][i] = "X";
        nodes.emplace_back(i < count / 2 ? "0-55,112-167\t0" : "56-111,168-223\t1");
    }
    return topology_table(links, nodes, {"NIC0", "mlx5_1"});
}

FoundDevices devices_here(int count) {
    FoundDevices found;
    for (int i = 0; i < count; ++i)
        found.all.push_back(
            {i, "GPU-" + std::string(1, static_cast<char>('a' + i)) + "1", "NVIDIA H100", 1});
    found.visible = found.all;
    return found;
}

std::string grouped(const DeviceTopology& topology, int devices, std::int64_t count,
                    const std::string& gpus = "") {
    unsetenv("CUDA_VISIBLE_DEVICES");
    std::string text;
    for (const auto& group : groups_of_devices(gpus, devices_here(devices), count, topology)) {
        text += text.empty() ? "" : " ";
        for (const std::string& name : group) text += (&name == &group.front() ? "" : ",") + name;
    }
    return text;
}

}  // namespace

TEST_CASE(
    "topology: links and NUMA nodes are read from the table, adapters and legends are passed "
    "over") {
    const DeviceTopology eight = parse_topology(even_table(8, "NV18"));
    CHECK(eight.nvlinks.size() == 28);
    CHECK(eight.nvlinks.at({2, 7}) == 18);
    CHECK(eight.numa_nodes.at(0) == std::set<int>{0});
    CHECK(eight.numa_nodes.at(7) == std::set<int>{1});
    CHECK(eight.text() ==
          "NVLink joins 0,1,2,3,4,5,6,7; NUMA node 0: 0,1,2,3; NUMA node 1: 4,5,6,7");

    const DeviceTopology pairs =
        parse_topology(topology_table({{"X", "SYS", "NV4", "SYS"},
                                       {"SYS", "X", "SYS", "NV4"},
                                       {"NV4", "SYS", "X", "PIX"},
                                       {"SYS", "NV4", "PIX", "X"}},
                                      {"0-23\t0", "24-47\t1", "0-23\t0-1", "N/A\tN/A"}));
    CHECK(pairs.nvlinks == std::map<std::pair<int, int>, int>{{{0, 2}, 4}, {{1, 3}, 4}});
    CHECK(pairs.numa_nodes == std::map<int, std::set<int>>{{0, {0}}, {1, {1}}, {2, {0, 1}}});
    CHECK(pairs.text() ==
          "NVLink joins 0,2; NVLink joins 1,3; NUMA node 0: 0; NUMA node 0,1: 2; NUMA node 1: 1");
}

TEST_CASE(
    "topology: tables of other versions and machines are read too, what is none tells nothing") {
    // The header is underlined; a name stands for a row that is no GPU's.
    const DeviceTopology underlined = parse_topology(
        "\t\x1b[4mGPU0\tGPU1\tmlx5_0\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
        "GPU0\t X \tNV12\tPIX\t0-31\t0\nGPU1\tNV12\t X \tSYS\t32-63\t1\n"
        "mlx5_0\tPIX\tSYS\t X \t\t\n");
    CHECK(underlined.nvlinks.at({0, 1}) == 12);
    CHECK(underlined.numa_nodes.at(1) == std::set<int>{1});
    // Older drivers have no NUMA column.
    const DeviceTopology older =
        parse_topology("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV2\t0-19\nGPU1\tNV2\t X \t0-19\n");
    CHECK(older.nvlinks.at({0, 1}) == 2);
    CHECK(older.numa_nodes.empty());
    // Somebody's copy with blanks in the place of tabs.
    const DeviceTopology blanks = parse_topology(
        "        GPU0    GPU1    CPU Affinity    NUMA Affinity\n"
        "GPU0     X      NV12    0-31            0\nGPU1    NV12     X      32-63           1\n");
    CHECK(blanks.nvlinks.at({0, 1}) == 12);
    CHECK(blanks.numa_nodes.at(1) == std::set<int>{1});
    // A virtual machine without affinity.
    const DeviceTopology guest = parse_topology(
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\t X \tPHB\t\tN/A\t\tN/A\nGPU1\tPHB\t X \t\tN/A\t\tN/A\n");
    CHECK(guest.empty());
    CHECK(guest.text().empty());
    for (const char* none :
         {"", "\n\n", "Failed to initialize NVML: Driver/library version mismatch\n",
          "No devices were found\n", "GPU0\t X \tNV12\nGPU1\tNV12\t X \n",
          "\tGPU0\tGPU1\tCPU Affinity\nGPUx\tNV\tNV-1\nGPU0\n\nGPU1\tNV99999999999\t\x1b[",
          "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNVx\t0-1\t5-2\nGPU1\tSYS\t X "
          "\t0-1\t0-99999999\n"}) {
        INFO(none);
        CHECK(parse_topology(none).empty());
    }
}

TEST_CASE(
    "topology: devices that NVLink joins are together, then those of a node, then neighbours") {
    const DeviceTopology switched = parse_topology(even_table(8, "NV18"));
    CHECK(grouped(switched, 8, 1) == "0 1 2 3 4 5 6 7");
    CHECK(grouped(switched, 8, 2) == "0,1 2,3 4,5 6,7");
    CHECK(grouped(switched, 8, 3) == "0,1,2 4,5,6");
    CHECK(grouped(switched, 8, 4) == "0,1,2,3 4,5,6,7");
    CHECK(grouped(switched, 8, 8) == "0,1,2,3,4,5,6,7");
    // The list of the user orders, and nothing that is not in it is taken.
    CHECK(grouped(switched, 8, 2, "1,4,2,7") == "1,2 4,7");
    CHECK(grouped(switched, 8, 2, "7,6,1") == "7,6");
    CHECK(grouped(switched, 8, 2, "GPU-e1,GPU-a1,GPU-f1,1") == "GPU-e1,GPU-f1 GPU-a1,1");
    CHECK(grouped(switched, 8, 3, "0,5,6,1,2") == "0,1,2");
    CHECK(message_of<IoError>([&] { (void)grouped(switched, 8, 3, "0,1"); }) ==
          "the configuration takes 3 devices, and there are 2");

    const DeviceTopology bridged =
        parse_topology(topology_table({{"X", "SYS", "NV4", "SYS"},
                                       {"SYS", "X", "SYS", "NV4"},
                                       {"NV4", "SYS", "X", "SYS"},
                                       {"SYS", "NV4", "SYS", "X"}},
                                      {"0-23\t0", "0-23\t0", "24-47\t1", "24-47\t1"}));
    CHECK(grouped(bridged, 4, 2) == "0,2 1,3");
    CHECK(grouped(bridged, 4, 2, "0,1,3") == "1,3");
    CHECK(grouped(bridged, 4, 4) == "0,1,2,3");
    // A chain 0 - 1 - 2 - 3, whose middle is joined twice: two joined pairs are better than the
    // best one.
    const DeviceTopology chain =
        parse_topology(topology_table({{"X", "NV1", "SYS", "SYS"},
                                       {"NV1", "X", "NV2", "SYS"},
                                       {"SYS", "NV2", "X", "NV1"},
                                       {"SYS", "SYS", "NV1", "X"}},
                                      {"0-23\t0", "0-23\t0", "0-23\t0", "0-23\t0"}));
    CHECK(grouped(chain, 4, 2) == "0,1 2,3");
    CHECK(grouped(chain, 3, 2) == "1,2");  // of three, the pair with more links
    // No NVLink: the node decides.
    const DeviceTopology plain = parse_topology(even_table(4, "SYS"));
    CHECK(grouped(plain, 4, 2, "0,2,1,3") == "0,1 2,3");
    // Nothing is known of them, or there are too many.
    CHECK(grouped({}, 4, 2, "0,2,1,3") == "0,2 1,3");
    CHECK(grouped(switched, 8, 2, "MIG-1,MIG-2,MIG-3,MIG-4") == "MIG-1,MIG-2 MIG-3,MIG-4");
    std::string many = "0,4,1,5";
    for (int i = 8; i < 30; ++i) many += "," + std::to_string(i);
    CHECK(grouped(switched, 8, 2, many).starts_with("0,4 1,5 8,9 "));
    CHECK(grouped(parse_topology(even_table(16, "NV12")), 16, 3) ==
          "0,1,2 3,4,5 9,10,11 12,13,14 6,7,8");
}

TEST_CASE(
    "topology: an engine's cores are those of the nodes of its devices, of those that may be "
    "used") {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    REQUIRE(sched_getaffinity(0, sizeof(mine), &mine) == 0);
    std::vector<int> cores;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &mine)) cores.push_back(core);
    if (cores.size() < 2) return;  // nothing to divide
    const std::string first = std::to_string(cores.front());
    std::string others;
    for (std::size_t i = 1; i < cores.size(); ++i)
        others += (others.empty() ? "" : ",") + std::to_string(cores[i]);
    const TemporaryFolder nodes;
    for (const char* node : {"node0", "node1", "node2"})
        std::filesystem::create_directories(nodes.path() / node);
    nodes.write("node0/cpulist", first + ",1023\n");  // the second may not be used
    nodes.write("node1/cpulist", others + "\n");
    nodes.write("node2/cpulist", "\n");  // memory without cores
    const DeviceTopology topology{{}, {{0, {0}}, {1, {1}}, {2, {0, 2}}, {3, {2}}, {4, {7}}}};
    const auto near = [&](const std::vector<std::string>& devices) {
        return cores_near(devices, devices_here(6), topology, nodes.path());
    };
    CHECK(near({"0"}) == std::vector<int>{cores.front()});
    CHECK(near({"GPU-a1"}) == std::vector<int>{cores.front()});
    CHECK(near({"1"}) == std::vector<int>(cores.begin() + 1, cores.end()));
    CHECK(near({"2", "0"}) == std::vector<int>{cores.front()});
    CHECK(near({"0", "1"}).empty());      // all that may be used
    CHECK(near({"3"}).empty());           // a node without cores
    CHECK(near({"4"}).empty());           // a node that is not there
    CHECK(near({"0", "5"}).empty());      // nothing is known of one
    CHECK(near({"0", "MIG-1"}).empty());  // nor of this
    CHECK(near({}).empty());
}
