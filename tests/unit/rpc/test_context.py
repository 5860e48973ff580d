# SPDX-License-Identifier: Apache-2.0
"""Tests of the request context and its form in messages."""

from oslo_context import context as oslo_context

from cyborg_lite.rpc.context import RequestContext, daemon_context, request_context


def test_to_dict_never_contains_token() -> None:
    context = RequestContext(auth_token='gAAAA-secret', user_id='joe')
    assert context.to_dict()['auth_token'] is None
    assert 'gAAAA-secret' not in str(context.to_wire())


def test_to_wire_omits_default_values() -> None:
    context = RequestContext(request_id='req-1', project_id='lab')
    values = context.to_wire()
    assert values['request_id'] == 'req-1'
    assert values['project_id'] == 'lab'
    assert not {'roles', 'read_only', 'domain', 'is_admin'} & values.keys()


def test_from_dict_restores_service_request() -> None:
    for service_request in (True, False):
        context = RequestContext(service_request=service_request, roles=['member'])
        restored = RequestContext.from_dict(context.to_wire())
        assert restored.service_request is service_request
        assert restored.roles == ['member']


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
