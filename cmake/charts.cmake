# SPDX-License-Identifier: Apache-2.0
# The library that draws the charts of the report page, as a C++ source (docs/decisions/011-charts.md).
#
# Included: adds the rule that makes ${servetune_charts_source}. As a script (cmake -P), what that rule runs: npm installs
# what src/report/charts/package-lock.json names, esbuild makes one file of it, and that file becomes a string. Where that
# cannot be done, the string is empty and says why (AUTO), or the build ends (ON). All of it stays in the build folder.

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(charts_default OFF)
  if(PROJECT_IS_TOP_LEVEL)
    set(charts_default AUTO)
  endif()
  set(SERVETUNE_CHARTS ${charts_default} CACHE STRING "Charts by a library from npm: AUTO (where npm is and answers), ON (or the build fails), OFF (SVG)")
  set_property(CACHE SERVETUNE_CHARTS PROPERTY STRINGS AUTO ON OFF)
  if(NOT SERVETUNE_CHARTS MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "SERVETUNE_CHARTS: wanted AUTO, ON or OFF, found '${SERVETUNE_CHARTS}'")
  endif()
  find_program(SERVETUNE_NPM npm DOC "Installs the library of the charts")
  find_program(SERVETUNE_NODE NAMES node nodejs DOC "Runs the bundler of the charts")
  mark_as_advanced(SERVETUNE_NPM SERVETUNE_NODE)
  set(charts_from "${PROJECT_SOURCE_DIR}/src/report/charts")
  set(charts_folder "${PROJECT_BINARY_DIR}/charts")
  set(servetune_charts_source "${charts_folder}/chart_library.cpp")
  set(servetune_charts_licences "${charts_folder}/LICENSES-charts.txt")
  set(charts_modules charts.mjs effects.mjs frame.mjs latency.mjs look.mjs parallel.mjs path.mjs trade.mjs)
  list(TRANSFORM charts_modules PREPEND "${charts_from}/" OUTPUT_VARIABLE charts_inputs)
  add_custom_command(OUTPUT "${servetune_charts_source}" BYPRODUCTS "${servetune_charts_licences}"
    COMMAND "${CMAKE_COMMAND}" "-DMODE=${SERVETUNE_CHARTS}" "-DNPM=${SERVETUNE_NPM}" "-DNODE=${SERVETUNE_NODE}" "-DFROM=${charts_from}"
      "-DFOLDER=${charts_folder}" "-DMODULES=${charts_modules}" -P "${CMAKE_CURRENT_LIST_FILE}"
    DEPENDS ${charts_inputs} "${charts_from}/package.json" "${charts_from}/package-lock.json" "${CMAKE_CURRENT_LIST_FILE}"
      "${CMAKE_CURRENT_LIST_DIR}/npm.cmake"
    COMMENT "Charts of the report (SERVETUNE_CHARTS=${SERVETUNE_CHARTS})" VERBATIM)
  return()
endif()

set(licences "${FOLDER}/LICENSES-charts.txt")
set(delimiter "servetune_charts")

function(write_source name version why)
  set(script "")
  if(NOT name STREQUAL "")
    file(READ "${FOLDER}/bundle.js" script)
  endif()
  file(READ "${licences}" texts)
  string(CONCAT source "// Made by cmake/charts.cmake.\n#include \"${FROM}/../chart_library.hpp\"\n\nnamespace servetune {\nnamespace {\n\n"
    "constexpr char script[] = R\"${delimiter}(" "${script}" ")${delimiter}\";\n"
    "constexpr char licences[] = R\"${delimiter}(" "${texts}" ")${delimiter}\";\n\n}  // namespace\n\n"
    "const ChartLibrary chart_library{\"${name}\", \"${version}\", \"${why}\", {script, sizeof script - 1}, {licences, sizeof licences - 1}};\n\n"
    "}  // namespace servetune\n")
  file(WRITE "${FOLDER}/chart_library.cpp" "${source}")
endfunction()

# The page draws SVG by itself.
macro(without why)
  if(MODE STREQUAL "ON")
    message(FATAL_ERROR "charts: SERVETUNE_CHARTS=ON wants the library of the charts from npm, but ${why}. Mend that, or configure with "
      "-DSERVETUNE_CHARTS=AUTO or OFF: the report then draws its charts as SVG.")
  endif()
  if(MODE STREQUAL "AUTO")
    message(STATUS "charts: SVG without the library from npm: ${why}. To try again: -DSERVETUNE_CHARTS=ON")
  endif()
  file(WRITE "${licences}" "The report of this build draws its charts without a library of others: ${why}.\n")
  string(REGEX REPLACE "[\"\\]" "'" why_text "${why}")
  write_source("" "" "${why_text}")
  return()
endmacro()

file(MAKE_DIRECTORY "${FOLDER}")
if(MODE STREQUAL "OFF")
  without("SERVETUNE_CHARTS is OFF")
endif()
if(NOT NPM OR NOT NODE)
  without("npm or node was not found")
endif()

include("${CMAKE_CURRENT_LIST_DIR}/npm.cmake")
npm_packages("${NPM}" "${FROM}" "${FOLDER}" why)
if(NOT why STREQUAL "")
  without("${why}")
endif()
foreach(module IN LISTS MODULES)
  file(COPY "${FROM}/${module}" DESTINATION "${FOLDER}")
endforeach()
execute_process(COMMAND "${NODE}" "${FOLDER}/node_modules/esbuild/bin/esbuild" charts.mjs --bundle --minify --format=iife --target=es2020
    --legal-comments=none --log-level=warning --outfile=bundle.js
  WORKING_DIRECTORY "${FOLDER}" TIMEOUT 60 RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(NOT code EQUAL 0)
  message(STATUS "charts: esbuild said: ${said}")
  without("esbuild could not bundle it (${code})")
endif()

# It stands in a script element of the page and in a raw string of C++.
file(SIZE "${FOLDER}/bundle.js" size)
file(READ "${FOLDER}/bundle.js" bundle)
foreach(ending IN ITEMS "</script" "<script" "<!--" ")${delimiter}")
  string(FIND "${bundle}" "${ending}" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "charts: ${FOLDER}/bundle.js has '${ending}', which would end its place in the page or in the source")
  endif()
endforeach()
set(most 1000000)
if(size GREATER most)
  message(FATAL_ERROR "charts: ${FOLDER}/bundle.js has ${size} bytes, and a page should not be larger by more than ${most}")
endif()

set(texts "The charts of the report are drawn by a copy of these libraries.\n")
foreach(package IN ITEMS echarts zrender tslib)
  set(of "${FOLDER}/node_modules/${package}")
  file(READ "${of}/package.json" facts)
  string(JSON version GET "${facts}" version)
  if(package STREQUAL "echarts")
    set(library_version "${version}")
  endif()
  string(APPEND texts "\n==== ${package} ${version} ====\n\n")
  foreach(name IN ITEMS NOTICE LICENSE LICENSE.txt licenses/LICENSE-d3)
    if(EXISTS "${of}/${name}")
      file(READ "${of}/${name}" one)
      string(STRIP "${one}" one)
      string(APPEND texts "${one}\n\n")
    endif()
  endforeach()
endforeach()
file(WRITE "${licences}" "${texts}")
write_source("Apache ECharts" "${library_version}" "")
message(STATUS "charts: Apache ECharts ${library_version}, ${size} bytes")
