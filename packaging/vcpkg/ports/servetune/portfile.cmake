# SPDX-License-Identifier: Apache-2.0
# Builds the checkout that this port lies in: vcpkg install servetune --overlay-ports=CHECKOUT/packaging/vcpkg/ports
vcpkg_check_linkage(ONLY_STATIC_LIBRARY)
cmake_path(ABSOLUTE_PATH CURRENT_PORT_DIR BASE_DIRECTORY "${CMAKE_CURRENT_LIST_DIR}" NORMALIZE OUTPUT_VARIABLE port)
cmake_path(SET SOURCE_PATH NORMALIZE "${port}/../../../..")
vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES engine SERVETUNE_BUILD_ENGINE)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${features} -DSERVETUNE_BUILD_PROGRAM=OFF -DSERVETUNE_BUILD_TESTS=OFF -DSERVETUNE_BUILD_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/servetune)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
