# SPDX-License-Identifier: Apache-2.0
"""Packages with an out-of-tree driver, in the layout of pip."""

from pathlib import Path
from typing import Final

from cyborg_lite.drivers.base import Driver

_METADATA: Final = 'Metadata-Version: 2.1\nName: {name}\nVersion: 0\n'
_ENTRY_POINTS: Final = '[cyborg_lite.drivers]\n{name} = {module}:{kind}\n'


def install(driver: type[Driver], site: Path) -> Path:
    """Install a driver below a directory; return the entry for the Python path."""
    package = site / f'{driver.NAME}-0.dist-info'
    package.mkdir(parents=True)
    (package / 'METADATA').write_text(_METADATA.format(name=driver.NAME))
    (package / 'entry_points.txt').write_text(
        _ENTRY_POINTS.format(
            name=driver.NAME, module=driver.__module__, kind=driver.__qualname__
        )
    )
    return site
