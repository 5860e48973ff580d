# SPDX-License-Identifier: Apache-2.0
"""Example of a package with one driver of each kind."""
