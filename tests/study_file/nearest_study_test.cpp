// SPDX-License-Identifier: Apache-2.0
// Which studies of the cache are those of a new one.
#include "study_file/knowledge.hpp"

#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"
#include "support/toy_engine.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;
using Like = NearestStudy::Like;

/// A study whose engine is a small program beside it.
class ServedStudy {
public:
    ServedStudy() {
        fs::create_directories(folder_.path() / "venv/bin");
        folder_.write("venv/bin/toy", "#!/bin/sh\n");
        fs::permissions(folder_.path() / "venv/bin/toy", fs::perms::owner_all);
        fs::create_directories(folder_.path() /
                               "venv/lib/python3.12/site-packages/toy-1.0.dist-info");
        folder_.write("toy.yaml", toy_engine("", (folder_.path() / "venv/bin/toy").string(),
                                             ", --port, \"{port}\""));
    }
    void becomes(const std::string& version) const {
        const fs::path packages = folder_.path() / "venv/lib/python3.12/site-packages";
        fs::remove_all(packages);
        if (!version.empty()) fs::create_directories(packages / ("toy-" + version + ".dist-info"));
        else fs::remove(folder_.path() / "venv/bin/toy");
    }
    struct Text {
        std::string name = "s", model = "org/m", space = "{seqs: [8, 16]}", tokens = "64",
                    goal = "maximize: total_tokens_per_second",
                    evaluator = "{deploy: {watch: off}}";
    };
    StudySetup setup(const Text& text) const {
        return set_up(load_study(
            folder_.write("study.yaml",
                          "study: " + text.name + "\nmodel: " + text.model +
                              "\nengine: toy\nothers: default\nspace: " + text.space +
                              "\nworkloads: [{workload: w, dataset: {kind: random, input_tokens: " +
                              text.tokens + ", output_tokens: 32}, requests: 10}]\nobjective: {" +
                              text.goal + "}\nevaluator: " + text.evaluator + "\n"),
            Catalogue(search_spaces)));
    }
    /// A run of it ends at that time, and is put into the cache.
    void made(const Text& text, double at = 100) const {
        const StudySetup study = setup(text);
        const fs::path folder = folder_.path() / ("run" + std::to_string(runs_++));
        {
            SqliteJournal journal =
                SqliteJournal::open(folder, {study.file.name, study.definition(), "0.1.0"});
            journal.asked({0, study.problem->space.default_configuration()});
            journal.started(0, at - 1);
            journal.told(0, Measurement{{{"total_tokens_per_second", {1.5}}}}, at);
        }
        (void)cache().keep(folder);
    }
    StudyCache cache() const { return StudyCache(folder_.path() / "studies"); }
    std::optional<NearestStudy> nearest(const Text& text) const {
        return nearest_study(setup(text), cache(),
                             [this](const std::string& line) { said_.push_back(line); });
    }
    const fs::path& folder() const { return folder_.path(); }
    const std::vector<std::string>& said() const { return said_; }

private:
    TemporaryFolder folder_;
    mutable std::size_t runs_ = 0;
    mutable std::vector<std::string> said_{};
};

}  // namespace

TEST_CASE(
    "nearest study: the same study answers under any name, another question, goal or model does "
    "not") {
    const ServedStudy study;
    CHECK_FALSE(study.nearest({}));
    study.made({});
    const auto same = study.nearest({.name = "called otherwise"});
    REQUIRE(same);
    CHECK(same->like == Like::same_study);
    CHECK(same->name == "s");
    CHECK(same->last_result == 100);
    CHECK(same->version == "toy 1.0");
    CHECK(study.nearest({.space = "{seqs: [8, 32]}"})->like == Like::same_case);
    CHECK(
        study
            .nearest(
                {.goal = "maximize: total_tokens_per_second, limits: [\"success_ratio >= 0.99\"]"})
            ->like == Like::same_case);
    CHECK(study.nearest({.tokens = "70"})->like == Like::same_case);  // the same class
    CHECK_FALSE(study.nearest({.tokens = "512"}));
    CHECK_FALSE(study.nearest({.model = "org/other"}));
    CHECK_FALSE(study.nearest({.goal = "minimize: latency_mean_seconds"}));
    CHECK_FALSE(study.nearest({.evaluator = "{command: [./measure, \"{config}\"]}"}));
    CHECK(study.said().empty());
}

TEST_CASE(
    "nearest study: another version of the engine is learned from, one that nothing tells answers "
    "nothing") {
    const ServedStudy study;
    study.made({}, 100);
    study.becomes("1.1");
    const auto other = study.nearest({});
    REQUIRE(other);
    CHECK(other->like == Like::other_version);
    CHECK(other->version == "toy 1.0");
    study.made({}, 50);
    CHECK(study.nearest({})->like == Like::same_study);  // nearer, though its result is older
    CHECK(study.nearest({})->version == "toy 1.1");
    study.becomes("");
    CHECK(study.setup({}).definition().at("profile.version") == "toy unknown");
    study.made({}, 200);
    CHECK(study.nearest({})->like == Like::same_case);
}

TEST_CASE(
    "nearest study: of several the latest result counts, a damaged journal is left out with a "
    "line") {
    const ServedStudy study;
    study.made({.space = "{seqs: [8, 32]}"}, 300);
    study.made({.space = "{seqs: [8, 64]}"}, 200);
    CHECK(study.nearest({})->last_result == 300);
    const fs::path latest = study.nearest({})->file;
    // The definition is whole, an event is not.
    std::string bytes(fs::file_size(latest), '\0');
    std::ifstream(latest, std::ios::binary)
        .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const auto at = bytes.find("total_tokens_per_second\":{\"value\":1.5");
    REQUIRE(at != std::string::npos);
    bytes[at + std::string("total_tokens_per_second\":{\"value\":").size()] = '9';
    std::ofstream(latest, std::ios::binary) << bytes;
    REQUIRE(study.nearest({}));
    CHECK(study.nearest({})->last_result == 200);
    CHECK(has(study.said().front(), latest.filename().string()));
    CHECK(has(study.said().front(), "does not match its checksum"));
}

TEST_CASE(
    "nearest study: knowledge that nobody asked for is no error where it is gone, and no part of "
    "the study") {
    const ServedStudy study;
    const auto before = study.setup({}).definition();
    StudyFile file = load_study(study.folder() / "study.yaml", Catalogue(search_spaces));
    file.knowledge.push_back({.kind = KnowledgeChoice::Kind::study,
                              .path = study.folder() / "gone.db",
                              .by_default = true});
    const StudySetup without = set_up(std::move(file));
    CHECK(without.earlier.empty());
    CHECK(without.beliefs.size() == 0);
    CHECK(without.definition() == before);
}

TEST_CASE("study profile: never compared, as its journal has it where a study is only read") {
    const ServedStudy study;
    const auto definition = study.setup({}).definition();
    CHECK(definition.at("profile.model") == "org/m");
    CHECK(definition.at("profile.engine") == "toy");
    CHECK(definition.at("profile.workloads") == "random 64 to 32, all_at_once");
    CHECK_FALSE(definition.at("profile.machine").empty());
    study.becomes("2.0");
    const fs::path folder = study.folder() / "resumed";
    { SqliteJournal::open(folder, {"s", definition, "0.1.0"}); }
    const auto later = study.setup({}).definition();
    CHECK(later.at("profile.version") == "toy 2.0");
    CHECK(SqliteJournal::read(folder).changes_in(later).empty());
    { SqliteJournal::open(folder, {"s", later, "0.1.0"}); }  // no change of the study
    StudyFile read = load_study(study.folder() / "study.yaml", Catalogue(search_spaces));
    read.kept = definition;
    CHECK(set_up(std::move(read)).definition().at("profile.version") == "toy 1.0");
}

TEST_CASE("study profile: the class of workloads is coarse") {
    Workload chat;
    chat.dataset.input_tokens = 1000;
    chat.dataset.output_tokens = 120;
    chat.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = 60};
    Workload data;
    data.dataset.kind = Dataset::Kind::sharegpt;
    data.arrival = {.kind = Arrival::Kind::rate, .requests_per_second = 7};
    CHECK(workload_class({chat, data, chat}) ==
          "random 1024 to 128, concurrency 64 + sharegpt, rate 8");
    chat.dataset.input_tokens = 1100;
    chat.arrival.in_flight = 70;
    CHECK(workload_class({chat}) == "random 1024 to 128, concurrency 64");
}
