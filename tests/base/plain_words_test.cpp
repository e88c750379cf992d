// SPDX-License-Identifier: Apache-2.0
// What the standard library says of threads and memory, said in plain English.
#include "support/test.hpp"

#include "base/text.hpp"
#include "servetune/error.hpp"

#include <new>
#include <system_error>

using namespace servetune;

TEST_CASE("plain words: errors of threads and memory say what to do, others are as they were") {
    const std::system_error thread(std::make_error_code(std::errc::resource_unavailable_try_again));
    CHECK(test::has(plain_words(thread), "ulimit -u"));
    CHECK(plain_words(std::system_error(std::make_error_code(std::errc::no_space_on_device), "x"))
              .starts_with("x: "));
    CHECK(test::has(plain_words(std::bad_alloc()), "memory"));
    CHECK(plain_words(IoError("as it is")) == "as it is");
}
