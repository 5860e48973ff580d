# SPDX-License-Identifier: Apache-2.0
"""Histories of a cloud under faults, and the model that they must match."""
