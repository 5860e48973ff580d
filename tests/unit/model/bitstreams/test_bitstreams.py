# SPDX-License-Identifier: Apache-2.0
"""Tests of the validation of bitstream images and their properties."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cyborg_lite.errors.bitstreams import BitstreamRefused
from cyborg_lite.model.bitstreams import bitstreams
from tests.builders.bitstream_files import LARGEST, OTHER_FUNCTION, image

_KEYS = (
    'bs-name',
    'vendor',
    'board',
    'version',
    'shell_id',
    'topology',
    'function_uuid',
)


def test_parse_bitstream_accepts_legacy_function_key() -> None:
    properties = {'function_uuid': None, 'accel:function_id': OTHER_FUNCTION}
    assert (
        bitstreams.parse_bitstream(image(properties=properties), LARGEST).function_id
        == OTHER_FUNCTION
    )


@pytest.mark.parametrize(
    'key',
    [
        'bs-name',
        'bs-uuid',
        'vendor',
        'board',
        'version',
        'driver_ver',
        'driver_path',
        'function_uuid',
    ],
)
@pytest.mark.parametrize('value', [None, ''])
def test_list_image_faults_names_missing_required_property(
    key: str, value: str | None
) -> None:
    faults = bitstreams.list_image_faults(image(properties={key: value}), LARGEST)
    assert faults == (f'It lacks {key}.',)


@pytest.mark.parametrize(
    'key', ['driver', 'topology', 'description', 'region_uuid', 'function_name']
)
def test_list_image_faults_allows_missing_optional_property(key: str) -> None:
    assert bitstreams.list_image_faults(image(properties={key: None}), LARGEST) == ()


@pytest.mark.parametrize(
    ('changes', 'fault'),
    [
        ({'tags': ('fpga',)}, 'It is not tagged FPGA.'),
        ({'status': 'queued'}, 'Its status is queued, not active.'),
        ({'id': '../x'}, 'Its id is not a UUID.'),
        ({'name': '../../etc/shadow'}, 'looks like a path'),
        ({'name': 'a\nb'}, 'looks like a path'),
        ({'size': None}, 'It is empty.'),
        ({'size': LARGEST + 1}, 'more than the 1048576 allowed'),
        ({'hash_algo': None}, 'Its os_hash_algo is not one of'),
        (
            {'hash_algo': 'md5', 'hash_value': 'a' * 32},
            'Its os_hash_algo is not one of',
        ),
        ({'hash_value': None}, 'not a sha512 digest'),
        ({'hash_value': 'ab'}, 'not a sha512 digest'),
        ({'hash_value': '/' * 128}, 'not a sha512 digest'),
    ],
)
def test_list_image_faults_names_invalid_file_attributes(
    changes: dict[str, Any], fault: str
) -> None:
    (fault_text,) = bitstreams.list_image_faults(image(**changes), LARGEST)
    assert fault in fault_text


@pytest.mark.parametrize('key', ['bs-uuid', 'region_uuid', 'function_uuid'])
def test_list_image_faults_rejects_invalid_uuid(key: str) -> None:
    (fault,) = bitstreams.list_image_faults(image(properties={key: 'not-one'}), LARGEST)
    assert fault == f'Its {key} not-one is not a UUID.'


@given(some.dictionaries(some.sampled_from(_KEYS), some.text(max_size=300)))
def test_parse_bitstream_arbitrary_properties_returns_or_raises(
    properties: dict[str, str],
) -> None:
    sound = image()
    changed = replace(sound, properties={**sound.properties, **properties})
    try:
        read = bitstreams.parse_bitstream(changed, LARGEST)
    except BitstreamRefused:
        return
    for text in (read.name, read.vendor, read.board, read.version):
        assert text[0].isalnum()
        assert '/' not in text


@given(some.uuids())
def test_normalize_id_maps_spellings_to_one_id(value: Any) -> None:
    spellings = {str(value), value.hex, str(value).upper(), f'0x{value.hex}'}
    assert {bitstreams.normalize_id(text) for text in spellings} == {value.hex}
