# SPDX-License-Identifier: Apache-2.0
"""Properties that hold for any sequence of host reports and claims."""

from hypothesis import given, settings
from hypothesis import strategies as st

from cyborg_lite.model.inventory.host_report import Device, HostReport
from tests.builders.reports import card, report, with_parts
from tests.doubles.host_store import StoredHost


@st.composite
def _devices(draw: st.DrawFn) -> list[Device]:
    """Generate devices in up to four slots, with and without unique serial numbers."""
    serials = draw(st.permutations(['a', 'b', 'c', None, None]))
    slots = draw(st.lists(st.sampled_from([1, 2, 3, 4]), unique=True, max_size=4))
    devices = []
    for slot, serial in zip(slots, serials, strict=False):
        device = card(slot, handles=draw(st.integers(1, 3)), serial=serial)
        names = draw(st.lists(st.sampled_from('xyz'), unique=True, max_size=2))
        devices.append(with_parts(device, *names))
    return devices


_REPORTS = _devices().map(lambda devices: report(*devices))


@settings(deadline=None)
@given(st.lists(st.tuples(_REPORTS, st.randoms(use_true_random=False)), max_size=6))
def test_reports_in_any_order_preserve_invariants(
    steps: list[tuple[HostReport, object]],
) -> None:
    stored_host = StoredHost()
    for reported, random in steps:
        claimed = stored_host.inventory.claimed
        before = {path: stored_host.inventory.names[path[:2]] for path in claimed}
        changes = stored_host.report(reported)
        _check_claimed(stored_host, claimed, changes.handles.removed, before)
        _check_consistent(stored_host)
        assert not stored_host.report(reported), 'a repeated report must change nothing'
        _check_reported(stored_host, reported)
        paths = sorted(stored_host.layout.handles)
        chosen = random.sample(paths, random.randint(0, len(paths)))  # type: ignore[attr-defined]  # a Random
        stored_host.claim(*chosen)


def _check_claimed(
    stored_host: StoredHost,
    claimed: frozenset[tuple[str, str, str]],
    removed: frozenset[tuple[str, str, str]],
    names: dict[tuple[str, str, str], str],
) -> None:
    assert not claimed & removed
    assert len(stored_host.inventory.claimed) == len(claimed)
    # The provider of an allocation exists under the same name.
    assert set(names.values()) <= set(stored_host.inventory.names.values())


def _check_consistent(stored_host: StoredHost) -> None:
    layout = stored_host.layout
    for identity, suffix in layout.deployables:
        assert identity in layout.devices
        parent = layout.deployables[identity, suffix].parent
        assert parent is None or (identity, parent) in layout.deployables
    for path in [*layout.handles, *layout.attributes]:
        assert path[:2] in layout.deployables
    names = list(stored_host.inventory.names.values())
    assert len(names) == len(set(names)), 'names are unique'
    assert set(stored_host.inventory.names) == set(layout.deployables)


def _check_reported(stored_host: StoredHost, reported: HostReport) -> None:
    """Check that reported objects exist once and other objects are claimed and missing.

    Devices whose class change is refused are exempt.
    """
    addresses = sorted(device.control_address for device in reported.devices)
    present = sorted(
        facts.control_address
        for facts in stored_host.layout.devices.values()
        if facts.health != 'gone'
    )
    assert present == addresses
    refused = {
        facts.control_address
        for facts in stored_host.layout.devices.values()
        if facts.health_reason.startswith('The change to')
    }
    keys = sorted(
        handle.key
        for device in reported.devices
        if device.control_address not in refused
        for deployable in device.root.walk()
        for handle in deployable.handles
    )
    available = [
        facts for facts in stored_host.layout.handles.values() if not facts.missing
    ]
    assert sorted(facts.key for facts in available) == keys
    for path, facts in stored_host.layout.handles.items():
        assert not facts.missing or path in stored_host.inventory.claimed
