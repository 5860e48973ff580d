# SPDX-License-Identifier: Apache-2.0
"""Whatever hosts report, and whatever servers hold meanwhile, some things stay true."""

from hypothesis import given, settings
from hypothesis import strategies as st

from cyborg_lite.model.inventory import Device, HostReport
from tests.fakes.cards import card, report, with_parts
from tests.fakes.known_hosts import KnownHost


@st.composite
def _devices(draw: st.DrawFn) -> list[Device]:
    """Up to four slots; cards with and without serial numbers, each there once."""
    serials = draw(st.permutations(['a', 'b', 'c', None, None]))
    slots = draw(st.lists(st.sampled_from([1, 2, 3, 4]), unique=True, max_size=4))
    found = []
    for slot, serial in zip(slots, serials, strict=False):
        device = card(slot, units=draw(st.integers(1, 3)), serial=serial)
        names = draw(st.lists(st.sampled_from('xyz'), unique=True, max_size=2))
        found.append(with_parts(device, *names))
    return found


_REPORTS = _devices().map(lambda devices: report(*devices))


@settings(deadline=None)
@given(st.lists(st.tuples(_REPORTS, st.randoms(use_true_random=False)), max_size=6))
def test_reports_in_any_order_keep_their_promises(
    story: list[tuple[HostReport, object]],
) -> None:
    known = KnownHost()
    for reported, random in story:
        held = known.known.held
        before = {path: known.known.names[path[:2]] for path in held}
        found = known.report(reported)
        _check_held(known, held, found.units.gone, before)
        _check_whole(known)
        assert not known.report(reported), 'a repeated report must change nothing'
        _check_seen(known, reported)
        paths = sorted(known.layout.units)
        chosen = random.sample(paths, random.randint(0, len(paths)))  # type: ignore[attr-defined]  # a Random
        known.hold(*chosen)


def _check_held(
    known: KnownHost,
    held: frozenset[tuple[str, str, str]],
    gone: frozenset[tuple[str, str, str]],
    names: dict[tuple[str, str, str], str],
) -> None:
    assert not held & gone
    assert len(known.known.held) == len(held)
    # The provider that a server has its allocation with is there, by that name.
    assert set(names.values()) <= set(known.known.names.values())


def _check_whole(known: KnownHost) -> None:
    layout = known.layout
    for identity, part in layout.parts:
        assert identity in layout.devices
        parent = layout.parts[identity, part].parent
        assert parent is None or (identity, parent) in layout.parts
    for path in [*layout.units, *layout.attributes]:
        assert path[:2] in layout.parts
    names = list(known.known.names.values())
    assert len(names) == len(set(names)), 'names are unique'
    assert set(known.known.names) == set(layout.parts)


def _check_seen(known: KnownHost, reported: HostReport) -> None:
    """All that is reported is there, once, and all else is held and marked.

    But for devices that would be something else under their servers.
    """
    addresses = sorted(device.address for device in reported.devices)
    there = sorted(
        facts.address
        for facts in known.layout.devices.values()
        if facts.health != 'gone'
    )
    assert there == addresses
    refused = {
        facts.address
        for facts in known.layout.devices.values()
        if facts.health_reason.startswith('The change to')
    }
    units = sorted(
        unit.key
        for device in reported.devices
        if device.address not in refused
        for deployable in device.root.walk()
        for unit in deployable.units
    )
    free = [facts for facts in known.layout.units.values() if not facts.missing]
    assert sorted(facts.key for facts in free) == units
    for path, facts in known.layout.units.items():
        assert not facts.missing or path in known.known.held
