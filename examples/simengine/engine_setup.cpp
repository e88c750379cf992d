// SPDX-License-Identifier: Apache-2.0
#include "engine_setup.hpp"

#include "base/nearest.hpp"
#include "base/present.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"
#include "study_file/yaml.hpp"
#include "study_file/yaml_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <memory>

namespace simengine {
namespace {

using servetune::Engine;
using servetune::EngineParameter;
using servetune::FlagFacts;
using Fact = FlagFacts::Fact;
using OrderedJson = nlohmann::ordered_json;

bool is_flag(const std::string& word) {
    return word.starts_with("--") || (word.size() > 1 && word[0] == '-' &&
                                      std::isalpha(static_cast<unsigned char>(word[1])) != 0);
}

/// vLLM takes 16k (thousands) and 16K (1024s) for some of its numbers.
std::string written_out(const std::string& value) {
    constexpr std::string_view suffixes = "kKmMgG";
    const auto suffix = value.empty() ? std::string_view::npos : suffixes.find(value.back());
    const auto number =
        servetune::real_of(value.substr(0, value.size() - std::min<std::size_t>(1, value.size())));
    if (suffix == std::string_view::npos || !number) return value;
    const std::size_t power = suffix / 2 + 1;
    const double unit = std::pow(suffix % 2 == 0 ? 1000.0 : 1024.0, double(power));
    return std::to_string(std::llround(*number * unit));
}

/// One command line while it is read.
class EngineReader {
public:
    EngineReader(const Dialect& dialect, const std::vector<std::string>& words,
                 const FlagFacts& facts, const Engine& engine,
                 const servetune::CommandReader& commands)
        : dialect_(dialect), words_(words), facts_(facts), engine_(engine), commands_(commands) {}

    EngineCommand read() {
        for (at_ = 0; at_ < words_.size(); ++at_) {
            const std::string& word = words_[at_];
            if (is_flag(word)) read_flag(word);
            else if (!dialect_.positional.empty() && command_.model.empty()) command_.model = word;
            else unknown_.push_back(word);
        }
        if (command_.wants_help) return std::move(command_);
        if (!unknown_.empty())
            refuse(said(dialect_, dialect_.unknown_flag,
                        {{"word", unknown_.front()},
                         {"words", fmt::format("{}", fmt::join(unknown_, " "))}}));
        if (!dialect_.model_flag.empty())
            command_.model = command_.value(std::string(dialect_.model_flag)).value_or("");
        else if (command_.model.empty())
            command_.model =
                command_.value("--model").value_or(std::string(dialect_.model_default));
        if (command_.model.empty()) refuse(said(dialect_, dialect_.no_model, {}));
        write_modelled();
        return std::move(command_);
    }

private:
    [[noreturn]] void refuse(const std::string& text) const {
        throw CommandRefused(text, dialect_.refusal_code);
    }

    void read_flag(const std::string& word) {
        const auto equals = word.find('=');
        std::string flag = word.substr(0, equals);
        if (dialect_.underscores && flag.starts_with("--"))
            std::replace(flag.begin(), flag.end(), '_', '-');
        if (flag == "--help" || flag == "-h") {
            command_.wants_help = true;
            return;
        }
        const std::string base =
            flag.substr(0, flag.find('.'));  // a dotted flag sets a part of a JSON flag
        bool negated = false;
        const Fact* fact = find(base, negated);
        if (fact == nullptr) {
            unknown_.push_back(word);
            // What stands behind it nobody can tell apart from a value of it.
            while (dialect_.positional.empty() && at_ + 1 < words_.size() &&
                   !is_flag(words_[at_ + 1]))
                unknown_.push_back(words_[++at_]);
            return;
        }
        std::optional<std::string> given;
        if (equals != std::string::npos) given = word.substr(equals + 1);
        if (base != flag) {
            if (!given) take(flag);
            return;
        }
        if (fact->type == "bool") {
            if (given) refuse(bad_value_text(dialect_, fact->name, *given, "bool", {}));
            command_.flags[fact->name].emplace_back(negated ? "false" : "true");
            return;
        }
        command_.flags[fact->name].push_back(checked(*fact, given ? *given : take(flag)));
        while (fact->list && !given && at_ + 1 < words_.size() && !is_flag(words_[at_ + 1]))
            command_.flags[fact->name].push_back(words_[++at_]);
    }

    const Fact* find(const std::string& flag, bool& negated) const {
        auto known = facts_.flags.find(flag);
        if (known == facts_.flags.end() && flag.starts_with("--no-")) {
            known = facts_.flags.find("--" + flag.substr(5));
            if (known != facts_.flags.end() && !known->second.negatable) return nullptr;
            negated = true;
        }
        if (known == facts_.flags.end()) return nullptr;
        negated = negated || known->second.negated;
        return &known->second;
    }

    std::string take(const std::string& flag) {
        if (at_ + 1 >= words_.size() || is_flag(words_[at_ + 1]))
            refuse(said(dialect_, dialect_.no_value, {{"flag", flag}}));
        return words_[++at_];
    }

    std::string checked(const Fact& fact, std::string value) const {
        const bool named = !fact.values.empty();
        if (named && std::find(fact.values.begin(), fact.values.end(), value) == fact.values.end())
            refuse(bad_value_text(dialect_, fact.name, value, fact.type, fact.values));
        if (fact.type == "int" && dialect_.underscores) value = written_out(value);
        const bool number = fact.type == "int"     ? servetune::integer_of(value).has_value()
                            : fact.type == "float" ? servetune::real_of(value).has_value()
                                                   : true;
        if (!named && !number) refuse(bad_value_text(dialect_, fact.name, value, fact.type, {}));
        return value;
    }

    void write_modelled() {
        std::vector<std::string>& argv = command_.modelled.argv;
        for (const std::string& word : engine_.launch) {
            if (word == "{host}" || word == "{port}" || word == "--host" || word == "--port")
                continue;
            argv.push_back(word == "{model}" ? command_.model : word);
        }
        const servetune::CommandSettings said = commands_.flags(words_, engine_);
        for (const servetune::Setting& setting : said.settings) {
            using Kind = servetune::Setting::Kind;
            if (setting.kind != Kind::launch && setting.kind != Kind::model &&
                !setting.name.empty() && setting.key.empty())
                argv.insert(argv.end(), setting.words.begin(), setting.words.end());
        }
        const auto known = engine_.options_flag.empty() ? facts_.flags.end()
                                                        : facts_.flags.find(engine_.options_flag);
        if (known == facts_.flags.end()) return;
        const auto file = command_.value(known->second.name);
        if (!file) return;
        argv.push_back(engine_.options_flag + "=" + *file);
        const OrderedJson all =
            OrderedJson::parse(servetune::json_text_of(servetune::Yaml::load(*file)));
        command_.modelled.files[*file] = modelled_options(all, "").dump();
    }

    /// What the engine's file knows of the options. Some of them also have a flag, which is how the
    /// engine's file knows them; what the engine itself does not know it refuses.
    OrderedJson modelled_options(const OrderedJson& object, const std::string& before) {
        OrderedJson kept = OrderedJson::object();
        for (const auto& [key, value] : object.items()) {
            const std::string path = before + key;
            if (value.is_object() && !value.empty()) {
                if (OrderedJson inner = modelled_options(value, path + "."); !inner.empty())
                    kept[key] = std::move(inner);
                continue;
            }
            const auto is_its_place = [&](const EngineParameter& declared) {
                return declared.destination.option == path;
            };
            if (std::any_of(engine_.parameters.begin(), engine_.parameters.end(), is_its_place))
                kept[key] = value;
            else if (const std::string flag = flag_of_option(path); !flag.empty())
                command_.modelled.argv.push_back(
                    flag + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
            else if (facts_.complete && !facts_.options.empty() && !facts_.options.contains(path))
                throw CommandRefused(
                    "pydantic_core.ValidationError: 1 validation error for TorchLlmArgs\n" + path +
                        "\n  Extra inputs are not permitted\n",
                    1);
        }
        return kept;
    }

    /// The flag that sets the same as an option of trtllm-serve; empty: there is none that matters
    /// here.
    [[nodiscard]] std::string flag_of_option(const std::string& path) const {
        constexpr std::array<std::pair<std::string_view, std::string_view>, 4> renamed{
            {{"kv_cache_config.free_gpu_memory_fraction", "--kv_cache_free_gpu_memory_fraction"},
             {"tensor_parallel_size", "--tp_size"},
             {"pipeline_parallel_size", "--pp_size"},
             {"moe_expert_parallel_size", "--ep_size"}}};
        std::string flag = "--" + path;
        for (const auto& [option, name] : renamed)
            if (option == path) flag = name;
        const auto takes = [&](const EngineParameter& declared) {
            return declared.destination.flag == flag;
        };
        return std::any_of(engine_.parameters.begin(), engine_.parameters.end(), takes) ? flag : "";
    }

    const Dialect& dialect_;
    const std::vector<std::string>& words_;
    const FlagFacts& facts_;
    const Engine& engine_;
    const servetune::CommandReader& commands_;
    std::size_t at_ = 0;
    EngineCommand command_;
    std::vector<std::string> unknown_{};
};

using servetune::Catalogue;
using servetune::UsageError;

/// What clients call the model, and what it is called otherwise.
std::vector<std::string> served_names(const Dialect& dialect, const EngineCommand& command) {
    const char* flag = dialect.kind == EngineKind::llama_cpp ? "--alias" : "--served-model-name";
    const auto found = command.flags.find(flag);
    return found != command.flags.end() ? found->second : std::vector<std::string>{command.model};
}

/// The command for the cost model, with a model that it knows.
servetune::Command with_figures_of(const EngineCommand& command,
                                   const std::vector<servetune::ModelSpec>& models,
                                   const std::string& other) {
    servetune::Command result = command.modelled;
    const auto known = servetune::served_model(command.model, models);
    if (other.empty() || (known && known->model.weights.contains(known->quantization)))
        return result;
    std::replace(result.argv.begin(), result.argv.end(), command.model, other);
    return result;
}

/// Leaves the engine's words of those of `vllm preload`; returns the folder for the daemon's
/// socket.
std::string take_preload_words(std::vector<std::string>& words) {
    const auto taken = [&](const std::string& flag) {
        const auto at = std::find(words.begin(), words.end(), flag);
        if (at == words.end() || at + 1 == words.end())
            throw CommandRefused("vllm preload: error: " + flag + " wanted, with a value\n", 2);
        std::string value = at[1];
        words.erase(at, at + 2);
        return value;
    };
    const std::string model = taken("--model"), folder = taken("--weight-cache-socket-dir");
    words.insert(words.begin(), model);
    return folder;
}

servetune::HardwareSpec chip_of(const Catalogue& catalogue, const std::string& name) {
    try {
        return catalogue.hardware(name);
    } catch (const servetune::IoError& error) {
        throw UsageError(std::string("--hardware: ") + error.what());
    }
}

std::string help_text(const Dialect& dialect, const FlagFacts& facts) {
    std::map<std::string, std::vector<std::string>> spellings;
    for (const auto& [spelling, fact] : facts.flags) {
        std::vector<std::string>& all = spellings[fact.name];
        if (spelling == fact.name) all.insert(all.begin(), spelling);
        else all.push_back(spelling);
    }
    const bool llama = dialect.kind == EngineKind::llama_cpp;
    std::string text =
        llama ? "----- all params -----\n\n"
              : fmt::format(
                    "{}\n\noptions:\n  -h, --help            show this help message and exit\n",
                    dialect.usage);
    for (const auto& [name, all] : spellings) {
        if (name == "--help" && !llama) continue;
        const Fact& fact = facts.flags.at(name);
        std::string value = fact.type == "bool" ? ""
                            : fact.type == "choice"
                                ? fmt::format(" {{{}}}", fmt::join(fact.values, ","))
                                : " VALUE";
        std::vector<std::string> shown = all;
        if (fact.negatable && std::none_of(all.begin(), all.end(), [](const std::string& one) {
                return one.starts_with("--no-");
            }))
            shown.push_back("--no-" + name.substr(2));
        text += fmt::format("{}{}{}\n", llama ? "" : "  ", fmt::join(shown, ", "),
                            llama ? fmt::format("   {}", value) : value);
    }
    return text;
}

}  // namespace

bool EngineCommand::is_on(const std::string& flag) const {
    const auto found = flags.find(flag);
    return found != flags.end() && found->second.back() == "true";
}

std::optional<std::string> EngineCommand::value(const std::string& flag) const {
    const auto found = flags.find(flag);
    if (found == flags.end()) return std::nullopt;
    return found->second.back();
}

EngineSetup set_up(const Options& options) {
    const Catalogue catalogue =
        options.search_spaces.empty() ? Catalogue::standard() : Catalogue(options.search_spaces);
    const std::vector<servetune::Engine> engines = catalogue.engines();
    const Recognized known = recognized(engines, options.engine_words);
    if (known.dialect == nullptr)
        throw UsageError(
            "an engine's command wanted behind the options: vllm serve MODEL, python3 -m "
            "sglang.launch_server --model-path MODEL, "
            "trtllm-serve MODEL or llama-server -m FILE" +
            (options.engine_words.empty() ? std::string()
                                          : "; got '" + options.engine_words.front() + "'"));
    EngineSetup setup;
    setup.dialect = known.dialect;
    setup.engine = *known.engine;
    const std::string& name = setup.engine.name;
    const std::vector<servetune::FlagFacts> versions =
        servetune::known_versions(catalogue.root(), name);
    if (versions.empty())
        throw servetune::IoError((catalogue.root() / "engines/versions").string() +
                                 " has no version of " + name);
    setup.version = versions.back().version;
    std::vector<std::string> words(options.engine_words.begin() + std::ptrdiff_t(known.words),
                                   options.engine_words.end());
    const auto commands = std::make_shared<const servetune::CommandReader>(
        std::vector{setup.engine}, catalogue.root());
    const std::string folder = known.holds_weights ? take_preload_words(words) : "";
    setup.command =
        EngineReader(*known.dialect, words, versions.back(), setup.engine, *commands).read();
    setup.command.folder = folder;
    if (setup.command.wants_help) {
        setup.help = help_text(*known.dialect, versions.back());
        return setup;
    }
    setup.served_names = served_names(*known.dialect, setup.command);

    const std::vector<servetune::ModelSpec> models = catalogue.all_models();
    const servetune::ServingReader reader(setup.engine, catalogue.traits(name), models,
                                          chip_of(catalogue, options.hardware), "", commands);
    const servetune::Serving serving =
        reader.read(with_figures_of(setup.command, models, options.model));
    setup.parameters = serving.parameters;
    setup.cost.emplace(serving.target, serving.settings);
    setup.start = serving.refused.serves ? servetune::start(*setup.cost) : serving.refused;
    return setup;
}

}  // namespace simengine
