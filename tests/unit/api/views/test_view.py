# SPDX-License-Identifier: Apache-2.0
"""Tests of the order of the fields of views."""

import inspect
from unittest import mock

from wsme import types

from cyborg_lite.api.views.view import View


class _Base(View):
    zone = str
    name = str


class _Derived(_Base):
    id = int
    age = int

    @staticmethod
    def build() -> None:
        """Build nothing: a method is no field."""


def list_fields(view: type[View]) -> list[str]:
    return [attribute.name for attribute in types.list_attributes(view)]


def test_fields_have_order_of_definition() -> None:
    assert list_fields(_Base) == ['zone', 'name']
    assert list_fields(_Derived) == ['id', 'age', 'zone', 'name']


def test_definition_reads_no_source() -> None:
    with mock.patch.object(inspect, 'getsourcelines', autospec=True) as read:
        type('LateView', (View,), {'zone': str, 'name': str})
    read.assert_not_called()
