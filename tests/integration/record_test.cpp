// SPDX-License-Identifier: Apache-2.0
// Records from outside: a study on simengine is exported, audited and tampered with.
#include "support/deployed_study.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "handover/kept_load_test.hpp"
#include "handover/request_lines.hpp"
#include "handover/study_record.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

/// A study of two configurations and its record.
class RecordedStudy {
public:
    RecordedStudy() : study_(text()), run_(study_.run({"--quiet"})) {
        std::vector<std::string> words =
            study_.words("export", {"--as", "record", "--output", record().string()});
        exported_ = ran(words, study_.folder());
    }
    [[nodiscard]] const DeployedStudy& study() const { return study_; }
    [[nodiscard]] const Ran& exported() const { return exported_; }
    [[nodiscard]] const Ran& run() const { return run_; }
    [[nodiscard]] fs::path record() const { return study_.folder() / "record"; }
    /// Audited where neither study nor engine is.
    [[nodiscard]] static Ran audit(const fs::path& record) {
        return autotune({"audit", record.string()}, record.parent_path());
    }

private:
    static DeployedStudy::Text text() {
        DeployedStudy::Text result;
        result.space = "{max_num_seqs: {choice: [4, 32], default: 4}}";
        result.workload =
            "{kind: random, input_tokens: 64, output_tokens: 24}, requests: 16, arrival: {rate: "
            "inf}";
        return result;
    }
    DeployedStudy study_;
    Ran run_;
    Ran exported_{};
};

const RecordedStudy& recorded() {
    static const RecordedStudy study;
    return study;
}

void hash_again(const fs::path& record) { write_manifest(record); }

void change_byte(const fs::path& file) {
    std::string bytes = read_file(file);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    write_file(file, bytes);
}

void change_text(const fs::path& file, const std::string& what, const std::string& with) {
    write_file(file, replaced(read_file(file), what, with));
}

nlohmann::ordered_json manifest_of(const fs::path& record) {
    return nlohmann::ordered_json::parse(read_file(record / manifest_name));
}
void name_in_manifest(const fs::path& record, const std::string& path) {
    auto manifest = manifest_of(record);
    manifest["files"].push_back({{"path", path}, {"bytes", 0}, {"sha256", std::string(64, '0')}});
    write_file(record / manifest_name, manifest.dump());
}

fs::path load_test(const fs::path& record, std::uint64_t trial) {
    return record / kept_requests_folder / kept_requests_name(trial, 0);
}

struct Tampering {
    const char* name;
    std::function<void(const fs::path& record)> tamper;
    const char* said;  ///< a part of the answer
    int code = 1;
};

const std::vector<Tampering>& tamperings() {
    static const std::vector<Tampering> all{
        {"a file added", [](const fs::path& r) { write_file(r / "extra.txt", "x"); },
         "extra.txt is not in the manifest: it was added"},
        {"a journal's log added", [](const fs::path& r) { write_file(r / "study.db-wal", "x"); },
         "study.db-wal is not in the manifest"},
        {"a file removed", [](const fs::path& r) { fs::remove(r / "run.log"); },
         "run.log is in the manifest and not here: it was removed"},
        {"a file cut", [](const fs::path& r) { fs::resize_file(r / "report.md", 10); },
         "report.md was changed: it has 10 bytes"},
        {"a huge file",
         [](const fs::path& r) { fs::resize_file(r / "run.log", std::uintmax_t{3} << 30U); },
         "more than 1 GiB is not read"},
        {"a link",
         [](const fs::path& r) {
             fs::rename(r / "report.md", r.parent_path() / "elsewhere.md");
             fs::create_symlink(r.parent_path() / "elsewhere.md", r / "report.md");
         },
         "report.md is a symbolic link"},
        {"a linked folder",
         [](const fs::path& r) {
             fs::rename(r / "logs", r.parent_path() / "logs");
             fs::create_directory_symlink(r.parent_path() / "logs", r / "logs");
         },
         "logs is a symbolic link"},
        {"a linked manifest",
         [](const fs::path& r) {
             fs::rename(r / manifest_name, r.parent_path() / "m.json");
             fs::create_symlink(r.parent_path() / "m.json", r / manifest_name);
         },
         "is no file of its own"},
        {"a path outside", [](const fs::path& r) { name_in_manifest(r, "../secret"); },
         "'../secret': it is not a path within the record"},
        {"an absolute path", [](const fs::path& r) { name_in_manifest(r, "/etc/passwd"); },
         "'/etc/passwd': it is not a path within"},
        {"a path through itself", [](const fs::path& r) { name_in_manifest(r, "logs/./x"); },
         "it is not a path within the record"},
        {"a path with a line end", [](const fs::path& r) { name_in_manifest(r, "a\nb"); },
         "only letters, digits"},
        {"a name twice", [](const fs::path& r) { name_in_manifest(r, "study.db"); },
         "it names 'study.db' twice"},
        {"a key twice",
         [](const fs::path& r) {
             change_text(r / manifest_name, "{", "{\"servetune_record\": 1,");
         },
         "stands twice"},
        {"no JSON", [](const fs::path& r) { write_file(r / manifest_name, "{"); },
         "is no manifest of a record"},
        {"deep JSON",
         [](const fs::path& r) { write_file(r / manifest_name, std::string(100'000, '[')); },
         "nests deeper"},
        {"a huge manifest",
         [](const fs::path& r) { fs::resize_file(r / manifest_name, std::uintmax_t{1} << 30U); },
         "it is not read"},
        // Below, the manifest is made anew, so that all hashes are right.
        {"a request is faster",
         [](const fs::path& r) {
             KeptLoadTest test = read_load_test(load_test(r, 1));
             test.result.run.records[3].first_token = *test.result.run.records[3].first_token * 0.5;
             write_load_test(load_test(r, 1), test, {});
             hash_again(r);
         },
         "differs: trial 1: time_to_first_token_from_schedule_mean_seconds: the requests say"},
        {"a request is gone",
         [](const fs::path& r) {
             KeptLoadTest test = read_load_test(load_test(r, 1));
             test.result.run.records.pop_back();
             write_load_test(load_test(r, 1), test, {});
             hash_again(r);
         },
         "differs: trial 1: "},
        {"two trials are swapped",
         [](const fs::path& r) {
             fs::rename(load_test(r, 0), r / "x");
             fs::rename(load_test(r, 1), load_test(r, 0));
             fs::rename(r / "x", load_test(r, 1));
             hash_again(r);
         },
         "differs: trial 0: load test 0 is of trial 1, not 0"},
        {"two trials are swapped under false names",
         [](const fs::path& r) {
             KeptLoadTest a = read_load_test(load_test(r, 0));
             KeptLoadTest b = read_load_test(load_test(r, 1));
             std::swap(a.result, b.result);
             write_load_test(load_test(r, 0), a, {});
             write_load_test(load_test(r, 1), b, {});
             hash_again(r);
         },
         "differs: trial "},
        {"the verdict is another",
         [](const fs::path& r) {
             auto report = nlohmann::ordered_json::parse(read_file(r / "report.json"));
             report["recommended"]["gain"]["percent"] = 1000;
             report["headline"] = "Recommended: +1000 % over the default";
             write_file(r / "report.json", report.dump());
             hash_again(r);
         },
         "report.json does not give the verdict of the journal"},
        {"a figure of the journal is another",
         [](const fs::path& r) {
             change_text(r / "study.db", "\"total_tokens_per_second\":{\"value\":",
                         "\"total_tokens_per_second\":{\"value\":9");
             hash_again(r);
         },
         "study.db"},
        {"a bomb",
         [](const fs::path& r) {
             GzipOutput bomb(load_test(r, 1));
             const std::string zeros(std::size_t{1} << 20U, '0');
             for (int i = 0; i < 35; ++i) bomb.write(zeros);
             bomb.commit();
             hash_again(r);
         },
         "a line of more than 33554432 bytes is not read"},
        {"the winner's requests are left out",
         [](const fs::path& r) {
             fs::remove(load_test(r, 1));
             hash_again(r);
         },
         "missing: trial 1, which decides: its requests were not kept", 6},
    };
    return all;
}

}  // namespace

TEST_CASE("record: a study is exported, and agrees where neither study nor engine is") {
    const RecordedStudy& study = recorded();
    INFO(study.run().err << study.exported().err);
    REQUIRE(study.run().code == 0);
    REQUIRE(study.exported().code == 0);
    const fs::path record = study.record();
    for (const char* file :
         {"study.db", "report.md", "report.json", "report.html", "README.txt", "run.log",
          "logs/0/engine.log", "requests/0-0.jsonl.gz", "requests/1-0.jsonl.gz", "manifest.json"})
        CHECK(fs::is_regular_file(record / file));
    const TemporaryFolder elsewhere;
    fs::copy(record, elsewhere.path() / "record", fs::copy_options::recursive);
    const Ran audited = RecordedStudy::audit(elsewhere.path() / "record");
    INFO(audited.out << audited.err);
    CHECK(audited.code == 0);
    CHECK(has(audited.out, "record: agrees\n"));
    CHECK(has(audited.out, "2 of 2 trials repeated from raw requests: "));
    CHECK(has(audited.out, " of 32 requests\n"));
    CHECK(has(audited.out, "verdict, repeated: Recommended: +"));
    const Ran json =
        autotune({"audit", "--json", (elsewhere.path() / "record").string()}, elsewhere.path());
    const auto list = nlohmann::json::parse(json.out);
    CHECK(list.at(0).at("record") == "agrees");
    CHECK(list.at(0).at("requests") == 32);
    CHECK(list.at(0).at("figures").get<int>() > 60);
}

TEST_CASE("record: what was tampered with is refused") {
    REQUIRE(recorded().exported().code == 0);
    for (const Tampering& one : tamperings()) {
        const TemporaryFolder folder;
        const fs::path record = folder.path() / "record";
        fs::copy(recorded().record(), record, fs::copy_options::recursive);
        one.tamper(record);
        const Ran audited = RecordedStudy::audit(record);
        INFO(one.name << ": " << audited.out << audited.err);
        CHECK(audited.code == one.code);
        CHECK(has(audited.out, one.said));
        CHECK_FALSE(has(audited.out, "agrees"));
    }
}

TEST_CASE("record: one changed byte in any file is found") {
    REQUIRE(recorded().exported().code == 0);
    for (const RecordManifest::File& file : read_manifest(recorded().record()).files) {
        const TemporaryFolder folder;
        fs::copy(recorded().record(), folder.path() / "record", fs::copy_options::recursive);
        change_byte(folder.path() / "record" / file.path);
        const Ran audited = RecordedStudy::audit(folder.path() / "record");
        INFO(audited.out);
        CHECK(audited.code == 1);
        CHECK(has(audited.out, file.path + " was changed: its SHA-256 is "));
    }
}

TEST_CASE("record: no secret leaves with it") {
    REQUIRE(recorded().run().code == 0);
    const TemporaryFolder folder;
    const fs::path copy = folder.path() / "study";
    fs::copy(recorded().study().directory(), copy, fs::copy_options::recursive);
    const std::vector<std::string> planted{"hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345",
                                           "sk-proj-abcdefghijklmnop123456",
                                           "s3cretOfHeader99",
                                           "pa55w0rd",
                                           "keyInAddress1234",
                                           "OnlyInThisEnvironment42"};
    write_file(copy / "trials/0/engine.log",
               "token " + planted[0] + "\nopenai " + planted[1] + "\nAuthorization: Bearer " +
                   planted[2] + "\nGET http://user:" + planted[3] +
                   "@host/v1?api_key=" + planted[4] + "&x=1\nvalue " + planted[5] +
                   " end\nmax_num_batched_tokens=8192\n");
    write_file(copy / "run.log",
               "HF_TOKEN=" + planted[0] + "\n{'api_key': ['" + planted[4] + "']}\n");
    KeptLoadTest test = read_load_test(copy / "requests/0-0.jsonl.gz");
    test.result.run.records[0].error = "refused: " + planted[5] + " " + planted[0];
    write_load_test(copy / "requests/0-0.jsonl.gz", test, {});
    const Ran exported =
        ran({"/usr/bin/env", "MY_SECRET=" + planted[5], SERVETUNE_PROGRAM, "export", copy.string(),
             "--as", "record", "--output", (folder.path() / "record").string()},
            folder.path());
    INFO(exported.err);
    REQUIRE(exported.code == 0);
    std::string all;
    for (const RecordManifest::File& file : read_manifest(folder.path() / "record").files) {
        if (file.path.ends_with(".gz"))
            each_gzip_line(folder.path() / "record" / file.path,
                           [&](std::size_t, const std::string& line) { all += line; });
        else all += read_file(folder.path() / "record" / file.path);
    }
    for (const std::string& secret : planted) {
        INFO(secret);
        CHECK_FALSE(has(all, secret));
    }
    CHECK(has(all, "max_num_batched_tokens=8192"));
    CHECK(has(all, "value ${MY_SECRET} end"));

    const Ran refused =
        ran({"/usr/bin/env", "MY_SECRET=max_num_seqs", SERVETUNE_PROGRAM, "export", copy.string(),
             "--as", "record", "--output", (folder.path() / "none").string()},
            folder.path());
    CHECK(refused.code != 0);
    CHECK(has(refused.err, "study.db holds a secret that this process knows"));
    CHECK_FALSE(fs::exists(folder.path() / "none"));
}

TEST_CASE("record: published studies are repeated from their tables") {
    for (const char* name :
         {"qwen3-14b-h100", "qwen3.5-9b-h100", "qwen3-8b-jetson-thor", "qwen3-8b-h200"}) {
        const TemporaryFolder folder;
        const fs::path study =
            fs::path(SERVETUNE_SOURCE) / "search_spaces/published" / name / "study.yaml";
        INFO(name);
        REQUIRE(autotune({"run", study.string(), "--directory", "study", "--quiet"}, folder.path())
                    .code == 0);
        const Ran exported =
            autotune({"export", "study", "--as", "record", "--output", "record"}, folder.path());
        INFO(exported.err);
        REQUIRE(exported.code == 0);
        const Ran audited = RecordedStudy::audit(folder.path() / "record");
        INFO(audited.out << audited.err);
        CHECK(audited.code == 0);
        CHECK(has(audited.out, "repeated from the study's table"));
        change_text(folder.path() / "record/report.json", "\"verdict\": \"", "\"verdict\": \"not_");
        hash_again(folder.path() / "record");
        CHECK(RecordedStudy::audit(folder.path() / "record").code == 1);
    }
}

TEST_CASE("record: that of the H100 measurement is whole, and its figures are audited") {
    const fs::path shipped = fs::path(SERVETUNE_SOURCE) / "docs/results/qwen3-8b-h100-default";
    const TemporaryFolder folder;
    const fs::path record = folder.path() / "record";
    fs::copy(shipped, record, fs::copy_options::recursive);
    const Ran audited =
        autotune({"audit", "--hardware", "h100-sxm", record.string()}, folder.path());
    INFO(audited.out << audited.err);
    CHECK(audited.code == 0);
    CHECK(has(audited.out, "record: agrees\n"));
    CHECK(has(audited.out, "1 result: 1 sound, 0 suspect, 0 unsound"));
    change_text(record / "results/qwen3-8b-h100-default.json", "\"output_tokens_per_second\": 4937",
                "\"output_tokens_per_second\": 5937");
    CHECK(RecordedStudy::audit(record).code == 1);
    hash_again(record);
    CHECK(autotune({"audit", record.string()}, folder.path()).code ==
          1);  // the rate is not tokens / duration any more
}
