# SPDX-License-Identifier: Apache-2.0
"""The conductor.

Whatever uses the database raises ``CyborgError`` while it does not answer.
"""
