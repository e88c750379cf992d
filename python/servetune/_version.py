# SPDX-License-Identifier: Apache-2.0
"""The version of the module, which is that of include/servetune/version.hpp (a test compares them)."""

__version__ = "0.1.0"
