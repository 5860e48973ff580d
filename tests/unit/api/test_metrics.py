# SPDX-License-Identifier: Apache-2.0
"""Tests of the metrics of the API."""

import pytest
from prometheus_client import generate_latest

from cyborg_lite.api.app import assemble
from cyborg_lite.api.metrics import ApiMetrics
from tests.builders.device_rows import add_device
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import ADMIN, Client, build_configuration


def read_text(metrics: ApiMetrics) -> str:
    return generate_latest(metrics.registry).decode()


@pytest.fixture
def metrics() -> ApiMetrics:
    return ApiMetrics()


@pytest.fixture
def client(metrics: ApiMetrics) -> Client:
    conductor = LocalConductor()
    application = assemble(build_configuration(), conductor.client, metrics.observe)
    return Client(conductor, application, dict(ADMIN))


def test_metrics_count_requests_by_path_template(
    client: Client, metrics: ApiMetrics
) -> None:
    device = add_device(client.conductor.database)
    for _ in range(2):
        client.get(f'/devices/{device.uuid}')
    client.get('/devices?marker=x')
    text = read_text(metrics)
    path = 'method="GET",path="/v2/devices/{uuid}"'
    assert f'cyborg_lite_api_requests_total{{{path},status="200"}} 2.0' in text
    assert f'cyborg_lite_api_request_seconds_count{{{path}}} 2.0' in text
    assert 'path="/v2/devices",status="400"} 1.0' in text
    assert device.uuid not in text


def test_metrics_unknown_values_share_label(
    client: Client, metrics: ApiMetrics
) -> None:
    for number in range(3):
        client.send(f'BREW{number}', f'/pots/{number}')
    text = read_text(metrics)
    labels = 'method="other",path="other",status="404"'
    assert f'cyborg_lite_api_requests_total{{{labels}}} 3.0' in text


def test_metrics_of_two_processes_are_separate() -> None:
    metrics = ApiMetrics()
    metrics.observe('GET', '/v2/devices', 200, 0.01)
    assert 'status="200"' not in read_text(ApiMetrics())
