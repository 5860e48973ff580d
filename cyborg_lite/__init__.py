# SPDX-License-Identifier: Apache-2.0
"""Accelerator management for OpenStack."""
