// SPDX-License-Identifier: Apache-2.0
#include "base/token_shapes.hpp"
#include "support/test.hpp"

using namespace servetune;

TEST_CASE("token shapes: what looks like a secret goes, all else stays") {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"use hf_AbCdEfGhIjKlMnOpQr now", "use *** now"},
        {"sk-proj-0123456789abcdef.", "***"},
        {"x AKIAIOSFODNN7EXAMPLE y", "x *** y"},
        {"Authorization: Bearer abc.DEF-123~45", "Authorization: Bearer ***"},
        {"https://me:pass@host/a", "https://***@host/a"},
        {"https://host/a?api_key=0123456789&n=1", "https://host/a?api_key=***&n=1"},
        {"?access_token=ab&n=1", "?access_token=***&n=1"},
        {"HF_TOKEN=abcd x", "HF_TOKEN=*** x"},
        {"{'api_key': ['abcdefgh']}", "{'api_key': ['***']}"},
        {"vllm serve M --api-key abcdefgh --port 1", "vllm serve M --api-key *** --port 1"},
        {"api_key=None, max_tokens=4096, pad_token=151643",
         "api_key=None, max_tokens=4096, pad_token=151643"},
        {"at http://127.0.0.1:8000/v1 with a@b.c", "at http://127.0.0.1:8000/v1 with a@b.c"},
        {"the bearer of news, hf_transfer, hf_xet_high_performance, sk-learn",
         "the bearer of news, hf_transfer, hf_xet_high_performance, sk-learn"},
        {"", ""},
    };
    for (const auto& [text, wanted] : cases) CHECK(without_token_shapes(text) == wanted);
}
