# SPDX-License-Identifier: Apache-2.0
"""Crash at every step: whenever a daemon dies, its successor ends what was begun.

A driver's own tests call each of ``CRASH_CHECKS`` with a ``Trial`` and an empty
directory. The first run of a check finds out which steps there are; in each of the
others a process dies before or after one of them. Nothing here needs a server, a broker
or a test runner. A check that fails raises ``Nonconforming`` with the step and what was
wrong.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Final

from cyborg_lite.crash_kit.cloud import Cloud, Databases, Trial
from cyborg_lite.crash_kit.fate import Fate
from cyborg_lite.drivers.kit import Nonconforming, expect
from cyborg_lite.model.arqs import State
from cyborg_lite.model.inventory import Finding

__all__ = ['CRASH_CHECKS', 'Trial']

Act = Callable[[Cloud], None]
Seen = Sequence[str]  # of the host: after the bind, after the release

_UUID: Final = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')

# Where it is lost that Nova was told: it hears once more, which does no harm.
_TOLD: Final = ('after the POST to Nova', 'before the transaction finish')


def a_bind_survives_every_crash(trial: Trial, root: Path) -> None:
    """All is Bound, its host is ready and Nova has heard of it; all can be released."""
    _survive(trial, root, Cloud.bind)


def a_release_survives_every_crash(trial: Trial, root: Path) -> None:
    """Nothing is held, nothing is prepared, and the host is as it should be then."""
    _survive(trial, root, Cloud.delete)


CRASH_CHECKS: Final[Sequence[Callable[[Trial, Path], None]]] = (
    a_bind_survives_every_crash,
    a_release_survives_every_crash,
)


def _survive(trial: Trial, root: Path, dangerous: Act) -> None:
    root.mkdir(parents=True, exist_ok=True)
    with closing(Databases(root)) as databases:
        unharmed = Fate()
        cloud = Cloud(trial, databases, root / 'unharmed', unharmed)
        usual = _live(cloud, dangerous)
        for number, moment in enumerate(unharmed.moments):
            cloud = Cloud(trial, databases, root / f'moment-{number}', Fate(number))
            try:
                _expect_same(_live(cloud, dangerous), usual)
                expect(cloud.fate.met == moment, 'other steps than at the first time')
            except Nonconforming as error:
                raise Nonconforming(f'after a death {moment}: {error}') from error


def _live(cloud: Cloud, dangerous: Act) -> Seen:
    """From the bind to the release."""
    seen = []
    for act, check in ((Cloud.bind, _check_bound), (Cloud.delete, _check_free)):
        with cloud.fate.at_large() if act is dangerous else nullcontext():
            act(cloud)
        check(cloud)
        seen.append(_text(cloud.findings()))
    return seen


def _text(findings: Sequence[Finding]) -> str:
    """All that they say, but for the names that were made up for this run."""
    return _UUID.sub('#', repr(findings))


def _expect_same(seen: Seen, usual: Seen) -> None:
    expect(seen[0] == usual[0], 'the host is not prepared as it should be')
    expect(seen[1] == usual[1], 'the host is not as a release leaves it')


def _check_bound(cloud: Cloud) -> None:
    found = cloud.arqs()
    wrong = {f'{arq.state} ({arq.status_reason})' for arq in found}
    every = sorted(arq.uuid for arq in cloud.made)
    bound = {arq.uuid for arq in found if arq.state is State.BOUND}
    expect(sorted(bound) == every, f'requests are {", ".join(wrong)}')
    expect(cloud.holders() == every, 'not every request holds a handle')
    on_host = sorted(arq.uuid for arq in found if arq.needs_host)
    expect(cloud.prepared() == on_host, 'the agent keeps what it did not prepare')
    times = 2 if cloud.fate.met in _TOLD else 1
    told = sorted(event.arq_uuid for event in cloud.nova.heard if event.succeeded)
    expect(len(told) == len(cloud.nova.heard), 'Nova is told of a failure')
    expect(set(told) == set(every), 'Nova is not told of every request')
    expect(len(told) <= times * len(every), 'Nova is told again and again')


def _check_free(cloud: Cloud) -> None:
    expect(not cloud.arqs(), 'a request is never deleted')
    expect(not cloud.holders(), 'a handle is never given back')
    expect(not cloud.prepared(), 'the agent keeps what it should have released')
