// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.hpp"
#include "support/test.hpp"

#include "servetune/error.hpp"

#include <algorithm>

using namespace servetune;
using namespace servetune::test;

// FIPS 180-2, appendix B, and NIST's example of the empty message.
TEST_CASE("sha256: the standard's examples") {
    CHECK(sha256_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(sha256_of(std::string(1'000'000, 'a')) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256: pieces of any length give the sum of the whole, also of a file") {
    std::string text;
    for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
    for (std::size_t length = 0; length <= text.size(); ++length) {
        Sha256 sum;
        for (std::size_t at = 0; at < length; at += 13)
            sum.add(std::string_view(text).substr(at, std::min<std::size_t>(13, length - at)));
        REQUIRE(sum.digits() == sha256_of(std::string_view(text).substr(0, length)));
    }
    const TemporaryFolder folder;
    const std::string large(200'000, 'x');
    CHECK(sha256_of_file(folder.write("large", large)) == sha256_of(large));
    CHECK(sha256_of_file(folder.write("empty", "")) == sha256_of(""));
    CHECK(has(message_of<IoError>([&] { (void)sha256_of_file(folder.path() / "none"); }),
              "cannot read"));
}
