# SPDX-License-Identifier: Apache-2.0
# servetune_library(NAME HEADERS ... SOURCES ...): the static library servetune::NAME, a component of the package. `-ffp-contract=off`: the same
# numbers on every compiler and processor.
function(servetune_library name)
  cmake_parse_arguments(arg "" "" "HEADERS;SOURCES" ${ARGN})
  add_library(servetune_${name} STATIC ${arg_SOURCES})
  add_library(servetune::${name} ALIAS servetune_${name})
  set_target_properties(servetune_${name} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON)
  target_sources(servetune_${name} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${arg_HEADERS})
  target_compile_options(servetune_${name} PRIVATE ${SERVETUNE_WARNINGS} -ffp-contract=off)
  set(SERVETUNE_COMPONENTS ${SERVETUNE_COMPONENTS} ${name} PARENT_SCOPE)
endfunction()
