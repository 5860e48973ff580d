# SPDX-License-Identifier: Apache-2.0
"""The privileged process of a host whose kernel is emulated.

All that it checks and writes is the product's own; only is a directory taken for sysfs,
and what was written is told to the emulated kernel.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from oslo_privsep.daemon import helper_main

from cyborg_lite.drivers import privileged
from cyborg_lite.drivers.kernel import PrivilegedKernel
from tests.fakes.kernel_service import asking

ROOT: Final = 'CYBORG_LITE_TEST_ROOT'


# Any: arguments and answer of either.
def _told(name: str) -> Callable[..., Any]:
    """Does what it does, and then has the emulated kernel do it."""
    act = getattr(privileged, name)

    def told(root: str, what: str, *rest: Any) -> Any:
        file = Path(root, what)
        before = file.read_text() if file.is_file() else None
        act(root, what, *rest)
        if before is not None:
            # What it is now is for the kernel to say.
            file.write_text(before)
        return asking(name)(PrivilegedKernel(), Path(root), what, *rest)

    # The library asks where it stands, and looks it up there.
    told.__module__, told.__name__ = privileged.__name__, name
    return privileged.CONTEXT.entrypoint(told)


if __name__ == '__main__':
    devices = frozenset({os.stat(os.environ[ROOT]).st_dev})
    setattr(privileged, '_sysfs_devices', lambda: devices)  # noqa: B010
    for name in ('write', 'run'):
        setattr(privileged, name, _told(name))
    helper_main()
