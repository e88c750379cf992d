// SPDX-License-Identifier: Apache-2.0
#include "key_reader.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace servetune {
namespace {

using Form = KeyType::Form;

void check_form(const KeyType& type, std::initializer_list<Form> known) {
    if (std::find(known.begin(), known.end(), type.form) == known.end())
        throw std::logic_error("a key of type '" + type.text() + "' cannot be read so");
}

bool within(const KeyType& type, double number) {
    return (type.above_low ? number > type.low : number >= type.low) &&
           (type.below_high ? number < type.high : number <= type.high);
}

bool fits(const KeyType& type, const Yaml& node) {
    return type.form == Form::list                                  ? node.is_sequence()
           : type.form == Form::mapping || type.form == Form::keyed ? node.is_mapping()
                                                                    : node.is_scalar();
}

}  // namespace

void check_text(const KeyType& type, const std::string& text, const Yaml& node) {
    if (type.wrong == nullptr) return;
    if (const std::string why = type.wrong(text); !why.empty()) node.fail(why);
}

void read_as(const KeyType& type, const Yaml& node, std::string& into) {
    check_form(type, {Form::text, Form::word});
    into = node.text();
    if (type.form == Form::word &&
        std::find(type.words.begin(), type.words.end(), into) == type.words.end())
        node.fail_wanted(type.wanted_text());
    check_text(type, into, node);
}

void read_as(const KeyType& type, const Yaml& node, bool& into) {
    check_form(type, {Form::boolean});
    into = node.boolean();
}

void read_as(const KeyType& type, const Yaml& node, std::int64_t& into) {
    check_form(type, {Form::integer});
    into = node.integer();
    if (!within(type, static_cast<double>(into))) node.fail_wanted(type.wanted_text());
}

void read_as(const KeyType& type, const Yaml& node, double& into) {
    check_form(type, {Form::number, Form::share, Form::duration});
    into = type.form == Form::share    ? node.fraction()
           : type.form == Form::number ? node.real()
           : type.above_low            ? node.positive_seconds()
                                       : node.seconds();
    if (type.form == Form::number && type.bounded() && !(within(type, into) && std::isfinite(into)))
        node.fail_wanted(type.wanted_text());
}

void read_as(const KeyType& type, const Yaml& node, Value& into) {
    check_form(type, {Form::value});
    into = node.value();
}

const KeyType& alternative(const KeyType& type, const Yaml& node) {
    // Rows of tables stay.
    if (type.form != Form::either) return type;  // NOLINT(bugprone-return-const-ref-from-parameter)
    const KeyType& first = alternative(*type.element, node);
    return fits(first, node) ? first : alternative(*type.other, node);
}

const KeyType& element_of(const KeyType& type, KeyType::Form form) {
    check_form(type, {form});
    return *type.element;
}

}  // namespace servetune
