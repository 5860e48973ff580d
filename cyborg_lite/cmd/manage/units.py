# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage install-units``: files of systemd and sudo for this host.

The package has them with the paths of a distribution. The installed files name the
programs beside this one, for instance those of a virtual environment.
"""

import os
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from oslo_config import cfg

from cyborg_lite.cmd.support.parsers import Parsers, add_command

_DAEMONS: Final = ('agent', 'api', 'conductor', 'controller')
_PACKAGED_PROGRAMS: Final = '/usr/bin/'


def add_parsers(parsers: Parsers) -> None:
    parser = add_command(
        parsers,
        'install-units',
        'install the systemd units of daemons, the files from which systemd creates '
        'the user and the directories, and for the agent the rule of sudo',
        _run,
    )
    parser.add_argument('daemons', nargs='+', choices=_DAEMONS, metavar='DAEMON')
    parser.add_argument(
        '--root', default='/', help='directory with the files of the host; default: /'
    )


def _run(conf: cfg.ConfigOpts) -> int:
    """Install the files; print those that have changed."""
    source = Path(sysconfig.get_path('data'), 'share/cyborg-lite')
    if not source.exists():
        source = Path(__file__).parents[3] / 'etc'  # of a checkout
    programs = sysconfig.get_path('scripts')
    for name, target, mode in _list_files(conf.command.daemons):
        text = (source / name).read_text(encoding='utf-8')
        for prefix in '= ':
            text = text.replace(f'{prefix}{_PACKAGED_PROGRAMS}', f'{prefix}{programs}/')
        path = Path(conf.command.root, 'etc', target)
        if not path.exists() or path.read_text(encoding='utf-8') != text:
            _replace(path, text, mode)
            print(f'Wrote {path}')
    return 0


def _list_files(daemons: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Yield file of the package, file below /etc and mode of each file."""
    for directory in ('sysusers.d', 'tmpfiles.d'):
        yield f'{directory}/cyborg-lite.conf', f'{directory}/cyborg-lite.conf', 0o644
    for daemon in daemons:
        unit = f'cyborg-lite-{daemon}.service'
        yield f'systemd/{unit}', f'systemd/system/{unit}', 0o644
    if 'agent' in daemons:
        yield 'sudoers.d/cyborg-lite', 'sudoers.d/cyborg-lite', 0o440


def _replace(path: Path, text: str, mode: int) -> None:
    """Replace a file. The new one is never incomplete: sudo refuses all commands then.

    Sudo and systemd ignore the temporary name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f'{path.name}.part')
    part.write_text(text, encoding='utf-8')
    part.chmod(mode)
    os.replace(part, path)
