# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the import: those of the commands."""

from tests.unit.cmd.conftest import database, write_config

__all__ = ['database', 'write_config']
