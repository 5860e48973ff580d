# SPDX-License-Identifier: Apache-2.0
"""Rules of attach handles: locks with one owner, in the database and on the host."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from cyborg_lite.model.arqs.arqs import State
from tests.chaos.history.arq_rules import last_states, steps_by_arq
from tests.chaos.history.records import (
    Claim,
    History,
    HostAction,
    HostStep,
    Step,
    Violation,
)

Handle = tuple[str, str]  # host and key


def _claims_by_handle(history: History) -> dict[Handle, list[Claim]]:
    result = defaultdict(list)
    for claim in sorted(history.claims, key=lambda claim: claim.number):
        result[claim.hostname, claim.handle].append(claim)
    return dict(result)


def check_handle_has_one_owner(history: History) -> Iterator[Violation]:
    """Check that a handle is free before an ARQ claims it."""
    for claims in _claims_by_handle(history).values():
        for before, after in pairwise(claims):
            if before.arq and after.arq not in ('', before.arq):
                text = f'The handle had the owner {before.arq}.'
                yield Violation('handle', text, [before, after])


def check_bound_arq_owns_handle(history: History) -> Iterator[Violation]:
    """Check that an ARQ becomes Bound with one handle of the host of its bind."""
    claims = sorted(history.claims, key=lambda claim: claim.number)
    for step in history.steps:
        if step.state != State.BOUND:
            continue
        before = [claim for claim in claims if claim.number < step.number]
        handles = _owned_handles(before, step.arq)
        if {host for host, _ in handles} != {step.hostname} or len(handles) > 1:
            about = [c for c in before if step.arq in (c.arq, c.previous)]
            text = f'The bound ARQ has the handles {sorted(handles)}.'
            yield Violation('handle', text, [*about[-2:], step])


def _owned_handles(claims: Sequence[Claim], arq: str) -> set[Handle]:
    handles: set[Handle] = set()
    for claim in claims:
        handle = claim.hostname, claim.handle
        if claim.arq == arq:
            handles.add(handle)
        else:
            handles.discard(handle)
    return handles


def check_handle_is_not_taken_from_bound_arq(history: History) -> Iterator[Violation]:
    """Check that no other ARQ claims the handle of an ARQ that stays Bound."""
    steps = steps_by_arq(history)
    for claims in _claims_by_handle(history).values():
        for before, release, after in zip(claims, claims[1:], claims[2:], strict=False):
            if not before.arq or release.arq or not after.arq:
                continue
            of_owner = steps.get(before.arq, [])
            owner = _state_at(of_owner, release.number)
            is_same = owner == _state_at(of_owner, after.number)
            if is_same and owner is not None and owner.state == State.BOUND:
                text = f'ARQ {before.arq} was still Bound.'
                yield Violation('handle', text, [before, owner, release, after])


def _state_at(steps: Sequence[Step], number: int) -> Step | None:
    earlier = [step for step in steps if step.number < number]
    return earlier[-1] if earlier else None


def check_owners_at_end(history: History) -> Iterator[Violation]:
    """Check that at the end exactly the bound ARQs own handles."""
    if not history.is_settled:
        return
    last = last_states(history.steps)
    owners = {}
    for claims in _claims_by_handle(history).values():
        if claims[-1].arq:
            owners[claims[-1].arq] = claims[-1]
    for arq, claim in owners.items():
        if arq not in last or last[arq].state != State.BOUND:
            text = 'The handle stays with an ARQ that is not Bound.'
            steps = [last[arq]] if arq in last else []
            yield Violation('handle', text, [claim, *steps])
    for arq, step in last.items():
        if step.state == State.BOUND and arq not in owners:
            yield Violation('handle', 'The ARQ is Bound without a handle.', [step])


def check_host_has_prepared(history: History) -> Iterator[Violation]:
    """Check that the host has prepared the handle of an ARQ while it is Bound."""
    claims = sorted(history.claims, key=lambda claim: claim.number)
    host_steps = sorted(history.host_steps, key=lambda step: step.time)
    for steps in steps_by_arq(history).values():
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if step.state != State.BOUND or step.previous == State.BOUND:
                continue
            before = [claim for claim in claims if claim.number < step.number]
            for handle in _owned_handles(before, step.arq):
                actions = [s for s in host_steps if (s.hostname, s.handle) == handle]
                yield from _check_bound(step, following, actions)


def _check_bound(
    step: Step, following: Step | None, actions: Sequence[HostStep]
) -> Iterator[Violation]:
    before = [
        action
        for action in actions
        if action.time < step.time and action.action is not HostAction.REFUSE
    ]
    last = before[-1] if before else None
    is_prepared = (
        last is not None and last.action is HostAction.PREPARE and last.arq == step.arq
    )
    if not is_prepared:
        text = 'The ARQ is Bound, but its host has not prepared the handle.'
        yield Violation('host', text, [*before[-1:], step])
    end = float('inf') if following is None else following.time
    for action in actions:
        if step.time < action.time < end and action.action is HostAction.RELEASE:
            text = 'The host releases the handle of an ARQ that is Bound.'
            yield Violation('host', text, [step, action])


def check_host_prepares_for_one_arq(history: History) -> Iterator[Violation]:
    """Check that no handle is to be prepared while it is prepared for another ARQ."""
    for step in history.host_steps:
        if step.action is HostAction.REFUSE:
            text = 'The handle is still prepared for another ARQ.'
            earlier = [
                before
                for before in history.host_steps
                if (before.hostname, before.handle) == (step.hostname, step.handle)
                and before.time < step.time
            ]
            last = max(earlier, key=lambda before: before.time, default=None)
            records = [step] if last is None else [last, step]
            yield Violation('host', text, records)


def check_prepared_at_end(history: History) -> Iterator[Violation]:
    """Check that at the end handles are prepared for bound ARQs only."""
    if not history.is_settled:
        return
    last = last_states(history.steps)
    last_actions: dict[Handle, HostStep] = {}
    for action in sorted(history.host_steps, key=lambda action: action.time):
        if action.action is not HostAction.REFUSE:
            last_actions[action.hostname, action.handle] = action
    for action in last_actions.values():
        step = last.get(action.arq)
        if action.action is HostAction.PREPARE and (
            step is None or step.state != State.BOUND
        ):
            text = 'The handle stays prepared for an ARQ that is not Bound.'
            yield Violation('host', text, [action, *([step] if step else [])])


HANDLE_RULES: Final = (
    check_handle_has_one_owner,
    check_bound_arq_owns_handle,
    check_handle_is_not_taken_from_bound_arq,
    check_owners_at_end,
    check_host_has_prepared,
    check_host_prepares_for_one_arq,
    check_prepared_at_end,
)
