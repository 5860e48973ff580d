# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a cloud for a module, and in it a host of each generation for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.kit import HurtCloud
from tests.fakes import rabbitmq
from tests.fakes.vgpu_machine import GENERATIONS, VgpuHost, running


@pytest.fixture(scope='module')
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HurtCloud]:
    with (
        rabbitmq.virtual_host() as url,
        running(tmp_path_factory.mktemp('cloud'), url) as made,
    ):
        yield made


@pytest.fixture(params=GENERATIONS)
def host(
    cloud: HurtCloud, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[VgpuHost]:
    """Its agent is the test's."""
    with VgpuHost(cloud, tmp_path, GENERATIONS[request.param]) as made:
        yield made
