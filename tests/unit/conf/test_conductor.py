# SPDX-License-Identifier: Apache-2.0
"""Defaults of the conductor that depend on each other and on other services."""

from cyborg_lite import conf as configuration

_ARQ_BINDING_TIMEOUT = 300  # seconds; the default of [arqs] in nova.conf


def test_bind_deadline_ends_before_nova_gives_up() -> None:
    conductor = configuration.parse([], 'prog', []).conductor
    assert conductor.bind_deadline + conductor.job_lease < _ARQ_BINDING_TIMEOUT


def test_event_deadline_ends_when_nova_gives_up() -> None:
    conductor = configuration.parse([], 'prog', []).conductor
    assert conductor.event_deadline <= _ARQ_BINDING_TIMEOUT


def test_load_timeout_fits_into_bind_deadline() -> None:
    conductor = configuration.parse([], 'prog', []).conductor
    assert conductor.load_timeout < conductor.bind_deadline


def test_audit_by_default_releases_orphans_after_grace() -> None:
    conductor = configuration.parse([], 'prog', []).conductor
    assert conductor.audit_interval > 0
    assert conductor.reap_orphans
    assert conductor.orphan_grace == 3600
