# SPDX-License-Identifier: Apache-2.0
"""Tests that messages and state files of the previous revision keep their format.

``previous_revision/`` has samples of the code of that revision: one full and one
minimal message of each class, by the name that the class had, and the state files of an
agent.
"""

import enum
import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.journal import Journal
from cyborg_lite.agent.loaded_bitstreams import LoadedBitstreams
from cyborg_lite.model.arqs import Actor, Arq, Binding, State, Step
from cyborg_lite.model.bitstream_list import ListedBitstream
from cyborg_lite.model.bitstreams import Bitstream, LoadOrder
from cyborg_lite.model.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.devices import (
    AllocatedHandle,
    Attribute,
    DeployableRecord,
    DeviceRecord,
    DeviceStatus,
)
from cyborg_lite.model.explanations import (
    Explanation,
    FitResult,
    GroupFit,
    HostFit,
    Reason,
    ReasonCode,
)
from cyborg_lite.model.host_events import HostEvent, HostEventKind
from cyborg_lite.model.inventory import (
    AttachHandle,
    Deployable,
    Device,
    HandleType,
    Health,
    HostReport,
)
from cyborg_lite.model.program_jobs import ProgramJob, ProgramState, ProgramStep
from cyborg_lite.model.queries import Query
from cyborg_lite.model.services import HeartbeatDetails, Service, ServiceState
from cyborg_lite.model.usage import Usage
from cyborg_lite.rpc import wire

SAMPLES: Final = Path(__file__).parent / 'previous_revision'
MESSAGES: Final = json.loads((SAMPLES / 'messages.json').read_text())

# The class of today, by the name that it had in the previous revision.
CLASSES: Final[dict[str, type[Any]]] = {
    'Actor': Actor,
    'Arq': Arq,
    'Attribute': Attribute,
    'Binding': Binding,
    'Bitstream': Bitstream,
    'Deployable': Deployable,
    'DeployableRecord': DeployableRecord,
    'Device': Device,
    'DeviceProfile': DeviceProfile,
    'DeviceRecord': DeviceRecord,
    'DeviceStatus': DeviceStatus,
    'Explanation': Explanation,
    'GroupVerdict': GroupFit,
    'HandleType': HandleType,
    'Health': Health,
    'HeldHandle': AllocatedHandle,
    'HostEvent': HostEvent,
    'HostEventKind': HostEventKind,
    'HostReport': HostReport,
    'HostVerdict': HostFit,
    'ListedBitstream': ListedBitstream,
    'LoadOrder': LoadOrder,
    'ProfileChange': ProfileChange,
    'ProgramJob': ProgramJob,
    'ProgramState': ProgramState,
    'ProgramStep': ProgramStep,
    'Query': Query,
    'Reason': Reason,
    'Service': Service,
    'ServiceState': ServiceState,
    'State': State,
    'Step': Step,
    'Unit': AttachHandle,
    'Usage': Usage,
    'Verdict': FitResult,
    'Vitals': HeartbeatDetails,
    'Why': ReasonCode,
}
ENUMERATIONS: Final = sorted(name for name in MESSAGES if 'values' in MESSAGES[name])
DATA_CLASSES: Final = sorted(name for name in MESSAGES if 'full' in MESSAGES[name])


def _read_content(path: Path) -> Any:
    """Return the JSON value in a state file."""
    return json.loads(path.read_text())


def _copy_samples(directory: Path) -> Path:
    return Path(shutil.copytree(SAMPLES, directory / 'samples'))


def _drop_new_fields(value: Any, sample: Any) -> Any:
    """Return a JSON value without the keys that the sample lacks."""
    if isinstance(value, dict) and isinstance(sample, dict):
        return {
            key: _drop_new_fields(value[key], sample[key])
            for key in value.keys() & sample.keys()
        }
    is_list = isinstance(value, list) and isinstance(sample, list)
    if is_list and len(value) == len(sample):
        return list(map(_drop_new_fields, value, sample))
    return value


def test_samples_every_class_is_mapped() -> None:
    assert set(CLASSES) == set(MESSAGES)


@pytest.mark.parametrize('kind', ['full', 'minimal'])
@pytest.mark.parametrize('name', DATA_CLASSES)
def test_load_previous_message_dumps_identically(name: str, kind: str) -> None:
    sample = MESSAGES[name][kind]
    message = wire.dump(wire.load(CLASSES[name], sample))
    assert _drop_new_fields(message, sample) == sample


@pytest.mark.parametrize('name', ENUMERATIONS)
def test_enumeration_keeps_previous_values(name: str) -> None:
    cls = CLASSES[name]
    assert issubclass(cls, enum.Enum)
    assert {member.value for member in cls} >= set(MESSAGES[name]['values'])


def test_cache_previous_files_are_rewritten_identically(tmp_path: Path) -> None:
    previous = Cache(_copy_samples(tmp_path))
    previous.open()
    current = Cache(tmp_path)
    current.save_results(previous.results or ())
    current.add_handles(entry.handle for entry in previous.handles.values())
    for uuid, entry in previous.handles.items():
        if entry.boot_id is not None:
            current.mark_prepared([uuid], entry.boot_id)
    for name in ('findings.json', 'handles.json'):
        sample = _read_content(SAMPLES / name)
        assert _drop_new_fields(_read_content(tmp_path / name), sample) == sample


def test_journal_previous_file_keeps_unsent_events(tmp_path: Path) -> None:
    content = _read_content(SAMPLES / 'journal.json')['content']
    directory = _copy_samples(tmp_path)
    journal = Journal(directory)
    journal.open()
    assert wire.dump(list(journal.list_unsent(10))) == content['events']
    journal.acknowledge(1)
    assert _read_content(directory / 'journal.json') == {
        'v': 1,
        'content': {**content, 'events': content['events'][1:]},
    }


def test_loaded_bitstreams_previous_file_is_rewritten_identically(
    tmp_path: Path,
) -> None:
    directory = _copy_samples(tmp_path)
    content = _read_content(SAMPLES / 'loaded.json')
    (region,) = (name for name, entry in content.items() if entry['trouble'])
    LoadedBitstreams(directory).record_failure(region, content[region]['trouble'])
    assert _read_content(directory / 'loaded.json') == content
