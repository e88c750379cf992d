// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/redactor.hpp"
#include "servetune/error.hpp"

#include <string>

namespace servetune {

/// Hears of secrets while it lives: what `${NAME}` gives in the YAML files that this thread reads,
/// and passwords in their URLs. They go to `into`, which must outlive it. Several may live at once,
/// each made after and ended before the one around it; all of them hear.
///
/// Not every value of the environment is a secret, but nothing tells which: all are. Left out are
/// those that would be found by chance in other text: true, false, a number of less than 8
/// characters, any text of less than 4.
class CollectSecrets {
public:
    explicit CollectSecrets(Redactor& into);
    ~CollectSecrets();
    CollectSecrets(const CollectSecrets&) = delete;
    CollectSecrets& operator=(const CollectSecrets&) = delete;

    /// Tells all that live in this thread.
    static void found(const std::string& secret, const std::string& shown);
    static void found(const Redactor& secrets);

private:
    Redactor& into_;
    CollectSecrets* around_;
};

/// The values of this process's environment variables whose names say that they hold a secret
/// (`names_secret`), where they have 8 characters or more and are no number, and the passwords of
/// URLs in any variable. The study need not name them, and what it starts may have found them
/// elsewhere.
Redactor secrets_of_environment();

/// What `run` gives; an error of ours that it throws is thrown without the secrets.
template <class Run>
auto without_secrets_in_errors(const Redactor& secrets, const Run& run) {
    try {
        return run();
    } catch (const ParseError& error) {
        throw ParseError(secrets(error.what()));
    } catch (const SpaceError& error) {
        throw SpaceError(secrets(error.what()));
    } catch (const IoError& error) {
        throw IoError(secrets(error.what()));
    } catch (const UsageError& error) {
        throw UsageError(secrets(error.what()));
    }
}

}  // namespace servetune
