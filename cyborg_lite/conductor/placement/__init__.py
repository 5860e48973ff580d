# SPDX-License-Identifier: Apache-2.0
"""Synchronization of the database with Placement."""
