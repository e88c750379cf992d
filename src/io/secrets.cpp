// SPDX-License-Identifier: Apache-2.0
#include "servetune/io/secrets.hpp"

namespace servetune {
namespace {

thread_local CollectSecrets* innermost = nullptr;

}  // namespace

CollectSecrets::CollectSecrets(Redactor& into) : into_(into), around_(innermost) { innermost = this; }

CollectSecrets::~CollectSecrets() { innermost = around_; }

void CollectSecrets::found(const std::string& secret, const std::string& shown) {
    for (const CollectSecrets* one = innermost; one != nullptr; one = one->around_) one->into_.add(secret, shown);
}

void CollectSecrets::found(const Redactor& secrets) {
    for (const CollectSecrets* one = innermost; one != nullptr; one = one->around_) one->into_.add(secrets);
}

}  // namespace servetune
