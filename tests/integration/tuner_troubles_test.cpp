// SPDX-License-Identifier: Apache-2.0
// What happens to a deployed study when it is the tuner's own machine that fails: a full disk, a
// folder that cannot be written, few descriptors, a second run, a run that was killed, engines that
// never start. Told trials stay, the message says what to do, and the next run goes on.
#include "support/deployed_study.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "support/waiting.hpp"

#include <sys/mount.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <iostream>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

using Json = nlohmann::json;

/// A disk of a few KiB, where this user may mount one.
class SmallDisk {
public:
    SmallDisk(fs::path folder, std::size_t kib) : folder_(std::move(folder)) {
        fs::create_directories(folder_);
        mounted_ = mount("tmpfs", folder_.c_str(), "tmpfs", 0, size(kib).c_str()) == 0;
    }
    ~SmallDisk() {
        if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
    }
    SmallDisk(const SmallDisk&) = delete;
    SmallDisk& operator=(const SmallDisk&) = delete;
    [[nodiscard]] bool mounted() const { return mounted_; }
    [[nodiscard]] bool grow(std::size_t kib) const {
        return mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT, size(kib).c_str()) == 0;
    }

private:
    static std::string size(std::size_t kib) { return "size=" + std::to_string(kib) + "k"; }
    fs::path folder_;
    bool mounted_ = false;
};

/// The told trials of a journal that may not even have been made.
std::vector<Trial> told_trials(const DeployedStudy& study) {
    std::vector<Trial> result = trials_so_far(study.directory());
    std::erase_if(result, [](const Trial& trial) { return !trial.told(); });
    return result;
}

/// The study runs to its end, and what was told before is still told, word for word.
void goes_on_after(const DeployedStudy& study, const std::vector<Trial>& told) {
    const Ran again = study.run({"--json"});
    INFO(again.err);
    REQUIRE(again.code == 0);
    CHECK(Json::parse(again.out)["recommended"]["command"] == best_command);
    const std::vector<Trial> ended = study.trials();
    REQUIRE(ended.size() == 3);
    for (const Trial& trial : told) CHECK(ended[trial.id].outcome == trial.outcome);
    for (const Trial& trial : ended) CHECK(trial.measurement() != nullptr);
    const std::string left = study.left();
    INFO(left);
    CHECK(left.empty());
}

}  // namespace

TEST_CASE("tuner's troubles: its files may not grow any more") {
    int of_journal = 0;
    for (const rlim_t limit : {48'000UL, 90'000UL, 120'000UL}) {
        const DeployedStudy study;
        ChildProcess process(study.words("run", {"--quiet"}), study.folder(), limit);
        const int code = process.wait();
        INFO("limit " << limit << ": " << process.err());
        CHECK((code == 0 || code == 3));
        CHECK(study.left().empty());
        const bool journal = has(
            process.err(), "autotune: journal " + (study.directory() / "study.db").string() + ": ");
        of_journal += journal ? 1 : 0;
        if (journal)
            CHECK(has(process.err(), "what was told is kept in " + study.directory().string() +
                                         "; run again to go on"));
        else if (code == 3)
            CHECK(has(process.err(), "autotune: cannot write " +
                                         (study.directory() / "report.html").string() +
                                         ": File too large\nthe journal is complete; 'autotune "
                                         "report' prints the report"));
        goes_on_after(study, told_trials(study));
    }
    CHECK(of_journal >= 1);
}

TEST_CASE("tuner's troubles: its disk fills with an engine's log, and has room again", "[long]") {
    int refused = 0;
    int kept = 0;
    for (const std::size_t kib : {120UL, 500UL, 2000UL}) {
        DeployedStudy study;
        const SmallDisk disk(study.folder() / "disk", kib);
        if (!disk.mounted()) {
            std::cout << "skipped: this user may not mount a small disk\n";
            return;
        }
        study.put_into(study.folder() / "disk/study");
        study.set_faults({{"--max-num-seqs=3", "flood_log=10000000"}});  // trial 1
        const Ran full = study.run({"--quiet"});
        INFO(kib << " KiB: " << full.code << " " << full.err);
        CHECK((full.code == 0 || full.code == 3));
        if (full.code == 3) CHECK(has(full.err, "autotune: "));
        refused += full.code == 3 ? 1 : 0;
        CHECK(study.left().empty());
        REQUIRE(disk.grow(65536));
        const std::vector<Trial> told = told_trials(study);
        kept += full.code == 3 && !told.empty() ? 1 : 0;
        goes_on_after(study, told);
    }
    CHECK(refused >= 1);
    CHECK(kept >= 1);
}

TEST_CASE("tuner's troubles: the folder of its trials goes away in the middle of a run") {
    const DeployedStudy study;
    study.set_faults({{"--max-num-seqs=3", "slow_start=1"}});
    ChildProcess process(study.words("run"), study.folder());
    REQUIRE(comes_true([&] { return study.engines().size() == 2; }));
    fs::rename(study.directory() / "trials", study.directory() / "away");
    std::ofstream(study.directory() / "trials") << "a file";
    const auto code = process.wait_at_most(90s);
    INFO(process.err());
    REQUIRE(code == 3);
    CHECK(has(process.err(),
              "trial 2: tried again, not the configuration's fault: cannot make the folder "));
    CHECK(has(process.err(), "autotune: trial 2 cannot be measured here: cannot make the folder " +
                                 (study.directory() / "trials/2").string()));
    CHECK(has(process.err(),
              "what was told is kept in " + study.directory().string() + "; run again to go on"));
    CHECK(study.left().empty());
    const std::vector<Trial> told = told_trials(study);
    CHECK(told.size() == 2);
    fs::remove(study.directory() / "trials");
    fs::rename(study.directory() / "away", study.directory() / "trials");
    goes_on_after(study, told);
}

TEST_CASE("tuner's troubles: 256 descriptors and a load of 230 streams", "[long]") {
    DeployedStudy::Text text;
    text.space = "{max_num_seqs: {choice: [128, 256], default: 128}}";
    text.workload =
        "{kind: random, input_tokens: 64, output_tokens: 24}, requests: 230, arrival: {rate: inf}";
    const DeployedStudy study(text);
    // No more can be had: said before anything is measured, with what to raise.
    const Ran refused =
        study.run({"--quiet"}, {"/bin/sh", "-c", "ulimit -n 256; exec \"$@\"", "sh"});
    INFO(refused.err);
    CHECK(refused.code == 3);
    CHECK(has(refused.err, "autotune: 230 requests in flight need "));
    CHECK(has(refused.err, " open files, the system allows 256 (ulimit -n)\n"));
    CHECK(told_trials(study).empty());
    CHECK(study.left().empty());
    // More can be had for the asking: it asks, and every token arrives.
    const Ran raised =
        study.run({"--json"}, {"/bin/sh", "-c", "ulimit -S -n 256; exec \"$@\"", "sh"});
    INFO(raised.err);
    REQUIRE(raised.code == 0);
    const std::vector<Trial> trials = study.trials();
    REQUIRE(trials.size() == 2);
    for (const Trial& trial : trials) {
        REQUIRE(trial.measurement() != nullptr);
        CHECK(trial.measurement()->metrics.at("success_ratio").value == 1);
        CHECK(trial.measurement()->metrics.at("output_tokens").value == 230 * 24);
    }
    CHECK(study.left().empty());
}

TEST_CASE(
    "tuner's troubles: nothing starts, so it stops and says what to mend, mended, it goes on") {
    DeployedStudy::Text text;
    text.space = "{max_num_seqs: {choice: [4, 3, 5, 32], default: 4}}";
    const DeployedStudy study(text);
    study.set_faults({{"", "exit_at_load=3"}});
    const Ran run = study.run();
    INFO(run.err);
    CHECK(run.code == 4);
    CHECK(has(run.err,
              "autotune: the first trials all failed the same way, other: vllm ended with exit "
              "code 3 after "));
    CHECK(has(run.err, "\nmend that, then run again; with another --directory"));
    CHECK(has(run.out, "Nothing can be recommended. No measured configuration passes."));
    CHECK(has(run.out, "report: " + (study.directory() / "report.md").string()));
    CHECK(Json::parse(read_file(study.directory() / "report.json"))["stop_reason"] ==
          "nothing_starts");
    CHECK(study.engines().size() == 3);
    const std::vector<Trial> told = told_trials(study);
    CHECK(told.size() == 3);
    study.set_faults({});
    const Ran again = study.run({"--json"});
    INFO(again.err);
    CHECK(again.code == 0);
    CHECK(Json::parse(again.out)["recommended"]["command"] == best_command);
    REQUIRE(study.trials().size() == 4);
    for (const Trial& trial : told) CHECK(study.trials()[trial.id].outcome == trial.outcome);
    CHECK(study.left().empty());
}

TEST_CASE(
    "tuner's troubles: its engines do not outlive it: kill -9, a second Ctrl-C, a crash, a reader "
    "that has gone") {
    // A wrapper that does not exec, and an engine behind it that is deaf to TERM from its start:
    // the kernel's word ends the wrapper only.
    DeployedStudy::Text text;
    text.deploy =
        "ready_within: 60s, stop_within: 500ms, stall_timeout: 1s, trial_within: 90s, warm_up: 1";
    const DeployedStudy study(text);
    study.set_faults({{"", "slow_start=50 --fault ignore_term"}});
    const fs::path wrapper = study.folder() / "bin/vllm";
    const std::string without_exec =
        replaced(replaced(read_file(wrapper), "\nexec ", "\n(trap '' TERM; "), " vllm \"$@\"\n",
                 " vllm \"$@\")\n");
    for (const int signal : {SIGKILL, SIGINT, SIGSEGV}) {
        if (sanitized && signal == SIGSEGV) continue;
        std::ofstream(wrapper) << without_exec;
        const std::size_t before = study.engines().size();
        ChildProcess process(study.words("run", {"--quiet"}), study.folder());
        REQUIRE(comes_true([&] {
            return study.engines().size() > before && leftovers(study.mark()).size() >= 2;
        }));
        process.signal(signal);
        if (signal == SIGINT) {
            REQUIRE(comes_true([&] { return has(process.err(), "stopping"); }));
            process.signal(signal);
        }
        const auto code = process.wait_at_most(20s);
        INFO("signal " << signal << ": " << process.err());
        CHECK(code == (signal == SIGINT ? 130 : 128 + signal));
        CHECK(comes_true([&] { return study.left().empty(); }, 20));
        CHECK(study.left().empty());
    }
    study.set_faults({});
    goes_on_after(study, told_trials(study));
}

TEST_CASE(
    "tuner's troubles: a machine without /proc, or whose loopback is down, ends the run, nothing "
    "is held against a configuration",
    "[long]") {
    const auto works = [](const std::vector<std::string>& words) {
        const TemporaryFolder folder;
        return ran(words, folder.path()).code == 0;
    };
    // Without /proc the program does not know where it is, nor where its catalogue is.
    const std::string unmounted = "export SERVETUNE_SEARCH_SPACES='" SERVETUNE_SOURCE
                                  "/search_spaces' && mount -t tmpfs none /proc && exec \"$@\"";
    const std::vector<std::string> no_proc{"/usr/bin/env", "unshare", "-m", "/bin/sh",
                                           "-c",           unmounted, "sh"};
    const std::vector<std::string> no_network{"/usr/bin/env", "unshare", "-n"};
    // The loopback goes down in the middle of the second trial.
    const std::vector<std::string> own_network{
        "/usr/bin/env", "unshare", "-n", "/bin/sh", "-c", "ip link set lo up && exec \"$@\"", "sh"};
    for (const auto& [where, before] :
         {std::pair{"/proc", no_proc}, {"loopback", no_network}, {"later", own_network}}) {
        std::vector<std::string> probe = before;
        probe.emplace_back("/bin/true");
        if (sanitized && std::string(where) == "/proc") continue;  // a sanitizer itself needs it
        if (!works(probe)) {
            std::cout << "skipped: this user may not make namespaces, or there is no ip (" << where
                      << ")\n";
            continue;
        }
        const DeployedStudy study;
        const bool later = std::string(where) == "later";
        if (later) {
            const fs::path wrapper = study.folder() / "bin/vllm";
            const std::string script = replaced(
                read_file(wrapper), "\nexec ",
                "\ncase \" $* \" in *' --max-num-seqs=3 '*) ip link set lo down;; esac\nexec ");
            std::ofstream(wrapper) << script;
        }
        const Ran run = study.run({"--quiet"}, before);
        INFO(where << ": " << run.err);
        CHECK(run.code == 3);
        CHECK(has(run.err,
                  std::string("autotune: trial ") + (later ? "1" : "0") +
                      " cannot be measured here: engines cannot be " +
                      (std::string(where) == "/proc"
                           ? "watched here: /proc is not mounted; mount it"
                           : "reached here: the loopback, 127.0.0.1, takes no connections: ")));
        CHECK(told_trials(study).size() == (later ? 1 : 0));
        CHECK(study.left().empty());
        if (later) study.set_faults({});
        goes_on_after(study, told_trials(study));
    }
}

TEST_CASE(
    "tuner's troubles: status beside a run, a second run, and the lock of one that was killed") {
    const DeployedStudy study;
    const TemporaryFolder elsewhere;  // of what the others print
    study.set_faults({{"--max-num-seqs=3", "slow_start=2"}});
    ChildProcess first(study.words("run", {"--quiet"}), study.folder());
    REQUIRE(comes_true([&] { return study.engines().size() == 2; }));

    const Ran status = ran(study.words("status"), elsewhere.path());
    CHECK(status.code == 0);
    INFO(status.out);
    CHECK(has(status.out, "deployed: 1 trial measured, none failed, 1 under way\n"));
    CHECK(has(status.out, "  pending: trial 1, started: max_num_seqs=3 ("));
    const Json json = Json::parse(ran(study.words("status", {"--json"}), elsewhere.path()).out);
    CHECK(json["trials"] == Json({{"told", 1}, {"failed", 0}, {"unsound", 0}}));
    CHECK(json["stop_reason"].is_null());
    REQUIRE(json["pending"].size() == 1);
    CHECK(json["pending"][0]["trial"] == 1);
    CHECK(json["pending"][0]["configuration"] == Json({{"max_num_seqs", 3}}));
    CHECK(json["pending"][0]["started_at"].get<double>() > 1e9);

    const Ran second = ran(study.words("run"), elsewhere.path());
    CHECK(second.code == 3);
    CHECK(second.err == "autotune: another process is running this study (process " +
                            std::to_string(first.id()) + " holds " +
                            (study.directory() / "study.lock").string() +
                            "); wait for it, or choose another --directory\n");
    CHECK(study.engines().size() == 2);
    CHECK_FALSE(first.wait_at_most(0ms));  // undisturbed

    first.signal(SIGKILL);
    (void)first.wait();
    CHECK(fs::exists(study.directory() / "study.lock"));
    const std::vector<Trial> told = told_trials(study);
    CHECK(told.size() == 1);
    study.set_faults({});
    goes_on_after(study, told);
}

TEST_CASE(
    "tuner's troubles: without study.lock a second run neither starts nor ends the first one's "
    "engine",
    "[long]") {
    const DeployedStudy study;
    const TemporaryFolder elsewhere;
    study.set_faults({{"--max-num-seqs=3", "slow_start=2"}});
    ChildProcess first(study.words("run", {"--json"}), study.folder());
    REQUIRE(comes_true([&] { return study.engines().size() == 2; }));
    const std::string holder = std::to_string(first.id());
    fs::remove(study.directory() / "study.lock");
    const Ran second = ran(study.words("run"), elsewhere.path());
    CHECK(second.code == 3);
    CHECK(second.err == "autotune: another process is running this study (it holds " +
                            study.directory().string() +
                            "); wait for it, or choose another --directory\n");
    const auto code = first.wait_at_most(90s);
    INFO(first.err());
    REQUIRE(code == 0);
    CHECK(Json::parse(first.out())["recommended"]["command"] == best_command);
    CHECK(study.engines().size() == 3);
    CHECK(study.trials().size() == 3);
    CHECK(read_file(study.directory() / "study.lock") == holder + "\n");
}
