# SPDX-License-Identifier: Apache-2.0
"""Nova's compute service with its libvirt driver and a fake libvirt.

The first argument is the directory of the host, whose name is that of the host. The
others are those of the service.
"""

from nova.cmd import compute  # isort: skip  # first of all: it chooses native threads

import io
import sys
from pathlib import Path
from typing import Any, Final

import fixtures
from nova.tests import fixtures as nova_fixtures
from nova.tests.fixtures import libvirt as fake
from nova.virt.libvirt import utils as libvirt_utils

from tests.doubles.libvirt import KeptConnection, KeptDomain

_DRIVER: Final = 'nova.virt.libvirt.LibvirtDriver'
_UTILS: Final = 'nova.virt.libvirt.driver.libvirt_utils'
_DISK: Final = {'total': 128, 'used': 0, 'free': 128}


def list_fixtures() -> list[fixtures.Fixture]:
    """Return the fixtures with which Nova tests its libvirt driver."""
    return [
        nova_fixtures.PrivsepFixture(),
        nova_fixtures.LibvirtImageBackendFixture(),
        nova_fixtures.CGroupsFixture(),
        nova_fixtures.LibvirtFixture(),
        nova_fixtures.OSBrickFixture(),
        fixtures.MockPatch(f'{_DRIVER}._create_image', side_effect=_create_directory),
        fixtures.MockPatch(
            f'{_DRIVER}._get_instance_disk_info_from_config', return_value=[]
        ),
        fixtures.MockPatch(f'{_DRIVER}._get_local_gb_info', return_value=_DISK),
        fixtures.MockPatch(f'{_DRIVER}.snapshot'),
        fixtures.MockPatch(f'{_UTILS}.is_valid_hostname', return_value=True),
        fixtures.MockPatch(f'{_UTILS}.file_open', side_effect=_open_nothing),
        fixtures.MockPatch('nova.privsep.utils.supports_direct_io', return_value=True),
        fixtures.MockPatch(
            'nova.virt.libvirt.host.Host.get_online_cpus', return_value=set(range(16))
        ),
    ]


# Any, here and below: objects of Nova.
def _create_directory(
    context: Any, instance: Any, *arguments: Any, **options: Any
) -> tuple[bool, bool]:
    """Create the directory of an instance, without disks."""
    path = Path(libvirt_utils.get_instance_path(instance))
    path.mkdir(parents=True, exist_ok=True)
    return False, False


def _open_nothing(*arguments: Any, **options: Any) -> io.BytesIO:
    return io.BytesIO(b'')


def main() -> None:
    for fixture in list_fixtures():
        fixture.setUp()
    directory = Path(sys.argv.pop(1))
    fake.Domain = KeptDomain
    # Nova's driver opens its connection with this function.
    fake.openAuth = lambda *_: KeptConnection(directory)
    compute.main()


if __name__ == '__main__':
    main()
