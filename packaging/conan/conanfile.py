# SPDX-License-Identifier: Apache-2.0
"""The library for Conan 2, from the checkout that this recipe lies in: conan create packaging/conan -s compiler.cppstd=20"""

import pathlib
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Servetune(ConanFile):
    name = "servetune"
    package_type = "static-library"
    license = "Apache-2.0"
    description = (
        "Finds and proves the fastest launch flags of an LLM serving engine, or of anything else that is measured"
    )
    settings = "os", "compiler", "build_type", "arch"
    options = {"engine": [True, False]}  # the components load, serve and studio
    default_options = {"engine": True}

    @property
    def _checkout(self):
        return pathlib.Path(self.recipe_folder).parent.parent

    def set_version(self):
        text = (self._checkout / "include/servetune/version.hpp").read_text()
        self.version = re.search(r'library_version = "([^"]+)"', text)[1]

    def export_sources(self):
        for name in ("CMakeLists.txt", "LICENSE"):
            copy(self, name, self._checkout, self.export_sources_folder)
        for name in ("cmake", "include", "src", "search_spaces", "examples", "tests/contract", "tests/support"):
            copy(self, "*", self._checkout / name, pathlib.Path(self.export_sources_folder) / name)

    def requirements(self):
        self.requires("boost/[>=1.74 <2]", transitive_headers=True, options={"header_only": True})
        self.requires("sqlite3/[>=3.40 <4]")
        self.requires("eigen/[>=3.4 <6]", visible=False)
        self.requires("nlohmann_json/[>=3.11 <4]", visible=False)
        if self.options.engine:
            self.requires("fmt/[>=9]")
            self.requires("libcurl/[>=7.85 <9]")
            self.requires("simdjson/[>=2 <5]")
            self.requires("yaml-cpp/[>=0.7 <1]")
            self.requires("zlib/[>=1.2 <2]")

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for part in ("PROGRAM", "TESTS", "EXAMPLES"):
            toolchain.cache_variables[f"SERVETUNE_BUILD_{part}"] = False
        toolchain.cache_variables["SERVETUNE_BUILD_ENGINE"] = bool(self.options.engine)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, pathlib.Path(self.package_folder) / "licenses")
        CMake(self).install()

    def package_info(self):
        # The installed package has its own servetune-config.cmake, with components.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/servetune"]
        self.cpp_info.libs = ["servetune_search", "servetune_core"]
        if self.options.engine:
            self.cpp_info.libs = ["servetune_studio", "servetune_serve", "servetune_search", "servetune_load", "servetune_core"]
