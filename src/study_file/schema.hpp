// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "key.hpp"

#include <vector>

namespace servetune {

/// The kinds of file that have a schema: engine, workload, study, preset, hardware, model.
std::vector<std::string> schema_kinds();

/// A JSON Schema (draft 2020-12) of one kind of file, made from the table of keys that its reader
/// accepts and what `page` says of the keys, so that an editor completes and checks what users
/// write. Throws UsageError for an unknown kind. The files in search_spaces/schema/ are these texts
/// (`autotune schema KIND`); a test keeps them equal.
std::string json_schema(std::string_view kind, const std::string& page);

/// The page (search_spaces/FORMAT.md) with the tables of keys below its headings `### TABLE`
/// written anew: keys and types; what it says of a key stays, and its other text. A new key has an
/// empty cell. Throws ParseError where a table has no heading.
std::string with_key_tables(const std::string& page);

/// What `autotune schema KIND` prints: a schema, or for `format` that page of the search spaces
/// with its tables of today.
std::string schema_text(std::string_view kind);

/// Every table of keys: those of the kinds of file, each before the tables that stand below it.
std::vector<const KeyType*> key_tables();

}  // namespace servetune
