# SPDX-License-Identifier: Apache-2.0
"""Warnings about names in configuration files that nothing reads."""

from pathlib import Path

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.runner.unknown_options import warn_of_unknown_options


def list_warnings(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> list[str]:
    path = tmp_path / 'cyborg-lite.conf'
    path.write_text(text)
    warn_of_unknown_options(configuration.parse([], 'prog', [str(path)]))
    return [record.getMessage().removeprefix(f'{path}: ') for record in caplog.records]


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('[DEFAULT]\nhots = x\n', ['[DEFAULT] hots', 'host?']),
        ('[placment]\nauth_type = password\n', ['[placment]', '[placement]?']),
        ('[agent]\nenabled_driver = x\n', ['[agent]', 'enabled_drivers?']),
        (
            '[oslo_messaging_rabbit]\nrabbit_quorum_queu = true\n',
            ['rabbit_quorum_queue?'],
        ),
        (
            '[nova]\nauth_type = password\npasword = x\n',
            ['[nova] pasword', 'password?'],
        ),
        (
            '[api]\ncertificate_file = /x.pem\n',
            ['[api] certificate_file', 'no effect', 'HAProxy or nginx'],
        ),
    ],
)
def test_mistyped_name_is_reported_with_nearest(
    text: str, words: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (warning,) = list_warnings(text, tmp_path, caplog)
    for word in words:
        assert word in warning


def test_valid_file_causes_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Names of drivers, libraries, plugins and of a shared credential section."""
    text = """
[DEFAULT]
transport_url = rabbit://
debug = false
log-dir = /tmp
rpc_response_timeout = 60
graceful_shutdown_timeout = 3
[placement]
auth_section = credentials
[credentials]
auth_type = v3applicationcredential
application_credential_id = x
[keystone_authtoken]
auth_type = password
username = x
service_token_roles_required = true
[nvidia_gpu_driver]
[oslo_policy]
policy_file = x
[cors]
allowed_origin = x
"""
    assert not list_warnings(text, tmp_path, caplog)
