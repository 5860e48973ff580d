# SPDX-License-Identifier: Apache-2.0
"""Recognition of the Compute API by its User-Agent."""

import pytest

from cyborg_lite.api.nova_processes import is_nova_api

KEYSTONEAUTH = 'keystoneauth1/5.18.1 python-requests/2.34.2 CPython/3.11.7'


@pytest.mark.parametrize(
    ('product', 'expected'),
    [
        ('nova-api ', True),
        ('nova-api-wsgi ', True),
        ('uwsgi ', True),
        ('gunicorn/23.0 ', True),
        ('nova-conductor ', False),
        ('nova-compute ', False),
        ('openstacksdk/4.22 ', False),
        ('', False),
    ],
)
def test_is_nova_api_by_first_product(product: str, expected: bool) -> None:
    assert is_nova_api(product + KEYSTONEAUTH) is expected


def test_is_nova_api_empty_header_is_false() -> None:
    assert is_nova_api('') is False
