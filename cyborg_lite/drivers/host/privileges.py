# SPDX-License-Identifier: Apache-2.0
"""The list of the operator: which files and tools the privileged process may use.

Each file below ``/etc/cyborg-lite/privileges.d`` contains the lines of one driver::

    write <function>/sriov_numvfs [0-9]{1,4}
    run /usr/lib/nvidia/sriov-manage -[ed] <address>

``write`` takes a regular expression for the real path of a file, without links, and one
for the value. ``run`` takes the absolute path of a tool and a regular expression for
its arguments, separated by single spaces. ``<address>`` stands for a PCI address,
``<function>`` for the sysfs directory of a PCI function, and ``<uuid>`` for a uuid.

The lines of a file with ``cards`` lines concern only PCI functions with one of their
vendors and classes, as sysfs shows them::

    cards 10de 0300 0302
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from oslo_log import log

LOG = log.getLogger(__name__)

DIRECTORY: Final = 'etc/cyborg-lite/privileges.d'  # below the root of the host
_SUFFIX: Final = '.conf'
_MAX_FILE_SIZE: Final = 1 << 16  # bytes
_ADDRESS: Final = r'[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]'
_CARDS: Final = re.compile('[0-9a-f]{4}( [0-9a-f]{2,6})+')
_UUID: Final = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
_PLACEHOLDERS: Final = {
    '<address>': _ADDRESS,
    '<function>': rf'/sys/devices/[\w.:/-]+/{_ADDRESS}',
    '<uuid>': _UUID,
}
_SPECIAL: Final = re.compile(r'([][\\.^$*+?{}()|])')


Cards = tuple[tuple[str, tuple[str, ...]], ...]
"""Vendor ids with prefixes of class codes; empty: functions of any vendor."""


class InvalidLine(ValueError):
    """A line of a privileges file has another format."""


@dataclass(frozen=True, slots=True)
class FilePrivilege:
    """The permission to write certain values to certain files."""

    path: re.Pattern[str]
    value: re.Pattern[str]
    cards: Cards = ()


@dataclass(frozen=True, slots=True)
class ToolPrivilege:
    """The permission to run a tool with certain arguments."""

    tool: str
    arguments: re.Pattern[str]
    cards: Cards = ()


@dataclass(frozen=True, slots=True)
class Privileges:
    """The permissions of a host."""

    files: tuple[FilePrivilege, ...] = ()
    tools: tuple[ToolPrivilege, ...] = ()
    root: str = field(default='/', compare=False)  # contains the files of the host

    def allows_write(self, path: str, value: str) -> bool:
        """Return True if a value may be written to a file.

        :param path: real path below the root of the host
        """
        # The directories above are those of bridges. A function that leaves its driver
        # is the value.
        addresses = re.findall(_ADDRESS, path)[-1:] + re.findall(_ADDRESS, value)
        return any(
            item.path.fullmatch(path)
            and item.value.fullmatch(value)
            and self._contain(item.cards, addresses)
            for item in self.files
        )

    def allows_run(self, tool: str, arguments: Iterable[str]) -> bool:
        """Return True if a tool may run with these arguments."""
        line = ' '.join(arguments)
        addresses = re.findall(_ADDRESS, line)
        return any(
            item.tool == tool
            and item.arguments.fullmatch(line)
            and self._contain(item.cards, addresses)
            for item in self.tools
        )

    def _contain(self, cards: Cards, addresses: Iterable[str]) -> bool:
        """Return True if all functions have one of the vendors and classes.

        The kernel states them; the agent cannot change these files.
        """
        if not cards:
            return True
        for address in addresses:
            directory = Path(self.root, 'sys/bus/pci/devices', address)
            vendor, pci_class = (
                _read_id(directory / 'vendor'),
                _read_id(directory / 'class'),
            )
            if not any(
                vendor == own and pci_class.startswith(classes)
                for own, classes in cards
            ):
                return False
        return True

    def contain_card(self, address: str) -> bool:
        """Return True if a line concerns a PCI function."""
        items: tuple[FilePrivilege | ToolPrivilege, ...] = *self.files, *self.tools
        return any(self._contain(item.cards, (address,)) for item in items)

    def list_tools(self, name: str) -> Iterator[str]:
        """Yield the paths of the tools with a base name, in order of the lines."""
        paths = (item.tool for item in self.tools)
        yield from dict.fromkeys(p for p in paths if os.path.basename(p) == name)


def parse(text: str) -> Privileges:
    """Return the permissions in the text of a privileges file.

    :raises InvalidLine: a line cannot be understood
    """
    files, tools = [], []
    cards = _parse_cards(text)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith('#'):
            continue
        keyword, _, value = line.strip().partition(' ')
        if keyword == 'cards':
            continue
        # Only the arguments of a tool may contain spaces.
        subject, _, pattern = value.strip().partition(' ')
        pattern = pattern.strip()
        if not subject.startswith(('/', '<function>')) or not pattern:
            raise InvalidLine(f'line {number} has no path and pattern')
        if keyword == 'write' and ' ' not in pattern:
            files.append(FilePrivilege(_compile(subject), _compile(pattern), cards))
        elif keyword == 'run' and os.path.normpath(subject) == subject:
            tools.append(ToolPrivilege(subject, _compile(pattern), cards))
        else:
            raise InvalidLine(f'line {number} is neither a "write" nor a "run" line')
    return Privileges(tuple(files), tuple(tools))


def _parse_cards(text: str) -> Cards:
    """Return the vendors and classes that a file names.

    :raises InvalidLine: a line has another format
    """
    cards = []
    for line in text.splitlines():
        keyword, *ids = line.split() or ['']
        if keyword != 'cards':
            continue
        match = _CARDS.fullmatch(' '.join(ids))
        if match is None:
            raise InvalidLine(f'{line.strip()[:80]!r} is no vendor with classes')
        cards.append((ids[0], tuple(ids[1:])))
    return tuple(cards)


def _read_id(path: Path) -> str:
    """Return a number in a file of sysfs without 0x; empty if it cannot be read."""
    try:
        return path.read_text().strip().removeprefix('0x').lower()
    except (OSError, UnicodeDecodeError):
        return ''


def load(root: str) -> Privileges:
    """Read the privileges files of a host. An unsafe or invalid file is ignored.

    :param root: directory that contains the files of the host
    """
    directory = os.path.join(root, DIRECTORY)
    files: tuple[FilePrivilege, ...] = ()
    tools: tuple[ToolPrivilege, ...] = ()
    for path in _list_files(directory):
        try:
            check_owner(path, root)
            privileges = parse(_read(path))
        except (OSError, ValueError) as error:
            LOG.error('The privileges file %s is ignored: %s', path, error)
            continue
        files += privileges.files
        tools += privileges.tools
    return Privileges(files, tools, root)


def check_owner(path: str, root: str) -> None:
    """Check that only root can change a file, its directories and links to it.

    :param root: directory above which nothing is checked
    :raises PermissionError: another user can change it
    :raises OSError: it cannot be read
    """
    trusted = {0, os.geteuid()}
    real_root = os.path.realpath(root)
    real_path = os.path.realpath(path)
    if not is_below(real_path, real_root):
        raise PermissionError(f'{path} leads out of {root}')
    parents = {os.path.dirname(path), os.path.dirname(real_path)}
    for item in (real_path, *sorted(parents)):
        for entry in (Path(item), *Path(item).parents):
            if not is_below(str(entry), real_root):
                break
            status = os.stat(entry)
            if status.st_uid not in trusted:
                raise PermissionError(f'{entry} belongs to user {status.st_uid}')
            if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise PermissionError(f'users other than root can write to {entry}')


def is_below(path: str, directory: str) -> bool:
    """Return True if a normalized path is a directory or lies below it."""
    return os.path.commonpath((path, directory)) == directory


def suggest_write(path: str, value: str) -> str:
    """Return the line that would allow a write."""
    address = re.match(f'(/sys/devices/.*/{_ADDRESS})(/.*)', path)
    subject = f'<function>{_escape(address[2])}' if address else _escape(path)
    return f'write {subject} {_escape(value)}'


def suggest_run(tool: str, arguments: Iterable[str]) -> str:
    """Return the line that would allow a tool to run."""
    return f'run {tool} {_escape(" ".join(arguments))}'


def _compile(pattern: str) -> re.Pattern[str]:
    for name, expression in _PLACEHOLDERS.items():
        pattern = pattern.replace(name, expression)
    try:
        return re.compile(pattern, re.ASCII)
    except re.error as error:
        raise InvalidLine(f'{pattern} is no regular expression: {error}') from None


def _escape(text: str) -> str:
    """Return a pattern for a text, whatever the address or uuid in it."""
    for name, expression in (('<address>', _ADDRESS), ('<uuid>', _UUID)):
        text = re.sub(expression, name, text)
    return _SPECIAL.sub(r'\\\1', text)


def _list_files(directory: str) -> list[str]:
    try:
        names = sorted(os.listdir(directory))
    except OSError as error:
        LOG.error('No privileges: %s cannot be read: %s', directory, error)
        return []
    return [os.path.join(directory, name) for name in names if name.endswith(_SUFFIX)]


def _read(path: str) -> str:
    """Return the text of a regular file. Another kind of file does not block."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_SIZE:
            raise InvalidLine('it is not a regular file of at most 64 KiB')
        return os.read(file, _MAX_FILE_SIZE).decode()
    finally:
        os.close(file)
