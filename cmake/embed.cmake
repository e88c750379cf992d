# SPDX-License-Identifier: Apache-2.0
# embed_files(TARGET HEADER FILE...): the text of each file as a constant of the target, declared in HEADER as
# `extern const EmbeddedFile NAME`, NAME being page_css for page.css, with its SHA-256 for a content security policy.
function(embed_files target header)
  set(source "// Made by cmake/embed.cmake.\n#include \"${header}\"\n\nnamespace servetune {\n\n")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    cmake_path(GET file FILENAME name)
    string(REPLACE "." "_" name "${name}")
    file(READ "${file}" text)
    string(SHA256 hash "${text}")
    string(APPEND source "const EmbeddedFile ${name}{R\"embedded(" "${text}" ")embedded\", \"${hash}\"};\n")
  endforeach()
  set(made "${CMAKE_CURRENT_BINARY_DIR}/embedded.cpp")
  file(CONFIGURE OUTPUT "${made}" CONTENT "${source}\n}  // namespace servetune\n" @ONLY)
  set_source_files_properties("${made}" TARGET_DIRECTORY ${target} PROPERTIES SKIP_LINTING ON
    SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE "${made}")
endfunction()
