# SPDX-License-Identifier: Apache-2.0
"""Panels of Horizon for devices, device profiles and accelerator requests."""
