# SPDX-License-Identifier: Apache-2.0
# npm_packages(NPM FROM FOLDER WHY): installs what FROM/package-lock.json names into FOLDER/node_modules, below the build folder.
# The variable WHY is empty then, else it says why not. npm runs no programs of packages and does not wait for a network that does
# not answer; its cache is the user's only where npm_config_cache says so.
#
# As a script (cmake -P) the same for a build rule; FOLDER/why.txt has the reason, and nothing fails.
function(npm_packages npm from folder why)
  set(${why} "" PARENT_SCOPE)
  file(SHA256 "${from}/package-lock.json" wanted)
  set(installed "")
  if(EXISTS "${folder}/installed")
    file(READ "${folder}/installed" installed)
  endif()
  if(installed STREQUAL wanted)
    return()
  endif()
  if(NOT npm)
    set(${why} "npm or node was not found" PARENT_SCOPE)
    return()
  endif()
  file(REMOVE "${folder}/installed")
  file(COPY "${from}/package.json" "${from}/package-lock.json" DESTINATION "${folder}")
  set(cache --cache "${folder}/cache")
  if(DEFINED ENV{npm_config_cache})
    set(cache "")
  endif()
  execute_process(COMMAND "${npm}" ci --include=dev --include=optional --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error ${cache}
      --prefer-offline --fetch-retries=1 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=2000 --fetch-timeout=30000
    WORKING_DIRECTORY "${folder}" TIMEOUT 180 RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
  file(REMOVE_RECURSE "${folder}/cache")
  if(code EQUAL 0)
    file(WRITE "${folder}/installed" "${wanted}")
    return()
  endif()
  message(STATUS "npm said: ${said}")
  string(REGEX MATCH "code [A-Z_]+" first "${said}")
  if(first STREQUAL "")
    string(REGEX REPLACE "[\r\n].*" "" first "${said}")
  endif()
  set(${why} "npm could not install it (${code}; ${first})" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  file(MAKE_DIRECTORY "${FOLDER}")
  npm_packages("${NPM}" "${FROM}" "${FOLDER}" why)
  file(WRITE "${FOLDER}/why.txt" "${why}")
endif()
