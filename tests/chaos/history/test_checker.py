# SPDX-License-Identifier: Apache-2.0
"""Histories written by hand: a correct one, and one that violates each rule."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.chaos.history import answer_rules, arq_rules, event_rules, handle_rules
from tests.chaos.history.checker import RULES, check
from tests.chaos.history.records import (
    REMOVED,
    Claim,
    History,
    HostAction,
    HostStep,
    Kind,
    Operation,
    Receipt,
    Record,
    Step,
    Violation,
)

ARQ, RIVAL, I1, I2, HOST, KEY = 'arq', 'rival', 'i1', 'i2', 'host', 'card/0'

CREATED = Step(1, 1.1, ARQ, '', 'Initial')
STARTED = Step(2, 2.1, ARQ, 'Initial', 'BindStarted', 1, I1, HOST)
CLAIMED = Claim(3, 2.2, HOST, KEY, '', ARQ)
PREPARED = HostStep(2.3, HOST, KEY, HostAction.PREPARE, ARQ)
BOUND = Step(4, 2.4, ARQ, 'BindStarted', 'Bound', 1, I1, HOST)
RECEIVED = Receipt(2.5, ARQ, I1, 'completed', 4)

CREATE = Operation(Kind.CREATE, ARQ, 1.0, 1.2, 201)
BIND = Operation(Kind.BIND, ARQ, 2.0, 2.2, 202, I1)
READ = Operation(Kind.READ, ARQ, 2.6, 2.7, 200, I1, 'Bound', has_handle=True)

DELETING = Step(5, 3.1, ARQ, 'Bound', 'Deleting', 1, '', HOST)
RELEASED = HostStep(3.2, HOST, KEY, HostAction.RELEASE, ARQ)
FREED = Claim(6, 3.3, HOST, KEY, ARQ, '')
GONE = Step(7, 3.4, ARQ, 'Deleting', REMOVED, 1)
DELETE = Operation(Kind.DELETE, ARQ, 3.0, 3.15, 204)
READ_GONE = Operation(Kind.READ, ARQ, 3.5, 3.6, 404)

BOUND_RECORDS: list[Record] = [
    CREATED, STARTED, CLAIMED, PREPARED, BOUND, RECEIVED, CREATE, BIND, READ
]  # fmt: skip
DELETED_RECORDS: list[Record] = [
    *BOUND_RECORDS, DELETING, RELEASED, FREED, GONE, DELETE, READ_GONE
]  # fmt: skip


def build(*records: Record) -> History:
    history = History()
    lists = {
        Operation: history.operations,
        Step: history.steps,
        Claim: history.claims,
        Receipt: history.receipts,
        HostStep: history.host_steps,
    }
    for record in records:
        lists[type(record)].append(record)  # type: ignore[attr-defined]  # by type
    return history


def without(*removed: Record) -> list[Record]:
    return [record for record in BOUND_RECORDS if record not in removed]


def violations_of(
    rule: Callable[[History], Iterator[Violation]], *records: Record
) -> list[Violation]:
    history = build(*records)
    result = list(check(history))
    assert {violation.rule for violation in result} <= {
        'transition', 'bind', 'end', 'answer', 'handle', 'host', 'event'
    }  # fmt: skip
    assert rule in RULES
    return list(rule(history))


@pytest.mark.parametrize('records', [BOUND_RECORDS, DELETED_RECORDS])
def test_check_correct_history_has_no_violation(records: list[Record]) -> None:
    assert list(check(build(*records))) == []


def test_check_lost_answers_are_allowed() -> None:
    unanswered = replace(BIND, end=None, status=None)
    assert list(check(build(*without(BIND), unanswered))) == []


def test_transition_forbidden_state_is_shown_with_step_before() -> None:
    rebound = Step(8, 4.0, ARQ, 'Bound', 'BindStarted', 2, I2, HOST)
    (violation,) = violations_of(arq_rules.check_transitions, *BOUND_RECORDS, rebound)
    assert violation.records == [BOUND, rebound]
    assert str(violation).splitlines()[0].startswith('transition: ')


@pytest.mark.parametrize(
    'step',
    [
        Step(8, 4.0, ARQ, REMOVED, 'Unbound', 1),  # a deletion is final
        Step(8, 4.0, ARQ, 'Unbound', 'Deleting', 1),  # the state before was another
        Step(8, 4.0, ARQ, 'Deleting', 'Deleting', 0),  # the generation goes back
    ],
)
def test_transition_after_deletion_is_violation(step: Step) -> None:
    assert violations_of(arq_rules.check_transitions, *DELETED_RECORDS, step)


def test_transition_first_state_must_be_initial() -> None:
    assert violations_of(arq_rules.check_transitions, replace(CREATED, state='Bound'))


def test_bind_without_request_is_violation() -> None:
    rule = arq_rules.check_binds_were_requested
    assert violations_of(rule, *without(BIND))
    assert violations_of(rule, *without(BIND), replace(BIND, status=409))
    assert violations_of(rule, *without(BIND), replace(BIND, start=2.15))


def test_instance_with_one_failed_arq_is_violation() -> None:
    failed = Step(5, 2.6, RIVAL, 'BindStarted', 'BindFailed', 1, I1, HOST)
    rule = arq_rules.check_arqs_of_instance_agree
    (violation,) = violations_of(rule, *BOUND_RECORDS, failed)
    assert violation.records == [BOUND, failed]
    failure = replace(failed, instance=I2)
    assert not violations_of(rule, *BOUND_RECORDS, failure)


def test_arq_that_stays_unfinished_is_violation() -> None:
    rule = arq_rules.check_every_arq_is_settled
    (violation,) = violations_of(rule, CREATED, STARTED)
    assert violation.records == [STARTED]
    history = build(CREATED, STARTED)
    history.is_settled = False
    assert list(rule(history)) == []


def test_answer_500_is_violation() -> None:
    assert violations_of(arq_rules.check_no_internal_error, replace(DELETE, status=500))


@pytest.mark.parametrize(
    'read',
    [
        replace(READ, state='Unbound'),  # never was
        replace(READ, instance=I2),
        replace(READ, has_handle=False),
        replace(READ, status=404, state=''),
        Operation(Kind.READ, ARQ, 2.6, 2.7, 200, '', 'Initial'),  # after the bind
        replace(READ, start=1.5, end=1.6),  # before the bind
    ],
)
def test_read_no_step_explains_is_violation(read: Operation) -> None:
    records = [*without(READ), replace(READ, start=2.5, end=2.55), read]
    (violation,) = violations_of(answer_rules.check_answers, *records)
    assert read in violation.records
    assert CREATED not in violation.records or read.start < 2


def test_read_stale_overlapping_operation_is_allowed() -> None:
    old = Operation(Kind.READ, ARQ, 2.05, 9.0, 200, '', 'Initial')
    assert not violations_of(answer_rules.check_answers, *BOUND_RECORDS, old)


def test_read_after_acknowledged_deletion_shows_no_bound_arq() -> None:
    late = replace(READ, start=3.2, end=3.3)
    (violation,) = violations_of(answer_rules.check_answers, *DELETED_RECORDS, late)
    assert violation.records == [DELETE, DELETING, GONE, late]


def test_accepted_operation_without_step_is_violation() -> None:
    rule = answer_rules.check_answers
    unbind = Operation(Kind.UNBIND, ARQ, 4.0, 4.1, 202)
    leave = Operation(Kind.DELETE_INSTANCE, ARQ, 4.0, 4.1, 204, I1)
    rebind = Operation(Kind.BIND, ARQ, 4.0, 4.1, 202, I2)
    for operation in (unbind, leave, rebind, replace(DELETE, start=4.0, end=4.1)):
        assert violations_of(rule, *BOUND_RECORDS, operation)


def test_handle_with_two_owners_is_violation() -> None:
    rival = Claim(8, 4.0, HOST, KEY, ARQ, RIVAL)
    (violation,) = violations_of(
        handle_rules.check_handle_has_one_owner, *BOUND_RECORDS, rival
    )
    assert violation.records == [CLAIMED, rival]


@pytest.mark.parametrize(
    'claims',
    [
        [],
        [replace(CLAIMED, hostname='second')],
        [CLAIMED, replace(CLAIMED, handle='card/1')],
    ],
)
def test_bound_arq_without_single_handle_is_violation(claims: list[Claim]) -> None:
    records = [*without(CLAIMED), *claims]
    assert violations_of(handle_rules.check_bound_arq_owns_handle, *records)


def test_handle_taken_from_bound_arq_is_violation() -> None:
    freed = replace(FREED, number=8, time=4.0)
    rival = Claim(9, 4.1, HOST, KEY, '', RIVAL)
    rule = handle_rules.check_handle_is_not_taken_from_bound_arq
    (violation,) = violations_of(rule, *BOUND_RECORDS, freed, rival)
    assert violation.records == [CLAIMED, BOUND, freed, rival]
    later = replace(rival, number=10)
    assert not violations_of(rule, *DELETED_RECORDS, later)
    # The handle of an earlier bind is free before the ARQ is bound to a second handle.
    bound = replace(BOUND, number=9, generation=2)
    unbound = Step(7, 3.1, ARQ, 'Bound', 'Unbound', 1, '', HOST)
    assert not violations_of(rule, *BOUND_RECORDS, unbound, freed, bound, later)


def test_owners_at_end_are_the_bound_arqs() -> None:
    rule = handle_rules.check_owners_at_end
    assert violations_of(rule, *BOUND_RECORDS, replace(FREED, number=8))
    unbound = Step(8, 4.0, ARQ, 'Bound', 'Unbound', 1, '', '')
    assert violations_of(rule, *BOUND_RECORDS, unbound)


def test_bound_before_host_has_prepared_is_violation() -> None:
    rule = handle_rules.check_host_has_prepared
    assert violations_of(rule, *without(PREPARED))
    assert violations_of(rule, *without(PREPARED), replace(PREPARED, arq=RIVAL))
    released = replace(RELEASED, time=2.35)
    assert violations_of(rule, *BOUND_RECORDS, released)


def test_host_releases_handle_of_bound_arq_is_violation() -> None:
    rule = handle_rules.check_host_has_prepared
    (violation,) = violations_of(rule, *BOUND_RECORDS, RELEASED)
    assert violation.records == [BOUND, RELEASED]


def test_handle_still_prepared_at_end_is_violation() -> None:
    rule = handle_rules.check_prepared_at_end
    late = replace(PREPARED, time=9.0)
    (violation,) = violations_of(rule, *DELETED_RECORDS, late)
    assert violation.records == [late, GONE]


def test_host_prepares_for_second_arq_is_violation() -> None:
    refused = HostStep(2.6, HOST, KEY, HostAction.REFUSE, RIVAL)
    rule = handle_rules.check_host_prepares_for_one_arq
    (violation,) = violations_of(rule, *BOUND_RECORDS, refused)
    assert violation.records == [PREPARED, refused]


@pytest.mark.parametrize(
    'receipt',
    [
        replace(RECEIVED, last_step=2),  # before the commit
        replace(RECEIVED, instance=I2),
        replace(RECEIVED, status='failed'),
    ],
)
def test_event_without_visible_state_is_violation(receipt: Receipt) -> None:
    records = [*BOUND_RECORDS, receipt]
    (violation,) = violations_of(event_rules.check_state_was_visible, *records)
    assert receipt in violation.records


def test_bind_without_event_is_violation() -> None:
    rule = event_rules.check_every_end_is_announced
    (violation,) = violations_of(rule, *without(RECEIVED))
    assert violation.records == [STARTED, BOUND]
    assert not violations_of(
        rule, *(record for record in DELETED_RECORDS if record != RECEIVED)
    )
