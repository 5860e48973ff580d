# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage convert-config``."""

from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.manage import main

Out = pytest.CaptureFixture[str]

_CYBORG = """
[DEFAULT]
transport_url = rabbit://cyborg:secret@controller/
debug = true
periodic_interval = 30
[api]
host_ip = 192.0.2.7
api_workers = 2
[agent]
enabled_drivers = nvidia_gpu_driver, intel_nic_driver
[database]
connection = mysql+pymysql://cyborg:secret@controller/cyborg
[placement]
auth_type = password
auth_url = http://controller/identity
username = placement
password = secret
[gpu_devices]
enabled_vgpu_types = nvidia-223
[vgpu_nvidia-223]
device_addresses = 0000:3b:00.0
[api_legacy]
something = 1
"""


def convert(text: str, tmp_path: Path) -> tuple[int, Path]:
    """Run the command; return its exit status and the new file."""
    source, target = tmp_path / 'cyborg.conf', tmp_path / 'cyborg-lite.conf'
    source.write_text(text)
    empty = tmp_path / 'empty.conf'
    empty.touch()
    status = main.main(
        [
            *('--config-file', str(empty), 'convert-config', str(source)),
            *('--output', str(target)),
        ]
    )
    return status, target


def test_convert_renames_and_reports(tmp_path: Path, capsys: Out) -> None:
    status, target = convert(_CYBORG, tmp_path)
    assert status == 1
    conf = configuration.parse([], 'prog', [str(target)])
    assert (conf.api.host, conf.api.workers) == ('192.0.2.7', 2)
    assert conf.agent.discovery_interval == 30
    assert conf.agent.enabled_drivers == ['nvidia_gpu_driver', 'sriov_nic_driver']
    text = target.read_text()
    assert '[vgpu_nvidia-223]\ndevice_addresses = 0000:3b:00.0' in text
    assert 'password = secret' in text
    assert 'controller/cyborg\n' not in text
    assert target.stat().st_mode & 0o777 == 0o600
    output = capsys.readouterr().out
    assert 'import --from' in output
    assert '[api_legacy] something' in output
    assert 'secret' not in output


def test_convert_without_differences_succeeds(tmp_path: Path, capsys: Out) -> None:
    status, _target = convert('[DEFAULT]\ndebug = true\n', tmp_path)
    assert status == 0
    assert 'same names' in capsys.readouterr().out


def test_convert_never_overwrites_file(tmp_path: Path, capsys: Out) -> None:
    (tmp_path / 'cyborg-lite.conf').write_text('precious')
    status, target = convert('[DEFAULT]\n', tmp_path)
    assert (status, target.read_text()) == (2, 'precious')
    assert 'File exists' in capsys.readouterr().err


@pytest.mark.parametrize('text', ['no section', '[broken\n'])
def test_convert_invalid_file_prints_error(
    text: str, tmp_path: Path, capsys: Out
) -> None:
    status, target = convert(text, tmp_path)
    assert status == 2
    assert not target.exists()
    assert capsys.readouterr().err.startswith('cyborg-lite-manage:')


def test_convert_keeps_values(tmp_path: Path, capsys: Out) -> None:
    """Values of several lines, and with quotes or spaces at their ends."""
    text = """
[DEFAULT]
default_log_levels = amqp=WARN,
  boto = WARN,
  debug = INFO
[placement]
auth_type = password
username = "'placement'"
password = " secret "
"""
    _, target = convert(text, tmp_path)
    before, after = ({}, {})  # type: ignore[var-annotated]  # filled by the parser
    cfg.ConfigParser(str(tmp_path / 'cyborg.conf'), before).parse()
    cfg.ConfigParser(str(target), after).parse()
    assert after == before
