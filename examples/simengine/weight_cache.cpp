// SPDX-License-Identifier: Apache-2.0
#include "weight_cache.hpp"

#include "base/present.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <sstream>
#include <tuple>

namespace simengine {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Local = asio::local::stream_protocol;

/// In the folder for sockets, one for the first device that the process sees.
std::string socket_in(const std::string& folder) {
    const char* visible =
        std::getenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe): there is one thread
    std::string device = visible == nullptr ? "0" : visible;
    device = device.substr(0, device.find(','));
    return folder + "/vllm_weight_cache_gpu" + device + ".sock";
}

/// vLLM's default: of this user, below the folder for temporary files.
std::string usual_folder() {
    const char* temporary =
        std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): there is one thread
    return fmt::format("{}/vllm_weight_cache_{}", temporary == nullptr ? "/tmp" : temporary,
                       getuid());
}

/// Which weights these are, as far as the engines compare: what kind, not what numbers.
std::string kind_of_weights(const EngineSetup& setup) {
    const EngineCommand& command = setup.command;
    return fmt::format("{} {} {} {:.0f}", command.model, command.value("--dtype").value_or("auto"),
                       command.value("--quantization").value_or("none"),
                       servetune::present(setup.cost).memory().weights_bytes);
}

/// The daemon. Its socket is there only once it holds the weights.
class Holder {
public:
    Holder(const EngineSetup& setup, const Options& options) : setup_(setup), options_(options) {}
    int run() {
        if (!options_.devices.empty()) {
            const auto count =
                static_cast<std::size_t>(servetune::present(setup_.cost).settings().devices());
            if (const std::string why = claim_devices(options_.devices, count, DevicePart::weights);
                !why.empty()) {
                fmt::print(stderr, "{}\n", why);
                return 1;
            }
        }
        signals_.async_wait([this](const error_code& error, int) {
            if (!error) context_.stop();
        });
        const double seconds = seconds_of_weights(setup_) / options_.start_scale;
        timer_.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(seconds)));
        timer_.async_wait([this](const error_code& error) {
            if (!error) listen();
        });
        context_.run();
        if (acceptor_.is_open()) (void)unlink(socket_.c_str());
        return exit_code_;
    }

private:
    void listen() {
        error_code trouble;
        (void)unlink(socket_.c_str());
        acceptor_.open(Local(), trouble);
        if (!trouble) acceptor_.bind(Local::endpoint(socket_), trouble);
        if (!trouble) acceptor_.listen(asio::socket_base::max_listen_connections, trouble);
        if (trouble) {
            fmt::print(stderr, "OSError: {}: {}\n", socket_, trouble.message());
            exit_code_ = 1;
            return context_.stop();
        }
        fmt::print(stderr,
                   "===== Weight cache daemon READY: node 1/1 serving {} local rank(s) x 1 role(s) "
                   "in {} =====\n",
                   servetune::present(setup_.cost).settings().devices(), setup_.command.folder);
        accept();
    }
    void accept() {
        acceptor_.async_accept([this](const error_code& error, Local::socket client) {
            if (error) return;
            error_code gone;
            (void)asio::write(client, asio::buffer(key_), gone);
            accept();
        });
    }

    const EngineSetup& setup_;
    const Options& options_;
    const std::string socket_ = socket_in(setup_.command.folder);
    const std::string key_ = kind_of_weights(setup_) + "\n";
    asio::io_context context_{1};
    asio::signal_set signals_{context_, SIGTERM, SIGINT};
    asio::steady_timer timer_{context_};
    Local::acceptor acceptor_{context_};
    int exit_code_ = 0;
};

/// Nothing: all that there are.
std::optional<std::vector<std::string>> visible_devices() {
    const char* list = std::getenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe)
    if (list == nullptr) return std::nullopt;
    std::vector<std::string> names;
    std::istringstream stream(list);
    for (std::string name; std::getline(stream, name, ',');) names.push_back(name);
    return names;
}

}  // namespace

PreloadWords read_preload(const std::vector<std::string>& words) {
    const auto refused = [](const std::string& why) {
        return CommandRefused(
            "usage: vllm preload --model <model> [options]\nvllm preload: error: " + why + "\n", 2);
    };
    PreloadWords result{{}, usual_folder()};
    std::string model;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const bool of_model = words[i] == "--model";
        if (!of_model && words[i] != "--weight-cache-socket-dir") {
            if (words[i] == "ipc_cache" || words[i].ends_with("=ipc_cache"))
                throw refused("the weight cache daemon itself must load from disk");
            result.engine_words.push_back(words[i]);
            continue;
        }
        if (++i == words.size())
            throw refused("argument " + words[i - 1] + ": expected one argument");
        (of_model ? model : result.folder) = words[i];
    }
    if (!model.empty()) result.engine_words.insert(result.engine_words.begin(), model);
    return result;
}

int hold_weights(const EngineSetup& setup, const Options& options) {
    return Holder(setup, options).run();
}

double seconds_of_weights(const EngineSetup& setup) {
    const servetune::CostModel& cost = servetune::present(setup.cost);
    return cost.memory().weights_bytes / cost.target().traits.load_bytes_per_second;
}

WeightsTaken take_weights(const EngineSetup& setup) {
    const EngineCommand& command = setup.command;
    if (command.value("--load-format").value_or("auto") != "ipc_cache") return {};
    const auto more = nlohmann::json::parse(
        command.value("--model-loader-extra-config").value_or("{}"), nullptr, false);
    const bool falls_back = !more.is_object() || more.value("fallback", true);
    const std::string socket =
        socket_in(more.is_object() ? more.value("socket_dir", usual_folder()) : usual_folder());
    const auto unusable = [&](const std::string& why) {
        if (falls_back)
            return WeightsTaken{
                false,
                {"WARNING Weight cache unusable (" + why + "); falling back to disk loading"}};
        return WeightsTaken{false, {"RuntimeError: " + why}, true};
    };
    asio::io_context context;
    Local::socket daemon(context);
    error_code trouble;
    daemon.connect(Local::endpoint(socket), trouble);
    if (trouble)
        return unusable("Weight cache socket " + socket + " is unavailable: " + trouble.message());
    asio::streambuf buffer;
    asio::read_until(daemon, buffer, '\n', trouble);
    std::istream stream(&buffer);
    std::string key;
    std::getline(stream, key);
    if (key != kind_of_weights(setup))
        return unusable("WeightCacheKey mismatch on fields: [" + key + "] is not [" +
                        kind_of_weights(setup) + "]");
    return {true, {"INFO Mapped 399 tensors from the weight cache daemon (zero_copy mode)"}};
}

std::string claim_devices(const std::filesystem::path& folder, std::size_t count, DevicePart part) {
    std::vector<std::string> names;
    if (const auto visible = visible_devices()) names = *visible;
    else
        for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
    if (names.size() < count)
        return "ValueError: World size (" + std::to_string(count) +
               ") is larger than the number of available GPUs (" + std::to_string(names.size()) +
               ") in this node.";
    std::string taken;
    for (std::size_t i = 0; i < count; ++i) {
        if (names[i].find('/') != std::string::npos)
            return "CUDA error: invalid device ordinal: " + names[i];
        for (const auto& [wanted, called, whose] :
             {std::tuple(DevicePart::engine, "gpu-", "another engine's"),
              std::tuple(DevicePart::weights, "weights-of-gpu-", "full of a daemon's weights")}) {
            if ((static_cast<unsigned>(part) & static_cast<unsigned>(wanted)) == 0) continue;
            const int file = open((folder / (called + names[i])).c_str(), O_CREAT | O_RDWR,
                                  0666);  // open until the process ends
            if (file < 0) return "CUDA error: no device " + names[i] + " in " + folder.string();
            if (flock(file, LOCK_EX | LOCK_NB) != 0) {
                close(file);
                return "torch.OutOfMemoryError: CUDA out of memory. GPU " + names[i] + " is " +
                       whose + ".";
            }
        }
        taken += (i == 0 ? "" : ",") + names[i];
    }
    if (part != DevicePart::weights)
        std::ofstream(folder / "claims", std::ios::app)
            << count << " of " << names.size() << ": " << taken << "\n";
    return {};
}

}  // namespace simengine
