# SPDX-License-Identifier: Apache-2.0
"""Rules of answers: each ARQ looks to all clients like a single register.

An answer observes a step of the ARQ. Two observations that do not overlap must be in
the order of the steps. The observations are assigned to the earliest possible steps,
which restricts later ones least; if an observation has no possible step, no order of
the operations explains the answers.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from cyborg_lite.model.arqs.arqs import State
from tests.chaos.history.arq_rules import steps_by_arq
from tests.chaos.history.records import (
    REMOVED,
    History,
    Kind,
    Operation,
    Step,
    Violation,
)

_UNBOUND: Final = {State.INITIAL, State.UNBOUND, State.UNBIND_FAILED}
_DELETED: Final = {State.DELETING, REMOVED}
# States that the API computes on read.
_STORED: Final = {State.UNKNOWN.value: State.BOUND.value}

Observation = tuple[Operation, int]  # the operation and the index of its step


def check_answers(history: History) -> Iterator[Violation]:
    """Check that an order of the operations explains their answers."""
    operations = defaultdict(list)
    for operation in history.operations:
        if operation.end is not None and _is_observation(operation):
            operations[operation.arq].append(operation)
    steps = steps_by_arq(history)
    for arq, observed in operations.items():
        yield from _check_arq(observed, steps.get(arq, []))


def _is_observation(operation: Operation) -> bool:
    if operation.kind is Kind.READ:
        return operation.status in (200, 404)
    return operation.status in (201, 202, 204)


def _check_arq(
    operations: Sequence[Operation], steps: Sequence[Step]
) -> Iterator[Violation]:
    observations: list[Observation] = []
    for operation in sorted(operations, key=_end):
        earlier = [
            (before, index)
            for before, index in observations
            if _end(before) < operation.start
        ]
        bound = max((index for _, index in earlier), default=0)
        index = _first_step(operation, steps, bound)
        if index is None:
            # The step of the latest observation, and what follows, contradicts it.
            witness = [before for before, number in earlier if number == bound][:1]
            text = 'No step of the ARQ explains the answer.'
            yield Violation('answer', text, [*witness, *steps[bound:], operation])
        else:
            observations.append((operation, index))


def _end(operation: Operation) -> float:
    assert operation.end is not None
    return operation.end


def _first_step(operation: Operation, steps: Sequence[Step], bound: int) -> int | None:
    for index, step in enumerate(steps[bound:], bound):
        if step.time > _end(operation):  # not written yet
            return None
        if _explains(operation, step):
            return index
    return None


def _explains(operation: Operation, step: Step) -> bool:
    match operation.kind:
        case Kind.CREATE:
            return step.state == State.INITIAL
        case Kind.BIND:
            return (
                step.state == State.BIND_STARTED
                and step.instance == operation.instance
                and step.time >= operation.start
            )
        case Kind.UNBIND:
            return step.state in _UNBOUND
        case Kind.DELETE:
            return step.state in _DELETED
        case Kind.DELETE_INSTANCE:
            return step.instance != operation.instance
        case Kind.READ:
            return _explains_read(operation, step)


def _explains_read(operation: Operation, step: Step) -> bool:
    if operation.status == 404:
        return step.state == REMOVED
    state = _STORED.get(operation.state, operation.state)
    if step.state != state or step.instance != operation.instance:
        return False
    return operation.has_handle or operation.state != State.BOUND


ANSWER_RULES: Final = (check_answers,)
