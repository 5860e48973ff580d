# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage recover``; the drill is in the functional tests."""

import json
from collections.abc import Callable
from uuid import uuid4

import pytest

from cyborg_lite.cmd.manage import main
from cyborg_lite.db.core import incarnations
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Service
from cyborg_lite.model.hosts.incarnations import NO_MARK
from cyborg_lite.model.hosts.services import AGENT
from tests.builders.reports import HOST
from tests.doubles.placement import FakePlacement


def test_accepted_host_ends_quarantine(
    database: Database,
    placement: FakePlacement,
    write_config: Callable[..., list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    agent = {'uuid': str(uuid4()), 'binary': AGENT, 'host': HOST, 'version': '1'}
    database.write(lambda session: session.add(Service(**agent)))
    database.write(incarnations.begin_quarantine, NO_MARK, 'the reason')
    lines = '[DEFAULT]\ntransport_url = local://\n'
    command = [*write_config(lines), 'recover']

    assert main.main([*command, '--json']) == 1
    output = capsys.readouterr()
    (row,) = json.loads(output.out)
    assert (row['host'], row['action'], row['outcome']) == (HOST, 'none', 'unexplained')
    assert 'the reason' in output.err
    for arguments in (['--apply'], ['--accept', HOST], ['--apply', '--accept', 'x']):
        assert main.main([*command, *arguments]) == 1
        assert database.read(incarnations.find_quarantine) is not None
    main.main([*command, '--apply', '--accept', HOST])
    assert database.read(incarnations.find_quarantine) is None
    assert 'incarnation 1 begins' in capsys.readouterr().err
