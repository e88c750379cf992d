# SPDX-License-Identifier: Apache-2.0
# servetune_library(NAME): the static library servetune::NAME, a component of the package.
# `-ffp-contract=off`: the same numbers on every compiler and processor.
function(servetune_library name)
  set(library servetune_${name})
  add_library(${library} STATIC)
  add_library(servetune::${name} ALIAS ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON)
  target_compile_features(${library} PUBLIC cxx_std_20)
  target_include_directories(${library} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_compile_options(${library} PRIVATE ${SERVETUNE_WARNINGS} -ffp-contract=off)
  set(SERVETUNE_COMPONENTS ${SERVETUNE_COMPONENTS} ${name} PARENT_SCOPE)
endfunction()

# servetune_cold(TARGET): its time goes into waiting and texts, so a release compiles it for size (a third smaller than at -O1 or -O2).
function(servetune_cold target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
endfunction()

# servetune_headers(LIBRARY NAME...): headers of include/servetune/, which are installed with the library.
function(servetune_headers name)
  list(TRANSFORM ARGN REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/include/servetune/\\1.hpp" OUTPUT_VARIABLE headers)
  target_sources(servetune_${name} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
endfunction()
