# SPDX-License-Identifier: Apache-2.0
"""Trials as data frames of libraries that are imported here only."""
