# SPDX-License-Identifier: Apache-2.0
"""Every fault of an image is told at once, and only a sound one is read."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cyborg_lite.exceptions import BitstreamRefused
from cyborg_lite.model import bitstreams
from tests.fakes.bitstream_files import LARGEST, OTHER_FUNCTION, image

_KEYS = (
    'bs-name',
    'vendor',
    'board',
    'version',
    'shell_id',
    'topology',
    'function_uuid',
)


def test_a_sound_image_is_read() -> None:
    found = bitstreams.read(image(), LARGEST)
    assert found.name == 'nlb-0'
    assert found.function_id == OTHER_FUNCTION
    assert found.shell_id == '113000200000177'
    assert not found.is_shell


def test_without_a_shell_it_is_one_itself() -> None:
    assert bitstreams.read(image(properties={'shell_id': None}), LARGEST).is_shell


def test_the_older_key_of_the_function_will_do() -> None:
    said = {'function_uuid': None, 'accel:function_id': OTHER_FUNCTION}
    assert (
        bitstreams.read(image(properties=said), LARGEST).function_id == OTHER_FUNCTION
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
def test_what_is_required_is_missed(key: str, value: str | None) -> None:
    found = bitstreams.faults(image(properties={key: value}), LARGEST)
    assert found == (f'It lacks {key}.',)


@pytest.mark.parametrize(
    'key', ['driver', 'topology', 'description', 'region_uuid', 'function_name']
)
def test_what_is_optional_is_not(key: str) -> None:
    assert bitstreams.faults(image(properties={key: None}), LARGEST) == ()


@pytest.mark.parametrize(
    ('changes', 'fault'),
    [
        ({'tags': ('fpga',)}, 'It is not tagged FPGA.'),
        ({'status': 'queued'}, 'Its status is queued, not active.'),
        ({'id': '../x'}, 'Its id is no UUID.'),
        ({'name': '../../etc/shadow'}, 'looks like a path'),
        ({'name': 'a\nb'}, 'looks like a path'),
        ({'size': None}, 'It is empty.'),
        ({'size': LARGEST + 1}, 'more than the 1048576 allowed'),
        ({'hash_algo': None}, 'Its os_hash_algo is none of'),
        ({'hash_algo': 'md5', 'hash_value': 'a' * 32}, 'Its os_hash_algo is none of'),
        ({'hash_value': None}, 'no sha512 digest'),
        ({'hash_value': 'ab'}, 'no sha512 digest'),
        ({'hash_value': '/' * 128}, 'no sha512 digest'),
    ],
)
def test_what_is_wrong_with_the_file_is_told(
    changes: dict[str, Any], fault: str
) -> None:
    (found,) = bitstreams.faults(image(**changes), LARGEST)
    assert fault in found


@pytest.mark.parametrize(
    'value',
    [
        '../x',
        '/etc/passwd',
        '-rf',
        'a b',
        'a..b',
        'a\n',
        'a\0',
        '$(id)',
        'x' * 256,
        'ä',
    ],
)
@pytest.mark.parametrize('key', ['bs-name', 'vendor', 'board', 'version', 'shell_id'])
def test_a_value_that_could_be_more_than_a_word_is_refused(
    key: str, value: str
) -> None:
    (found,) = bitstreams.faults(image(properties={key: value}), LARGEST)
    assert f'Its {key} ' in found
    assert '\n' not in found


@pytest.mark.parametrize('key', ['bs-uuid', 'region_uuid', 'function_uuid'])
def test_an_id_must_be_a_uuid(key: str) -> None:
    (found,) = bitstreams.faults(image(properties={key: 'not-one'}), LARGEST)
    assert found == f'Its {key} not-one is not a UUID.'


def test_all_faults_are_told_together() -> None:
    wrong = image(
        tags=(), size=None, hash_value='', properties={'vendor': None, 'board': '/'}
    )
    assert len(bitstreams.faults(wrong, LARGEST)) == 5
    with pytest.raises(BitstreamRefused) as caught:
        bitstreams.read(wrong, LARGEST)
    assert 'not tagged' in caught.value.text
    assert 'It lacks vendor' in caught.value.text


@given(some.dictionaries(some.sampled_from(_KEYS), some.text(max_size=300)))
def test_whatever_is_said_is_read_or_refused(said: dict[str, str]) -> None:
    sound = image()
    found = replace(sound, properties={**sound.properties, **said})
    try:
        read = bitstreams.read(found, LARGEST)
    except BitstreamRefused:
        return
    for text in (read.name, read.vendor, read.board, read.version):
        assert text[0].isalnum()
        assert '/' not in text


@given(some.uuids())
def test_every_spelling_of_an_id_is_one_id(value: Any) -> None:
    spellings = {str(value), value.hex, str(value).upper(), f'0x{value.hex}'}
    assert {bitstreams.normal_id(each) for each in spellings} == {value.hex}
