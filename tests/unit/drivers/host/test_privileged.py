# SPDX-License-Identifier: Apache-2.0
"""Attacks on the privileged process, called directly without the process."""

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cyborg_lite.drivers.host import privileged, privileges
from cyborg_lite.drivers.host.kernel import PrivilegedKernel
from tests.hosts.kernel import FakeKernel

_ADDRESS = '0000:3b:00.0'
_DIRECTORY = f'sys/devices/pci0000:3a/{_ADDRESS}'
_LINK = f'sys/bus/pci/devices/{_ADDRESS}'
_LINES = """
write <function>/sriov_numvfs [0-9]{1,4}
run /usr/bin/tool -[ed] <address>
"""
_NOBODY = 65534


pytestmark = pytest.mark.usefixtures('as_root')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Build a host with one card, its link, a tool and a privileges file."""
    directory = tmp_path / _DIRECTORY
    directory.mkdir(parents=True)
    (directory / 'sriov_numvfs').write_text('0')
    (directory / 'remove').write_text('0')
    link = tmp_path / _LINK
    link.parent.mkdir(parents=True)
    link.symlink_to(os.path.relpath(directory, link.parent))
    _write_lines(tmp_path, _LINES)
    _write_tool(tmp_path / 'usr/bin/tool', 'echo "$@"; exit 3')
    return tmp_path


def _write_lines(root: Path, lines: str) -> Path:
    file = root / privileges.DIRECTORY / 'driver.conf'
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(lines)
    file.chmod(0o644)
    return file


def _write_tool(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\n{script}\n')
    path.chmod(0o755)
    return path


def _write_number(root: Path, text: str = '4') -> None:
    privileged.write(f'{root}/{_LINK}/sriov_numvfs', text)


def _read_number(root: Path) -> str:
    return (root / _DIRECTORY / 'sriov_numvfs').read_text()


def test_write_allowed_file_changes_it(root: Path) -> None:
    _write_number(root)
    assert _read_number(root) == '4'


@pytest.mark.parametrize(
    'path',
    [
        'etc/shadow',
        f'{_LINK}/remove',
        f'{_LINK}/../../sriov_numvfs',
        'sys/sriov_numvfs',
        'sys/devices/0000:3b:00.9/sriov_numvfs',
        f'etc/{_ADDRESS}/sriov_numvfs',
    ],
)
def test_write_other_path_raises(path: str, root: Path) -> None:
    file = root / path
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('0')
    with pytest.raises((PermissionError, FileNotFoundError)):
        privileged.write(f'{root}/{path}', '1')
    assert file.read_text() == '0'


@pytest.mark.parametrize('text', ['', '99999', '4\n', '-1', '4 ', '٤', 'x' * 100_000])
def test_write_other_value_raises(text: str, root: Path) -> None:
    with pytest.raises(PermissionError):
        _write_number(root, text)
    assert _read_number(root) == '0'


@pytest.mark.parametrize('path', ['/' * 5000, 'sys/x', '/sys/\0', '', '/sys/' * 800])
def test_write_invalid_path_raises(path: str, root: Path) -> None:
    with pytest.raises((PermissionError, FileNotFoundError)):
        privileged.write(path, '4')


def test_write_below_other_root_raises(root: Path) -> None:
    neighbor = root.parent / f'{root.name}-neighbor'
    (neighbor / _DIRECTORY).mkdir(parents=True)
    file = neighbor / _DIRECTORY / 'sriov_numvfs'
    file.write_text('0')
    with pytest.raises(PermissionError):
        privileged.write(str(file), '4')
    assert file.read_text() == '0'


@pytest.mark.parametrize('target', [f'{_DIRECTORY}/remove', 'etc/shadow'])
def test_write_link_to_other_file_raises(target: str, root: Path) -> None:
    (root / 'etc/shadow').write_text('0')
    number = root / _DIRECTORY / 'sriov_numvfs'
    number.unlink()
    number.symlink_to(root / target)
    with pytest.raises(PermissionError):
        _write_number(root)
    assert (root / target).read_text() == '0'


def test_write_hard_link_raises(root: Path) -> None:
    secret, number = root / 'etc/shadow', root / _DIRECTORY / 'sriov_numvfs'
    secret.write_text('0')
    number.unlink()
    number.hardlink_to(secret)
    with pytest.raises(PermissionError, match='plain file'):
        _write_number(root)
    assert secret.read_text() == '0'


def test_write_fifo_raises(root: Path) -> None:
    number = root / _DIRECTORY / 'sriov_numvfs'
    number.unlink()
    os.mkfifo(number)
    with pytest.raises(OSError, match='No such device'):
        _write_number(root)


def test_write_missing_file_is_not_created(root: Path) -> None:
    number = root / _DIRECTORY / 'sriov_numvfs'
    number.unlink()
    with pytest.raises(FileNotFoundError):
        _write_number(root)
    assert not number.exists()


def _swap_file(root: Path) -> None:
    number = root / _DIRECTORY / 'sriov_numvfs'
    number.unlink()
    number.symlink_to(root / 'etc/shadow')


def _swap_directory(root: Path) -> None:
    directory = root / _DIRECTORY
    directory.rename(directory.with_name('card'))
    (root / 'etc/sriov_numvfs').hardlink_to(root / 'etc/shadow')
    directory.symlink_to(root / 'etc')


@pytest.mark.parametrize('swap', [_swap_file, _swap_directory])
def test_write_path_swapped_after_check_raises(
    swap: Callable[[Path], None], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exchange the file between the check of its path and the open call."""
    (root / 'etc/shadow').write_text('0')
    load = privileges.load

    def load_and_swap(directory: str) -> privileges.Privileges:
        swap(root)
        return load(directory)

    monkeypatch.setattr(privileges, 'load', load_and_swap)
    with pytest.raises(OSError, match=r'symbolic links|Not a directory'):
        _write_number(root)
    assert (root / 'etc/shadow').read_text() == '0'


def test_write_directory_moved_while_open_raises(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / 'moved').mkdir()
    open_file = privileged._open_without_links

    def open_and_move(location: str) -> int:
        file = open_file(location)
        (root / _DIRECTORY).rename(root / 'moved/card')
        return file

    monkeypatch.setattr(privileged, '_open_without_links', open_and_move)
    with pytest.raises(PermissionError, match='exchanged'):
        _write_number(root)
    assert (root / 'moved/card/sriov_numvfs').read_text() == '0'


def test_write_file_outside_sysfs_raises(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privileged, '_list_devices', frozenset)
    with pytest.raises(PermissionError, match='not a file of sysfs'):
        _write_number(root)
    assert _read_number(root) == '0'


def test_list_devices_contains_sys_only() -> None:
    privileged.set_root('/')
    assert Path('/sys').stat().st_dev in privileged._list_devices()
    assert Path('/').stat().st_dev not in privileged._list_devices()


def test_refused_write_names_missing_line(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    line = r'write <function>/remove 1'
    with pytest.raises(PermissionError, match=f'missing: {line}') as caught:
        privileged.write(f'{root}/{_LINK}/remove', '1')
    # EPERM would be reported as a device in use.
    assert caught.value.errno == errno.EACCES
    assert line in caplog.text
    _write_lines(root, line)
    privileged.write(f'{root}/{_LINK}/remove', '1')
    assert (root / _DIRECTORY / 'remove').read_text() == '1'


def test_refused_command_names_missing_line(root: Path) -> None:
    with pytest.raises(PermissionError, match='missing: run') as caught:
        privileged.run([f'{root}/usr/bin/tool', '-x', _ADDRESS], 30)
    line = caught.value.args[1].partition('missing: ')[2]
    assert line == 'run /usr/bin/tool -x <address>'
    _write_lines(root, line)
    assert privileged.run([f'{root}/usr/bin/tool', '-x', _ADDRESS], 30)[0] == 3


def test_run_allowed_command_returns_output(root: Path) -> None:
    command = [f'{root}/usr/bin/tool', '-e', _ADDRESS]
    assert privileged.run(command, 30) == (3, f'-e {_ADDRESS}\n')
    assert privileged.run(['tool', '-d', _ADDRESS], 30) == (3, f'-d {_ADDRESS}\n')


@pytest.mark.parametrize(
    'arguments',
    [
        ['-x', _ADDRESS],
        [f'-e {_ADDRESS}'],
        ['-e', _ADDRESS, ''],
        ['-e', f'{_ADDRESS};reboot'],
        ['-e', f'{_ADDRESS}\n'],
        ['-e', _ADDRESS, '-e', _ADDRESS],
        ['-e', '0' * 100_000],
        ['-e'] * 100_000,
        [],
    ],
)
def test_run_other_arguments_raises(arguments: list[str], root: Path) -> None:
    with pytest.raises(PermissionError):
        privileged.run([f'{root}/usr/bin/tool', *arguments], 30)


def test_run_argument_with_parent_directory_raises(root: Path) -> None:
    _write_lines(root, r'run /usr/bin/tool /images/[\w./-]+')
    tool = f'{root}/usr/bin/tool'
    assert privileged.run([tool, '/images/a'], 30)[0] == 3
    with pytest.raises(PermissionError):
        privileged.run([tool, '/images/../etc/shadow'], 30)


@pytest.mark.parametrize(
    'tool',
    [
        '{root}/tmp/tool',
        './tool',
        'usr/bin/tool',
        '{root}/usr/bin/../bin/tool',
        '/usr/bin/tool',
        '{root}/usr/bin/tool/',
        'sh',
        'tool\0',
        'x' * 100_000,
        '',
    ],
)
def test_run_other_tool_raises(
    tool: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_tool(root / 'tmp/tool', 'exit 0')
    monkeypatch.chdir(root / 'tmp')
    monkeypatch.setenv('PATH', str(root / 'tmp'))
    with pytest.raises(PermissionError):
        privileged.run([tool.format(root=root), '-e', _ADDRESS], 30)


def test_run_missing_tool_raises(root: Path) -> None:
    (root / 'usr/bin/tool').unlink()
    for tool in ('tool', f'{root}/usr/bin/tool'):
        with pytest.raises(FileNotFoundError):
            privileged.run([tool, '-e', _ADDRESS], 30)


def test_run_name_uses_installed_tool(root: Path) -> None:
    _write_lines(root, f'run /opt/bin/tool -e <address>{_LINES}')
    assert privileged.run(['tool', '-e', _ADDRESS], 30)[0] == 3


@pytest.mark.parametrize('part', ['usr/bin/tool', 'usr/bin', 'usr'])
def test_run_writable_tool_raises(part: str, root: Path) -> None:
    (root / part).chmod(0o777)
    with pytest.raises(PermissionError, match='can write'):
        privileged.run(['tool', '-e', _ADDRESS], 30)


def test_run_link_to_writable_directory_raises(root: Path) -> None:
    real = _write_tool(root / 'open/real', 'exit 0')
    real.parent.chmod(0o777)
    (root / 'usr/bin/tool').unlink()
    (root / 'usr/bin/tool').symlink_to(real)
    with pytest.raises(PermissionError, match='can write'):
        privileged.run(['tool', '-e', _ADDRESS], 30)


def test_run_has_fixed_environment(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ('LD_PRELOAD', 'BASH_ENV', 'PYTHONPATH', 'OS_PASSWORD'):
        monkeypatch.setenv(name, '/nonexistent')
    monkeypatch.setenv('PATH', str(root))
    _write_tool(root / 'usr/bin/tool', 'env; pwd; umask')
    _, output = privileged.run(['tool', '-e', _ADDRESS], 30)
    assert 'nonexistent' not in output
    assert str(root) not in output
    assert output.split()[-2:] == ['/', '0022']


@pytest.mark.parametrize('seconds', [1e9, float('inf'), float('nan'), -1.0])
def test_run_time_limit_has_maximum(
    root: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    limits: list[float] = []
    monkeypatch.setattr(
        privileged, 'execute', lambda command, seconds: limits.append(seconds)
    )
    privileged.run(['tool', '-e', _ADDRESS], seconds)
    assert limits == [86_400]


@pytest.mark.parametrize(
    ('ids', 'is_allowed'),
    [
        ({'vendor': '0x10de', 'class': '0x030200'}, True),
        ({'vendor': '0x15b3', 'class': '0x020000'}, True),
        ({'vendor': '0x144d', 'class': '0x010802'}, False),
        ({'vendor': '0x10de', 'class': '0x040300'}, False),
        ({'vendor': '0x15b3', 'class': '0x030200'}, False),
        ({'vendor': '0x10de'}, False),
        ({}, False),
    ],
)
def test_change_of_other_card_raises(
    ids: dict[str, str], is_allowed: bool, root: Path
) -> None:
    """The class of the bridge above and the word of the agent do not count."""
    _write_lines(root, f'cards 10de 0300 0302\ncards 15b3 02\n{_LINES}')
    for name, text in ids.items():
        (root / _DIRECTORY / name).write_text(f'{text}\n')
    changes: list[Callable[[], object]] = [
        lambda: _write_number(root),
        lambda: privileged.run(['tool', '-e', _ADDRESS], 30),
    ]
    for change in changes:
        if is_allowed:
            change()
        else:
            with pytest.raises(PermissionError):
                change()


@pytest.mark.parametrize('files', [['/proc/kcore'], ['dev/null'], ['/dev/x'] * 5000])
def test_holders_other_files_raises(files: list[str], root: Path) -> None:
    with pytest.raises(PermissionError):
        privileged.holders(files)


@pytest.mark.parametrize('part', ['driver.conf', '.', '..'])
def test_privileges_writable_by_others_are_ignored(
    part: str, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = root / privileges.DIRECTORY / part
    path.chmod(path.stat().st_mode | 0o002)
    with pytest.raises(PermissionError):
        _write_number(root)
    assert 'can write' in caplog.text


@pytest.mark.parametrize(
    'text',
    [
        'write <function>/x',
        'write <function>/x [',
        'write <function>/x 1 2',
        'write sys/x 1',
        'read /x y',
        'run tool x',
        'run',
        'run /usr/../tool x',
        'run /usr/bin/tool (',
        'delete /sys/x 1',
        'cards 10de',
        'cards 10DE 03',
        '\udcff',
    ],
)
def test_privileges_invalid_file_is_ignored(
    text: str, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = root / privileges.DIRECTORY / 'broken.conf'
    file.write_bytes(f'{_LINES}{text}\n'.encode(errors='surrogateescape'))
    _write_number(root)  # by the line of the other file
    assert 'broken.conf is ignored' in caplog.text


@pytest.mark.parametrize('kind', ['fifo', 'directory', 'huge', 'dangling', 'loop'])
def test_privileges_special_file_is_ignored(kind: str, root: Path) -> None:
    path = root / privileges.DIRECTORY / 'special.conf'
    if kind == 'fifo':
        os.mkfifo(path)
    elif kind == 'directory':
        path.mkdir()
    elif kind == 'huge':
        path.write_text(_LINES * 10_000)
    else:
        path.symlink_to('nothing' if kind == 'dangling' else path.name)
    _write_number(root)
    assert _read_number(root) == '4'


def test_privileges_missing_directory_allows_nothing(root: Path) -> None:
    (root / privileges.DIRECTORY / 'driver.conf').unlink()
    (root / privileges.DIRECTORY).rmdir()
    with pytest.raises(PermissionError, match='missing: write'):
        _write_number(root)


def _create_as_nobody(directory: Path) -> bool:
    """Create a privileges file as another user; return True on success."""
    line = 'write <function>/remove 1'
    command = ['sh', '-c', f'echo "{line}" > attack.conf']
    # The directory is entered as root: those above it are closed to other users.
    child = subprocess.run(
        command,
        cwd=directory,
        stderr=subprocess.DEVNULL,
        check=False,
        user=_NOBODY,
        group=_NOBODY,
        extra_groups=[],
    )
    return child.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root')
def test_privileges_of_second_user_are_ignored(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Let another user create a file while the directory is open, then close it."""
    directory = root / privileges.DIRECTORY
    assert not _create_as_nobody(directory)
    directory.chmod(0o777)
    assert _create_as_nobody(directory)
    directory.chmod(0o755)
    with pytest.raises(PermissionError):
        privileged.write(f'{root}/{_LINK}/remove', '1')
    assert f'belongs to user {_NOBODY}' in caplog.text
    _write_number(root)


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root')
def test_tool_of_second_user_raises(root: Path) -> None:
    os.chown(root / 'usr/bin/tool', _NOBODY, _NOBODY)
    with pytest.raises(PermissionError, match='belongs to user'):
        privileged.run(['tool', '-e', _ADDRESS], 30)


def test_kernel_of_other_root_is_refused(root: Path) -> None:
    """An agent of a fabricated host must not change the real host."""
    number = f'{_LINK}/sriov_numvfs'
    PrivilegedKernel().write(root, number, '4')
    assert _read_number(root) == '4'
    with pytest.raises(FileNotFoundError):
        PrivilegedKernel().write(Path('/nonexistent'), number, '5')
    with pytest.raises(PermissionError):
        PrivilegedKernel().run(Path('/nonexistent'), 'usr/bin/tool', ['-e', _ADDRESS])


def test_entry_points_take_no_root() -> None:
    for name in ('write', 'run', 'holders'):
        function = getattr(privileged, name)
        assert 'root' not in function.func.__code__.co_varnames
    assert not privileged.CONTEXT.is_entrypoint(privileged.set_root)


def test_find_processes_returns_holders_of_file(tmp_path: Path) -> None:
    kernel = FakeKernel('l40s-vendor-vfio', tmp_path, most_virtual=1)
    kernel.open('/dev/vfio/400', process=7)
    kernel.open('/dev/vfio/40', process=8)
    (tmp_path / 'proc/9').mkdir()
    assert privileged.find_processes(str(tmp_path), ['/dev/vfio/400']) == [7]
    assert privileged.find_processes(str(tmp_path), []) == []
    (tmp_path / 'proc/10/fd').parent.mkdir()
    (tmp_path / 'proc/10/fd').write_text('')
    for root in (tmp_path, tmp_path / 'nowhere'):
        with pytest.raises(OSError, match='directory'):
            privileged.find_processes(str(root), ['/dev/vfio/400'])


def test_holders_in_other_process_namespace_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container without the processes of the host sees no guest."""
    privileged.set_root('/')
    namespace = tmp_path / 'pid'
    namespace.symlink_to('pid:[4026532001]')
    monkeypatch.setattr(privileged, '_PID_NAMESPACE', str(namespace))
    with pytest.raises(PermissionError, match='process namespace of the host'):
        privileged.holders(['/dev/vfio/1'])
