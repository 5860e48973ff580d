# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a cloud per module, and a host of each vGPU generation per test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.faulty_cloud import FaultyCloud
from tests.servers import rabbitmq
from tests.servers.vgpu_machine import GENERATIONS, VgpuHost, run_cloud


@pytest.fixture(scope='module')
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyCloud]:
    with (
        rabbitmq.virtual_host() as url,
        run_cloud(tmp_path_factory.mktemp('cloud'), url) as cloud_or_host,
    ):
        yield cloud_or_host


@pytest.fixture(params=GENERATIONS)
def host(
    cloud: FaultyCloud, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[VgpuHost]:
    """Yield a host whose agent the test controls."""
    with VgpuHost(cloud, tmp_path, GENERATIONS[request.param]) as cloud_or_host:
        yield cloud_or_host
