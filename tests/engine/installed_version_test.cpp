// SPDX-License-Identifier: Apache-2.0
#include "engine/launcher.hpp"
#include "support/test.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

fs::path put_program(const TemporaryFolder& folder, const std::string& name,
                     const std::string& content) {
    fs::create_directories((folder.path() / name).parent_path());
    const fs::path file = folder.write(name, content);
    fs::permissions(file, fs::perms::owner_all);
    return file;
}

}  // namespace

TEST_CASE("installed version: of the package that is called like the program or the module") {
    const TemporaryFolder folder;
    const fs::path packages = folder.path() / "venv/lib/python3.12/site-packages";
    fs::create_directories(packages / "my_engine-0.11.0.dist-info");
    fs::create_directories(packages / "my_engine_extras-9.dist-info");
    fs::create_directories(packages / "Served-1.2.0rc1+cu128.dist-info");
    const std::string engine = put_program(folder, "venv/bin/my-engine", "#!/bin/sh\n").string();
    const std::string python = put_program(folder, "venv/bin/python3", "#!/bin/sh\n").string();
    CHECK(installed_version({engine, "serve"}) == "0.11.0");
    CHECK(installed_version({"my-engine", "serve"}, (folder.path() / "venv/bin").string()) ==
          "0.11.0");
    CHECK(installed_version({python, "-m", "served.launch_server"}) == "1.2.0rc1+cu128");
    CHECK(installed_version({python, "-m", "other.launch_server"}).empty());
    // A script elsewhere whose interpreter has the package.
    CHECK(installed_version(
              {put_program(folder, "bin/my-engine", "#!" + python + "\n").string()}) == "0.11.0");
}

TEST_CASE(
    "installed version: another program is told by its size and time, one that is not here by "
    "nothing") {
    const TemporaryFolder folder;
    const fs::path engine = put_program(folder, "bin/engine", "12345");
    const std::string before = version_or_stamp({engine.string()});
    CHECK(before.starts_with("5 bytes of 20"));
    fs::last_write_time(engine, fs::last_write_time(engine) - std::chrono::hours(1));
    CHECK(version_or_stamp({engine.string()}) != before);
    CHECK(installed_version({engine.string()}).empty());  // no version: it is in no study file
    CHECK(installed_version({(folder.path() / "bin/none").string()}).empty());
    CHECK(installed_version({}).empty());
}
