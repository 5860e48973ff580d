# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage install-units``."""

import sysconfig
from pathlib import Path

import pytest

from cyborg_lite.cmd.manage import main

Out = pytest.CaptureFixture[str]
_DAEMONS = ('agent', 'api', 'conductor', 'controller')


def install(root: Path, *daemons: str) -> set[str]:
    """Run the command; return the files below the root."""
    assert main.main(['install-units', *daemons, '--root', str(root)]) == 0
    files = (path for path in root.rglob('*') if path.is_file())
    return {str(path.relative_to(root)) for path in files}


def test_install_units_writes_files_of_daemons(tmp_path: Path) -> None:
    common = {'etc/sysusers.d/cyborg-lite.conf', 'etc/tmpfiles.d/cyborg-lite.conf'}
    api = 'etc/systemd/system/cyborg-lite-api.service'
    assert install(tmp_path / 'api', 'api') == {*common, api}
    files = install(tmp_path / 'all', *_DAEMONS)
    rule = 'etc/sudoers.d/cyborg-lite'
    units = {api.replace('api', daemon) for daemon in _DAEMONS}
    assert files == {*common, *units, rule}
    assert (tmp_path / 'all' / rule).stat().st_mode & 0o777 == 0o440


def test_installed_files_name_programs_of_environment(tmp_path: Path) -> None:
    programs = sysconfig.get_path('scripts')
    install(tmp_path, *_DAEMONS)
    for daemon in _DAEMONS:
        unit = tmp_path / f'etc/systemd/system/cyborg-lite-{daemon}.service'
        assert f'\nExecStart={programs}/cyborg-lite-{daemon}\n' in unit.read_text()
    rule = (tmp_path / 'etc/sudoers.d/cyborg-lite').read_text()
    assert f'NOPASSWD: {programs}/privsep-helper ' in rule


def test_second_install_prints_only_changed_files(tmp_path: Path, capsys: Out) -> None:
    install(tmp_path, 'api')
    assert capsys.readouterr().out.count('Wrote ') == 3
    unit = tmp_path / 'etc/systemd/system/cyborg-lite-api.service'
    unit.write_text('[Service]\n')
    install(tmp_path, 'api')
    assert capsys.readouterr().out == f'Wrote {unit}\n'
