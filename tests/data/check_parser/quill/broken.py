# SPDX-License-Identifier: Apache-2.0
raise RuntimeError("needs a press")
