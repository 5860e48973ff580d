# SPDX-License-Identifier: Apache-2.0
"""Tests of the request context and its form in messages."""

from oslo_context import context as oslo_context

from cyborg_lite.rpc.context import daemon_context, request_context


def test_daemon_context_is_admin_with_new_request_id() -> None:
    first, second = daemon_context(), daemon_context()
    assert first.is_admin
    assert first.request_id.startswith('req-')
    assert first.request_id != second.request_id


def test_request_context_continues_request() -> None:
    context = request_context('req-1')
    assert (context.request_id, context.is_admin) == ('req-1', True)
    assert oslo_context.get_current() is context


def test_request_context_without_id_has_new_id() -> None:
    assert request_context(None).request_id != request_context(None).request_id
