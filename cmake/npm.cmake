# SPDX-License-Identifier: Apache-2.0
# cmake -DNPM=npm -DFROM=FOLDER -DFOLDER=FOLDER -P npm.cmake: installs what FROM/package-lock.json names into FOLDER/node_modules.
# FOLDER/why.txt is empty then, else it says why not; nothing fails. npm runs no programs of packages and does not wait for a network
# that does not answer; its cache is the user's only where npm_config_cache says so.
file(MAKE_DIRECTORY "${FOLDER}")
file(SHA256 "${FROM}/package-lock.json" wanted)
set(installed "")
if(EXISTS "${FOLDER}/installed")
  file(READ "${FOLDER}/installed" installed)
endif()
if(installed STREQUAL wanted)
  file(WRITE "${FOLDER}/why.txt" "")
  return()
endif()
file(REMOVE "${FOLDER}/installed")
file(COPY "${FROM}/package.json" "${FROM}/package-lock.json" DESTINATION "${FOLDER}")
set(cache --cache "${FOLDER}/cache")
if(DEFINED ENV{npm_config_cache})
  set(cache "")
endif()
execute_process(COMMAND "${NPM}" ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error ${cache}
    --prefer-offline --fetch-retries=1 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=2000 --fetch-timeout=30000
  WORKING_DIRECTORY "${FOLDER}" TIMEOUT 180 RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
file(REMOVE_RECURSE "${FOLDER}/cache")
if(code EQUAL 0)
  file(WRITE "${FOLDER}/installed" "${wanted}")
  file(WRITE "${FOLDER}/why.txt" "")
else()
  message(STATUS "npm said: ${said}")
  string(REGEX MATCH "[^\r\n]*" first "${said}")
  file(WRITE "${FOLDER}/why.txt" "npm could not install it (${code}; ${first})")
endif()
