# SPDX-License-Identifier: Apache-2.0
"""Rules of events: at least once, to the right instance, of a visible state."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from cyborg_lite.model.arqs.arqs import State
from tests.chaos.history.arq_rules import steps_by_arq
from tests.chaos.history.records import History, Receipt, Step, Violation

_STATE_OF: Final = {
    'completed': State.BOUND.value,
    'failed': State.BIND_FAILED.value,
}


def check_state_was_visible(history: History) -> Iterator[Violation]:
    """Check that Nova could read the state of each event when it received it."""
    steps = steps_by_arq(history)
    for receipt in history.receipts:
        of_arq = steps.get(receipt.arq, [])
        if not any(_precedes(step, receipt) for step in of_arq):
            text = 'Nova receives an event whose state was not visible to it.'
            binds = [step for step in of_arq if step.instance == receipt.instance]
            yield Violation('event', text, [*binds, receipt])


def _precedes(step: Step, receipt: Receipt) -> bool:
    return (
        step.number <= receipt.last_step
        and step.instance == receipt.instance
        and step.state == _STATE_OF.get(receipt.status)
    )


def check_every_end_is_announced(history: History) -> Iterator[Violation]:
    """Check that Nova receives the end of each bind that stays.

    An unbind or a deletion cancels the event of the bind.
    """
    if not history.is_settled:
        return
    receipts = defaultdict(list)
    for receipt in history.receipts:
        receipts[receipt.arq, receipt.instance].append(receipt)
    for steps in steps_by_arq(history).values():
        last = steps[-1]
        if last.state not in _STATE_OF.values():
            continue
        events = receipts[last.arq, last.instance]
        if not any(_STATE_OF.get(event.status) == last.state for event in events):
            text = 'Nova never receives the end of the bind.'
            yield Violation('event', text, [*steps[-2:], *events])


EVENT_RULES: Final = (check_state_was_visible, check_every_end_is_announced)
