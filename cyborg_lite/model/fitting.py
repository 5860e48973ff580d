# SPDX-License-Identifier: Apache-2.0
"""Whether a device profile fits, host by host, and what is missing where it does not.

Placement's word counts for what is free; our own books say why it is not.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from cyborg_lite.model import obstacles
from cyborg_lite.model.explanations import (
    Asked,
    Explanation,
    GroupVerdict,
    HostVerdict,
    Reason,
    Supply,
    Verdict,
    Why,
)
from cyborg_lite.model.matching import fit_together


def explain(
    groups: Sequence[Asked], supplies: Sequence[Supply], hosts: Iterable[str]
) -> Explanation:
    """:param supplies: of the whole cloud
    :param hosts: those that are to be told of
    """
    of_host: dict[str, list[Supply]] = defaultdict(list)
    for one in supplies:
        of_host[one.hostname].append(one)
    never = impossible(groups, supplies) or _never_together(groups, of_host.values())
    verdicts = tuple(_host(name, groups, of_host[name]) for name in sorted(set(hosts)))
    fitting = sum(verdict.fits for verdict in verdicts)
    word = Verdict.NEVER if never else Verdict.NOT_NOW
    return Explanation(
        verdict=Verdict.FITS if fitting else word,
        summary=f'{fitting} of {len(verdicts)} hosts have accelerators for a server '
        f'of this profile now.',
        hosts=verdicts,
        warnings=(*never, *_strangers(groups, supplies)),
    )


def impossible(
    groups: Sequence[Asked], supplies: Sequence[Supply]
) -> tuple[Reason, ...]:
    """Of each group that no provider could serve were it free, why."""
    found = (
        obstacles.of_all(index, asked, supplies) for index, asked in enumerate(groups)
    )
    return tuple(reason for reason in found if reason is not None)


def _never_together(
    groups: Sequence[Asked], hosts: Iterable[Sequence[Supply]]
) -> tuple[Reason, ...]:
    """Where each group alone is possible."""
    for supplies in hosts:
        wanted = []
        for asked in groups:
            able = {one.rp_uuid for one in supplies if obstacles.is_right(asked, one)}
            wanted.append((asked.demand.amounts[0][1], frozenset(able)))
        if fit_together(wanted, {one.rp_uuid: one.total for one in supplies}):
            return ()
    text = 'No host has enough for all groups at once, even if nothing were in use.'
    return (Reason(Why.NOT_TOGETHER, text),)


def _strangers(groups: Sequence[Asked], supplies: Sequence[Supply]) -> Iterator[Reason]:
    """Providers that Placement may choose and that no device of ours stands behind."""
    ours = {one.rp_uuid for one in supplies}
    for index, asked in enumerate(groups):
        others = tuple(sorted(asked.offers.keys() - ours))
        if others:
            text = (
                'Placement may also choose providers that are not managed here, and a '
                'server that gets one fails to boot. Require a trait that only the '
                'devices meant have.'
            )
            yield Reason(Why.STRANGERS, text, index, providers=others)


def _host(
    hostname: str, groups: Sequence[Asked], supplies: Sequence[Supply]
) -> HostVerdict:
    verdicts = tuple(
        _group(index, asked, supplies) for index, asked in enumerate(groups)
    )
    if not all(verdict.fits for verdict in verdicts):
        return HostVerdict(hostname, False, verdicts)
    wanted, free = [], {}
    for asked in groups:
        ((name, amount),) = asked.demand.amounts
        able = {one.rp_uuid for one in supplies if obstacles.serves(asked, one)}
        wanted.append((amount, frozenset(able)))
        free.update({uuid: asked.offers[uuid].get(name, 0) for uuid in able})
    if fit_together(wanted, free):
        return HostVerdict(hostname, True, verdicts)
    text = 'Each group fits alone, but not all at once: too few units are free.'
    return HostVerdict(hostname, False, verdicts, (Reason(Why.NOT_TOGETHER, text),))


def _group(index: int, asked: Asked, supplies: Sequence[Supply]) -> GroupVerdict:
    mixture = obstacles.several_classes(asked.demand, index)
    if mixture is not None:
        return GroupVerdict(index, False, (mixture,))
    if any(obstacles.serves(asked, one) for one in supplies):
        return GroupVerdict(index, True)
    (name,) = asked.demand.classes
    reasons = [
        obstacles.of_provider(index, asked, one)
        for one in supplies
        if one.resource_class == name
    ]
    if not reasons:
        text = f'The host has no {name}.'
        reasons = [Reason(Why.MISSING_CLASS, text, index, name)]
    return GroupVerdict(index, False, _merged(reasons))


def _merged(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Equal ones as one, of all their providers."""
    providers: dict[Reason, list[str]] = defaultdict(list)
    for one in reasons:
        providers[replace(one, providers=())] += one.providers
    return tuple(replace(one, providers=tuple(providers[one])) for one in providers)
