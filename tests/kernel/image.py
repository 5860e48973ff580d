# SPDX-License-Identifier: Apache-2.0
"""Disk of a virtual machine: Debian with its kernel, and an agent.

The base has packages of Debian only. It is kept in ``.tox/kernel-image``, in a file
named by the digest of its recipe. The disk is made for each run: the role of Ansible
installs the wheel of this checkout in a chroot.
"""

import fcntl
import hashlib
import inspect
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.ansible.collection import ROOT, build_collection
from tests.builders import driver_packages
from tests.kernel.mdev_driver import MdevCards

PACKAGES: Final = (
    'linux-image-amd64 systemd-sysv udev dbus kmod sudo iproute2 '
    'pciutils nvme-cli mdevctl lvm2 mdadm cryptsetup-bin fdisk dosfstools '
    'procps python3-venv qemu-guest-agent'
)
"""Packages of the host; the guest agent runs the commands of the tests."""

_SUITE: Final = 'bookworm'
_PYTHON: Final = (3, 11)  # of the suite of Debian
_CACHE: Final = ROOT / '.tox' / 'kernel-image'
_DISK_SIZE: Final = '3G'

# mtty has mediated devices and no hardware. Debian ships its source only. Libvirt and
# Nova know only PCI functions as parents: here it is the device edu of QEMU.
_MDEV_PARENT: Final = r'\&pci_get_device(0x1234, 0x11e8, NULL)->dev'
_BUILD_PACKAGES: Final = 'linux-headers-amd64 linux-source gcc make xz-utils libc6-dev'
_BUILD_MTTY: Final = f"""\
set -e
export DEBIAN_FRONTEND=noninteractive
cd /root
tar -xf /usr/src/linux-source-*.tar.xz --wildcards '*/samples/vfio-mdev/mtty.c' \\
    --strip-components=3
sed -i 's/parent, &mtty_dev.dev,/parent, {_MDEV_PARENT},/' mtty.c
grep -q pci_get_device mtty.c
echo 'obj-m := mtty.o' > Makefile
release=$(basename /lib/modules/*)
make -s -C /lib/modules/$release/build M=/root modules
install -D -m 0644 mtty.ko /lib/modules/$release/extra/mtty.ko
depmod $release
rm -rf /root/*
apt-get purge -qq --autoremove {_BUILD_PACKAGES} > /dev/null
"""

_INSTALL: Final = """\
set -e
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
exec chroot "$1" sh -ec '
python3 -m venv /root/ansible
/root/ansible/bin/pip install -q --no-index --find-links /root/wheels ansible-core
export HOME=/root PATH=/root/ansible/bin:$PATH LC_ALL=C.UTF-8 ANSIBLE_NOCOLOR=1
export ANSIBLE_COLLECTIONS_PATH=/root/collections ANSIBLE_LOCALHOST_WARNING=0
ansible-galaxy collection install /root/collection/*.tar.gz --offline \\
    -p /root/collections
ansible-playbook --inventory /root/inventory.json cyborg_lite.deploy.site
systemctl enable systemd-networkd
'
"""

_NETWORK: Final = '[Match]\nType=ether\n[Network]\nDHCP=yes\n'


@dataclass(frozen=True)
class Image:
    """Files that QEMU boots."""

    disk: Path
    kernel: Path
    initial_ram_disk: Path


def build_image(directory: Path, variables: Mapping[str, Any]) -> Image:
    """Build the image in an empty directory.

    :param variables: variables of the role of the agent. Any: they are JSON.
    """
    assert sys.version_info[:2] == _PYTHON, f'the image has Python {_PYTHON}'
    base = _build_base()
    root = directory / 'root'
    root.mkdir()
    _run('tar', '-C', str(root), '-xf', str(base), '--exclude=./dev/*')
    _add_sources(root / 'root', variables)
    (root / 'etc/systemd/network/80-dhcp.network').write_text(_NETWORK)
    (root / 'etc/modules-load.d/mtty.conf').write_text('mtty\n')
    command = ('unshare', '--mount', '--pid', '--fork', 'sh', '-c', _INSTALL, 'sh')
    _run(*command, str(root))
    for name in ('ansible', 'wheels', 'collection', 'collections'):
        shutil.rmtree(root / 'root' / name)
    _install_driver(root)
    image = Image(directory / 'disk.raw', directory / 'kernel', directory / 'initrd')
    [kernel], [ram_disk] = (
        root.glob(f'boot/{name}-*') for name in ('vmlinuz', 'initrd.img')
    )
    shutil.copy(kernel, image.kernel)
    shutil.copy(ram_disk, image.initial_ram_disk)
    options = ('-q', '-t', 'ext4', '-L', 'cyborg-root', '-d', str(root))
    _run('mke2fs', *options, str(image.disk), _DISK_SIZE)
    shutil.rmtree(root)
    return image


def _install_driver(root: Path) -> None:
    """Install the out-of-tree driver for the mediated devices, and its privileges."""
    module = Path(inspect.getfile(MdevCards)).relative_to(ROOT)
    site = (
        root / 'opt/cyborg-lite/lib' / 'python{}.{}'.format(*_PYTHON) / 'site-packages'
    )
    (site / module).parent.mkdir(parents=True)
    shutil.copy(ROOT / module, site / module)
    driver_packages.install(MdevCards, site)
    lines = (ROOT / 'etc/privileges.d/nvidia_gpu_driver.conf').read_text()
    cards = f'cards {MdevCards.VENDOR} {" ".join(MdevCards.CLASSES)}'
    path = root / f'etc/cyborg-lite/privileges.d/{MdevCards.NAME}.conf'
    path.write_text(lines.replace('cards 10de 03', cards))


def _build_base() -> Path:
    """Return the archive of the base; build it unless it exists."""
    recipe = json.dumps([PACKAGES, _SUITE, _BUILD_MTTY, _list_sources()])
    base = _CACHE / f'{hashlib.sha256(recipe.encode()).hexdigest()[:16]}.tar'
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / 'lock').open('w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not base.exists():
            part = base.with_suffix('.part.tar')
            script = base.with_suffix('.sh')
            script.write_text(_BUILD_MTTY)
            packages = ','.join(f'{PACKAGES} {_BUILD_PACKAGES}'.split())
            options = ('--quiet', '--variant=minbase', f'--include={packages}')
            copy = f'--customize-hook=copy-in {script} /root'
            build = f'--customize-hook=chroot "$1" sh /root/{script.name}'
            sources = _list_sources()
            _run('mmdebstrap', *options, copy, build, _SUITE, str(part), *sources)
            part.rename(base)
    return base


def _list_sources() -> Sequence[str]:
    """Return the sources of Debian that this machine uses, as lines of sources.list."""
    text = '$(ORIGIN) deb $(REPO_URI) $(RELEASE) $(COMPONENT)'
    output = _run('apt-get', 'indextargets', '--format', text, 'Created-By: Packages')
    lines = sorted({line for line in output.splitlines() if line.startswith('Debian ')})
    assert lines, 'apt-get update is required'
    return [line.removeprefix('Debian ') for line in lines]


def _add_sources(directory: Path, variables: Mapping[str, Any]) -> None:
    """Write what the role installs into the home of root in the chroot."""
    pip = (sys.executable, '-m', 'pip', 'wheel', '--quiet', '--wheel-dir')
    constraints = str(ROOT / 'devstack' / 'constraints.txt')
    sources = (str(ROOT), 'ansible-core', '--constraint', constraints)
    _run(*pip, str(directory / 'wheels'), *sources)
    build_collection(directory / 'collection')
    host = {
        'ansible_connection': 'local',
        'cyborg_lite_pip_arguments': '--no-index --find-links /root/wheels',
        'cyborg_lite_manage_units': False,
        **variables,
    }
    groups = {'cyborg_lite_agent': {'hosts': {'this-host': host}}}
    (directory / 'inventory.json').write_text(json.dumps(groups))


def _run(*command: str) -> str:
    """Run a command and return its output; AssertionError if it fails."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, (
        f'{command[0]}: {run.stdout[-4000:]}{run.stderr[-4000:]}'
    )
    return run.stdout
