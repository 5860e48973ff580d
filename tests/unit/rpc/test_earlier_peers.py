# SPDX-License-Identifier: Apache-2.0
"""Tests of errors that a daemon of an earlier release causes."""

import oslo_messaging
import pytest

from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.rpc.earlier_peers import is_unsupported


def build_error(cause: Exception | None) -> ServiceUnavailable:
    error = ServiceUnavailable(what='cyborg-lite-agent')
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    'cause',
    [
        oslo_messaging.UnsupportedVersion('1.9', 'list_jobs'),
        oslo_messaging.RemoteError('UnsupportedVersion', 'text'),
        oslo_messaging.RemoteError('NoSuchMethod', 'text'),
    ],
)
def test_call_that_server_does_not_know_is_unsupported(cause: Exception) -> None:
    assert is_unsupported(build_error(cause))


@pytest.mark.parametrize(
    'cause', [None, oslo_messaging.MessagingTimeout(), OSError('refused')]
)
def test_unreachable_server_is_not_unsupported(cause: Exception | None) -> None:
    assert not is_unsupported(build_error(cause))
