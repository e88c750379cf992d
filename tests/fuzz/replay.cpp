// SPDX-License-Identifier: Apache-2.0
// Gives the files (of the folders) on the command line to a target, one after the other, without a
// fuzzer.
#include "base/files.hpp"
#include "fuzz/target.hpp"

#include <filesystem>
#include <string>

namespace {

namespace fs = std::filesystem;

void replay(const fs::path& file) {
    const std::string input = servetune::read_file(file);
    std::fprintf(stderr, "%s\n",
                 file.c_str());  // the last line says which input it was, should it crash
    (void)LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int count, char** words) {
    std::size_t files = 0;
    for (int i = 1; i < count; ++i) {
        if (!fs::is_directory(words[i])) {
            replay(words[i]);
            ++files;
            continue;
        }
        for (const auto& entry : fs::recursive_directory_iterator(words[i])) {
            if (!entry.is_regular_file()) continue;
            replay(entry.path());
            ++files;
        }
    }
    std::fprintf(stderr, "%zu inputs read\n", files);
    return files > 0 ? 0 : 1;
}
