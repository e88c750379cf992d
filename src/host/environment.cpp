// SPDX-License-Identifier: Apache-2.0
#include "environment.hpp"

#include "base/variable_name.hpp"
#include "servetune/detail/base/number_text.hpp"

#include <sched.h>

#include <charconv>
#include <set>
#include <utility>

namespace servetune {
namespace {

namespace fs = std::filesystem;

/// Beginnings of variables that change the speed of any engine, with where that is documented.
constexpr std::array<std::string_view, 26> general_prefixes{
    "OMP_",                    // OpenMP API 5.2, chapter 21
    "GOMP_",                   // GNU libgomp manual, environment variables
    "KMP_",                    // LLVM OpenMP runtime, environment variables
    "MKL_",                    // Intel oneMKL developer guide, environment variables
    "OPENBLAS_",               // OpenBLAS user manual, runtime variables
    "GOTO_NUM_THREADS",        // OpenBLAS user manual, runtime variables
    "RAYON_NUM_THREADS",       // rayon, FAQ: number of threads (tokenizers)
    "TOKENIZERS_PARALLELISM",  // Hugging Face tokenizers, utils/parallelism.rs
    "CUDA_",                   // CUDA C++ programming guide, environment variables
    "CUBLAS",                  // cuBLAS documentation: CUBLAS_WORKSPACE_CONFIG, CUBLASLT_...
    "CUDNN_",                  // cuDNN documentation, environment variables
    "NVIDIA_TF32_OVERRIDE",    // cuBLAS documentation, TF32
    "NCCL_",                   // NCCL user guide, environment variables
    "RCCL_",                   // RCCL documentation, environment variables
    "HIP_",                    // HIP documentation, environment variables
    "ROCR_",                   // ROCR runtime, environment variables
    "HSA_",                    // ROCR runtime, environment variables
    "GPU_MAX_HW_QUEUES",       // HIP documentation, environment variables
    "PYTORCH_",                // PyTorch, CUDA semantics: PYTORCH_CUDA_ALLOC_CONF and others
    "TORCH",                   // PyTorch, environment variables: TORCH_..., TORCHINDUCTOR_...
    "TRITON_",                 // Triton, README: environment variables
    "UCX_",                    // OpenUCX documentation, environment variables
    "MALLOC_",                 // mallopt(3)
    "GLIBC_TUNABLES",          // glibc manual, tunables
    "LD_PRELOAD",              // ld.so(8); another allocator is loaded so
    "LD_LIBRARY_PATH",         // ld.so(8); other libraries are loaded so
};

std::string first_line_of(const fs::path& file) {
    std::ifstream stream(file);
    std::string line;
    std::getline(stream, line);
    return std::string(trimmed(line));
}

std::optional<double> number_in_file(const fs::path& file) {
    const std::string text = first_line_of(file);
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                    : std::nullopt;
}

/// All that the policies of the CPUs say, each once: `performance`, or `performance, powersave`.
std::string governors(const fs::path& cpufreq) {
    std::set<std::string> all;
    std::error_code none;
    for (const auto& policy : fs::directory_iterator(cpufreq, none))
        if (policy.path().filename().string().starts_with("policy"))
            if (std::string one = first_line_of(policy.path() / "scaling_governor"); !one.empty())
                all.insert(std::move(one));
    std::string result;
    for (const std::string& one : all) result += (result.empty() ? "" : ", ") + one;
    return result;
}

/// `on` or `off`, as one of the two drivers tells; empty where none does.
std::string boost_state(const fs::path& cpu) {
    if (const std::string on = first_line_of(cpu / "cpufreq/boost"); !on.empty())
        return on == "1" ? "on" : "off";
    if (const std::string off = first_line_of(cpu / "intel_pstate/no_turbo"); !off.empty())
        return off == "0" ? "on" : "off";
    return "";
}

/// The control group of this process in the unified hierarchy (cgroups(7)).
fs::path group_of_this_process(const fs::path& root) {
    std::ifstream stream(root / "proc/self/cgroup");
    for (std::string line; std::getline(stream, line);)
        if (line.starts_with("0::")) return line.substr(3);
    return "/";
}

/// The smallest of what a group and those around it have. In a container the path may be that of
/// the host, which is not there: then the mounted root is its own.
template <class Read>
std::optional<double> smallest(const fs::path& mounted, const fs::path& group, const Read& read) {
    std::optional<double> result;
    fs::path at = mounted / group.relative_path();
    std::error_code none;
    if (!fs::exists(at, none)) at = mounted;
    for (;; at = at.parent_path()) {
        if (const auto one = read(at)) result = std::min(result.value_or(*one), *one);
        if (at == mounted || !at.has_relative_path()) return result;
    }
}

/// Kernel documentation, admin-guide/cgroup-v2: cpu.max is "QUOTA PERIOD" or "max PERIOD",
/// memory.max bytes or "max". Of version 1 nothing is told.
void add_limits(const fs::path& root, Environment& result) {
    const fs::path mounted = root / "sys/fs/cgroup";
    const fs::path group = group_of_this_process(root);
    const auto cpus = smallest(mounted, group, [](const fs::path& at) -> std::optional<double> {
        std::ifstream stream(at / "cpu.max");
        double quota = 0, period = 0;
        if (!(stream >> quota >> period) || !(period > 0)) return std::nullopt;
        return quota / period;
    });
    const auto bytes = smallest(
        mounted, group, [](const fs::path& at) { return number_in_file(at / "memory.max"); });
    if (cpus) result["cpu limit"] = short_number_text(*cpus, 2) + " cores";
    if (bytes) result["memory limit"] = short_number_text(*bytes / (1 << 20), 2) + " MiB";
}

void add_machine(const EnvironmentOptions& options, Environment& result) {
    const fs::path cpu = options.root / "sys/devices/system/cpu";
    const auto add = [&](const char* name, std::string text) {
        if (!text.empty()) result[name] = std::move(text);
    };
    // The modules' own files, where nvidia-smi does not tell: also AMD's.
    std::string driver = options.driver;
    for (const char* module : {"nvidia", "amdgpu"})
        if (driver.empty())
            driver = first_line_of(options.root / "sys/module" / module / "version");
    add("driver", driver);
    utsname system{};
    if (uname(&system) == 0) add("kernel", system.release);
    add("cpu governor", governors(cpu / "cpufreq"));
    add("cpu boost", boost_state(cpu));
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0)
        add("cores", std::to_string(CPU_COUNT(&cores)));
    add_limits(options.root, result);
}

}  // namespace

bool can_change_speed(std::string_view variable, const std::vector<std::string>& prefixes) {
    if (names_secret(variable)) return false;
    return any_of(general_prefixes,
                  [&](std::string_view prefix) { return variable.starts_with(prefix); }) ||
           any_of(prefixes,
                  [&](const std::string& prefix) { return variable.starts_with(prefix); });
}

Environment environment_now(const EnvironmentOptions& options) {
    Environment result;
    if (options.of_machine) add_machine(options, result);
    if (options.inherits)
        for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
            const std::string_view setting = *entry;
            const auto equals = setting.find('=');
            if (equals != std::string_view::npos &&
                can_change_speed(setting.substr(0, equals), options.prefixes))
                result[std::string(setting.substr(0, equals))] = setting.substr(equals + 1);
        }
    for (const auto& [name, value] : options.set)
        if (can_change_speed(name, options.prefixes)) result[name] = value;
    return result;
}

std::vector<std::string> differences(const Environment& before, const Environment& after) {
    std::vector<std::string> result;
    std::set<std::string> names;
    for (const Environment* one : {&before, &after})
        for (const auto& entry : *one) names.insert(entry.first);
    const auto text = [](const Environment& of, const std::string& name) {
        const auto* found = entry_in(of, name);
        return found == nullptr ? std::string("not set") : *found;
    };
    for (const std::string& name : names)
        if (text(before, name) != text(after, name))
            result.push_back(name + ": " + text(before, name) + " -> " + text(after, name));
    return result;
}

}  // namespace servetune
