# SPDX-License-Identifier: Apache-2.0
"""Tests of the errors of the API in Horizon."""

import types
from typing import Any

import pytest
import requests
from keystoneauth1.exceptions import ConnectFailure

from cyborg_lite.api_client import ApiError
from cyborg_lite_dashboard import api
from cyborg_lite_dashboard.exceptions import ObjectNotFound, TokenRejected


class Proxy:
    """Answers with a status or raises an error."""

    def __init__(self, result: int | Exception) -> None:
        self._result = result

    def request(self, url: str, method: str, **options: Any) -> requests.Response:
        if isinstance(self._result, Exception):
            raise self._result
        response = requests.Response()
        response.status_code, response._content = self._result, b'{}'
        return response


@pytest.mark.parametrize(
    ('result', 'kind', 'status'),
    [
        (401, TokenRejected, 401),
        (403, ApiError, 403),
        (404, ObjectNotFound, 404),
        (500, ApiError, 500),
        (ConnectFailure('http://10.0.0.1:6666 refused'), ApiError, 503),
    ],
)
def test_error_has_class_that_horizon_handles(
    result: int | Exception, kind: type[ApiError], status: int
) -> None:
    with pytest.raises(ApiError) as raised:
        api.DashboardApi(Proxy(result)).call('GET', '/devices')
    assert type(raised.value) is kind
    assert raised.value.status == status
    assert '10.0.0.1' not in str(raised.value)


def test_missing_service_in_catalog_raises_error() -> None:
    user = types.SimpleNamespace(service_catalog=[], services_region='RegionOne')
    with pytest.raises(ApiError, match='no accelerator service'):
        api.connect(types.SimpleNamespace(user=user))
