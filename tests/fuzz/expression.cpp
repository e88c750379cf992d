// SPDX-License-Identifier: Apache-2.0
// Any bytes as an expression: what parses prints to what parses to the same, and can be evaluated
// over values of all types.
#include "fuzz/target.hpp"
#include "servetune/expression.hpp"
#include "space/expression_rewriting.hpp"

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <string>

using namespace servetune;
using namespace servetune::fuzz;

namespace {

Expression respelled(const Expression& expression) {
    return expression.renamed([](const std::string& name) { return name; });
}

/// true, false, unknown, or that the types do not fit.
enum class Answer { yes, no, unknown, mismatch };
using Lookup = std::function<const Value*(std::size_t)>;
Answer answer(const Expression& expression, const Lookup& lookup) {
    std::optional<bool> result;
    if (!accepted([&] { result = expression.evaluate(lookup); })) return Answer::mismatch;
    return !result ? Answer::unknown : *result ? Answer::yes : Answer::no;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::array<Value, 9> values{Value(true),
                                             Value(std::int64_t{0}),
                                             Value(std::int64_t{8192}),
                                             Value(std::numeric_limits<std::int64_t>::min()),
                                             Value(-0.5),
                                             Value(1e308),
                                             Value("fp8"),
                                             Value(""),
                                             Value("it's \"quoted\"")};
    const std::string_view text = text_of_input(data, size);
    std::optional<Expression> expression;
    if (!accepted([&] { expression = parse_expression(text); })) return 0;
    must_hold(expression->text() == text, "an expression keeps its text");
    const Expression printed = respelled(*expression);
    // Printing adds parentheses, so what is near the parser's bounds may go beyond them.
    std::optional<Expression> again;
    try {
        again = parse_expression(printed.text());
    } catch (const ParseError& error) {
        const std::string message = error.what();
        must_hold(message.find("nested terms") != std::string::npos ||
                      message.find("has at most") != std::string::npos,
                  "a printed expression parses");
    }
    if (again)
        must_hold(respelled(*again).text() == printed.text(),
                  "a printed expression prints the same");
    (void)answer(*expression, [](std::size_t) -> const Value* { return nullptr; });
    for (std::size_t shift = 0; shift < values.size(); ++shift) {
        const Lookup lookup = [&](std::size_t i) { return &values[(shift + i) % values.size()]; };
        const Answer first = answer(*expression, lookup);
        must_hold(answer(printed, lookup) == first, "renaming changes no answer");
        if (again) must_hold(answer(*again, lookup) == first, "printing changes no answer");
        const Expression guarded = expression->only_if("engine", "vllm");
        must_hold(guarded.names().size() <= expression->names().size() + 1,
                  "a guard adds its name");
        for (const std::string& name : expression->names()) {
            const Expression held = expression->with_constant(name, values[shift]);
            must_hold(held.names().size() + 1 == expression->names().size(),
                      "a constant is no name");
            (void)answer(held, lookup);
            if (size > 300) break;  // every name of a long expression is quadratic
        }
    }
    return 0;
}
