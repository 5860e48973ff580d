# SPDX-License-Identifier: Apache-2.0
"""Rules of the steps of an ARQ: a register with the transitions of the model."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from cyborg_lite.model.arqs.arqs import TRANSITIONS, Event, State
from tests.chaos.history.records import (
    REMOVED,
    History,
    Kind,
    Operation,
    Step,
    Violation,
)

_NEXT_STATES: Final = {
    state.value: {following.value for following in row.values()}
    # The row of an ARQ with nothing to clean is deleted at once.
    | {state.value, REMOVED}
    for state, row in TRANSITIONS.items()
}
_BOUND_FROM: Final = {
    state.value for state, row in TRANSITIONS.items() if Event.BIND in row
}
_UNFINISHED: Final = {State.BIND_STARTED, State.DELETING, State.PROVISIONING}


def steps_by_arq(history: History) -> dict[str, list[Step]]:
    """Return the steps of each ARQ in the order of the database."""
    result = defaultdict(list)
    for step in sorted(history.steps, key=lambda step: step.number):
        result[step.arq].append(step)
    return dict(result)


def check_transitions(history: History) -> Iterator[Violation]:
    """Check that each ARQ changes its state as the model allows."""
    for steps in steps_by_arq(history).values():
        first = steps[0]
        if first.previous or first.state != State.INITIAL:
            text = 'An ARQ begins in another state than Initial.'
            yield Violation('transition', text, steps[:1])
        for before, after in pairwise(steps):
            text = _check_transition(before, after)
            if text:
                yield Violation('transition', text, [before, after])


def _check_transition(before: Step, after: Step) -> str:
    """Return the error; empty: none."""
    if before.state == REMOVED:
        return 'A deleted ARQ has changed.'
    if after.previous != before.state:
        return f'The ARQ was {before.state}, not {after.previous}.'
    if after.state not in _NEXT_STATES[before.state]:
        return f'{before.state} does not allow {after.state}.'
    if after.generation == before.generation:
        return _check_same_bind(before, after)
    return _check_next_bind(before, after)


def _check_same_bind(before: Step, after: Step) -> str:
    if after.state == State.BIND_STARTED != before.state:
        return 'A bind was accepted without a new generation.'
    if after.instance not in (before.instance, ''):
        return 'The instance changed without a bind.'
    return ''


def _check_next_bind(before: Step, after: Step) -> str:
    if after.generation < before.generation:
        return 'The generation decreased.'
    if after.state != State.BIND_STARTED or before.state not in _BOUND_FROM:
        return 'The generation changed without a bind.'
    if not (after.instance and after.hostname):
        return 'A bind has no instance or no host.'
    return ''


def check_binds_were_requested(history: History) -> Iterator[Violation]:
    """Check that each accepted bind belongs to a request which was not refused."""
    requests: dict[tuple[str, str], list[Operation]] = defaultdict(list)
    for operation in history.operations:
        if operation.kind is Kind.BIND:
            requests[operation.arq, operation.instance].append(operation)
    for steps in steps_by_arq(history).values():
        for before, after in pairwise(steps):
            if after.generation <= before.generation:
                continue
            candidates = requests[after.arq, after.instance]
            if not any(_may_have_bound(request, after) for request in candidates):
                text = 'No request asked for this bind, or all were refused.'
                yield Violation('bind', text, [*candidates, after])


def _may_have_bound(request: Operation, step: Step) -> bool:
    is_refused = request.status is not None and 400 <= request.status < 500
    return request.start <= step.time and not is_refused


def check_every_arq_is_settled(history: History) -> Iterator[Violation]:
    """Check that no bind and no deletion stays unfinished."""
    if not history.is_settled:
        return
    for steps in steps_by_arq(history).values():
        if steps[-1].state in _UNFINISHED:
            text = f'The ARQ stays {steps[-1].state} although no job is left.'
            yield Violation('end', text, steps[-1:])


def check_arqs_of_instance_agree(history: History) -> Iterator[Violation]:
    """Check that at the end all or none of the ARQs of an instance are Bound."""
    if not history.is_settled:
        return
    by_instance = defaultdict(list)
    for step in last_states(history.steps).values():
        if step.state in (State.BOUND, State.BIND_FAILED):
            by_instance[step.instance].append(step)
    for steps in by_instance.values():
        if len({step.state for step in steps}) > 1:
            text = 'One ARQ of the instance is Bound, and another one has failed.'
            yield Violation('bind', text, steps)


def check_no_internal_error(history: History) -> Iterator[Violation]:
    """Check that no request is answered with 500; 503 means that it may be repeated."""
    for operation in history.operations:
        if operation.status == 500:
            yield Violation('answer', 'The answer is 500.', [operation])


ARQ_RULES: Final = (
    check_transitions,
    check_binds_were_requested,
    check_every_arq_is_settled,
    check_arqs_of_instance_agree,
    check_no_internal_error,
)


def last_states(steps: Sequence[Step]) -> dict[str, Step]:
    """Return the last step of each ARQ."""
    return {step.arq: step for step in sorted(steps, key=lambda step: step.number)}
