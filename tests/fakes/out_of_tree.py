# SPDX-License-Identifier: Apache-2.0
"""Packages that bring a driver of their own, as pip would lay them."""

from pathlib import Path
from typing import Final

from cyborg_lite.drivers.base import Driver

_METADATA: Final = 'Metadata-Version: 2.1\nName: {name}\nVersion: 0\n'
_ENTRY_POINTS: Final = '[cyborg_lite.drivers]\n{name} = {module}:{kind}\n'


def install(driver: type[Driver], site: Path) -> Path:
    """The folder, for the path on which Python looks for packages."""
    package = site / f'{driver.NAME}-0.dist-info'
    package.mkdir(parents=True)
    (package / 'METADATA').write_text(_METADATA.format(name=driver.NAME))
    (package / 'entry_points.txt').write_text(
        _ENTRY_POINTS.format(
            name=driver.NAME, module=driver.__module__, kind=driver.__qualname__
        )
    )
    return site
