# SPDX-License-Identifier: Apache-2.0
"""The modules of the commands that this service installs."""

from importlib import metadata


def find_module(command: str) -> str:
    """Return the module of a command, which is named without ``cyborg-lite-``."""
    name = f'cyborg-lite-{command}'
    (script,) = metadata.entry_points(group='console_scripts', name=name)
    return script.module
