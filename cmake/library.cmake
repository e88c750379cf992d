# SPDX-License-Identifier: Apache-2.0
# servetune_library(NAME [STATIC]): the library servetune::NAME, a component of the package; header-only without STATIC.
# `-ffp-contract=off`: the same numbers on every compiler and processor.
function(servetune_library name)
  set(library servetune_${name})
  if(ARGN STREQUAL "STATIC")
    set(kind STATIC)
    set(scope PUBLIC)
  else()
    set(kind INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(${library} ${kind})
  add_library(servetune::${name} ALIAS ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON)
  target_compile_features(${library} ${scope} cxx_std_20)
  if(kind STREQUAL "STATIC")
    target_include_directories(${library} PRIVATE "${PROJECT_SOURCE_DIR}/src")
    target_compile_options(${library} PRIVATE ${SERVETUNE_WARNINGS} -ffp-contract=off)
  endif()
  set(SERVETUNE_COMPONENTS ${SERVETUNE_COMPONENTS} ${name} PARENT_SCOPE)
endfunction()

# servetune_headers(LIBRARY NAME...): headers of include/servetune/, which are installed with the library.
function(servetune_headers name)
  list(TRANSFORM ARGN REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/include/servetune/\\1.hpp" OUTPUT_VARIABLE headers)
  get_target_property(type servetune_${name} TYPE)
  set(scope PUBLIC)
  if(type STREQUAL "INTERFACE_LIBRARY")
    set(scope INTERFACE)
  endif()
  target_sources(servetune_${name} ${scope} FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
endfunction()

# servetune_sources(LIBRARY FILE...): bodies beside the list that names them.
function(servetune_sources name)
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  target_sources(servetune_${name} PRIVATE ${ARGN})
endfunction()
