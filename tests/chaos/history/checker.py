# SPDX-License-Identifier: Apache-2.0
"""Checks a history against all rules."""

from collections.abc import Iterator
from typing import Final

from tests.chaos.history.answer_rules import ANSWER_RULES
from tests.chaos.history.arq_rules import ARQ_RULES
from tests.chaos.history.event_rules import EVENT_RULES
from tests.chaos.history.handle_rules import HANDLE_RULES
from tests.chaos.history.records import History, Violation

RULES: Final = (*ARQ_RULES, *ANSWER_RULES, *HANDLE_RULES, *EVENT_RULES)


def check(history: History) -> Iterator[Violation]:
    """Yield the violations, each with the shortest part that shows it."""
    for rule in RULES:
        yield from rule(history)
