# SPDX-License-Identifier: Apache-2.0
"""A device profile is read whole, or refused with the field that is wrong."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.exceptions import InvalidDeviceProfile
from cyborg_lite.model import profile_grammar
from cyborg_lite.model.device_profiles import DeviceProfile, Limits
from tests.unit.model.test_group_keys import JSON

FRESH = '47840318-1387-4d41-8b72-61a23362641d'
CHOSEN = 'd5ca2f11-3108-4426-a11c-a959987565df'
MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
GROUP = {'resources:FPGA': '1'}


def parse(wanted: object, limits: Limits | None = None) -> DeviceProfile:
    return profile_grammar.parse(
        wanted, limits or Limits(), fresh_uuid=FRESH, moment=MOMENT
    )


def refusal(wanted: object, limits: Limits | None = None) -> str:
    with pytest.raises(InvalidDeviceProfile) as caught:
        parse(wanted, limits)
    return caught.value.text


def profile(**fields: object) -> dict[str, object]:
    return {'name': 'dp1', 'groups': [GROUP], **fields}


def test_a_whole_profile_is_read() -> None:
    wanted = profile(
        description='for you',
        groups=[{'resources:FPGA': 2, 'trait:CUSTOM_A': 'required'}],
    )
    assert parse(wanted) == DeviceProfile(
        uuid=FRESH,
        name='dp1',
        description='for you',
        groups=({'resources:FPGA': '2', 'trait:CUSTOM_A': 'required'},),
        created_at=MOMENT,
    )


def test_the_client_may_choose_the_uuid() -> None:
    assert parse(profile(uuid=CHOSEN.upper())).uuid == CHOSEN
    assert parse(profile(uuid=None)).uuid == FRESH


@pytest.mark.parametrize('uuid', ['', 'x', 5, [], True])
def test_what_is_no_uuid_is_refused(uuid: object) -> None:
    assert 'uuid must be' in refusal(profile(uuid=uuid))


@pytest.mark.parametrize('name', ['a', 'A-b_9', 'x' * 255, '-', '5'])
def test_a_name_has_letters_digits_hyphens_and_underscores(name: str) -> None:
    assert parse(profile(name=name)).name == name


@pytest.mark.parametrize(
    'name',
    ['', 'a b', 'a.b', 'a\n', '\u00e9', '\u0663', 'x' * 256, None, 5, True, [], {}],
)
def test_another_name_is_refused(name: object) -> None:
    assert 'name must be a string of 1 to 255' in refusal(profile(name=name))


@pytest.mark.parametrize('text', [None, '', 'x' * 255, '\u00fcber \U0001f600\n'])
def test_a_description_is_kept_unchanged(text: str | None) -> None:
    assert parse(profile(description=text)).description == text


@pytest.mark.parametrize('text', [5, True, [], {}, 'x' * 256, 'a\0', '\udfff'])
def test_another_description_is_refused(text: object) -> None:
    assert 'description must be' in refusal(profile(description=text))


@pytest.mark.parametrize('groups', [None, [], '', 'x', {}, GROUP, 5, [GROUP] * 33])
def test_groups_are_a_list_within_the_limit(groups: object) -> None:
    assert 'groups must be a list of 1 to 32' in refusal(profile(groups=groups))


@pytest.mark.parametrize('group', [None, [], '', 5, [['resources:FPGA', 1]]])
def test_a_group_is_an_object_and_named_when_it_is_not(group: object) -> None:
    assert 'groups[1] must be an object' in refusal(profile(groups=[GROUP, group]))


@pytest.mark.parametrize(
    'group', [{}, {'trait:CUSTOM_A': 'required'}, {'accel:x': '1'}]
)
def test_a_group_that_asks_for_nothing_is_refused(group: dict[str, str]) -> None:
    assert 'groups[0] has no resources: key' in refusal(profile(groups=[group]))


def test_the_order_of_groups_is_kept() -> None:
    groups = [{'resources:FPGA': str(amount)} for amount in (3, 1, 2)]
    assert list(parse(profile(groups=groups)).groups) == groups


def test_one_key_in_two_spellings_is_refused() -> None:
    group = {**GROUP, 'trait:CUSTOM_A': 'required', 'trait:custom-a': 'forbidden'}
    assert 'groups[0] has trait:CUSTOM_A twice' in refusal(profile(groups=[group]))


def test_a_bitstream_and_a_function_at_once_are_refused() -> None:
    both = {**GROUP, 'accel:bitstream_id': CHOSEN, 'accel:function_id': 'x'}
    assert 'accel:bitstream_id and accel:function_id' in refusal(profile(groups=[both]))
    one = {**both, 'accel:function_id': None}
    assert parse(profile(groups=[one])).groups == (
        {**GROUP, 'accel:bitstream_id': CHOSEN},
    )


def test_all_groups_together_have_a_limit() -> None:
    groups = [{'resources:FPGA': 128}, {'resources:GPU': 128}]
    assert len(parse(profile(groups=groups)).groups) == 2
    groups.append({'resources:FPGA': 1})
    assert 'groups ask for 257 accelerators, at most 256' in refusal(
        profile(groups=groups)
    )


def test_every_limit_can_be_set() -> None:
    limits = Limits(groups=1, accelerators=2, name=3, description=4, value=5)
    parse(profile(name='abc', description='abcd'), limits)
    refusal(profile(name='abcd'), limits)
    refusal(profile(description='abcde'), limits)
    refusal(profile(groups=[GROUP, GROUP]), limits)
    refusal(profile(groups=[{'resources:FPGA': 3}]), limits)
    refusal(profile(groups=[{**GROUP, 'accel:x': '123456'}]), limits)


@pytest.mark.parametrize('wanted', [None, 5, 'x', [], [GROUP], True])
def test_a_profile_is_an_object(wanted: object) -> None:
    assert 'must be an object' in refusal(wanted)


def test_what_is_not_ours_is_ignored() -> None:
    assert parse(profile(created_at='x', links=5, updated_at={})).created_at == MOMENT


def test_a_name_can_be_told_before_it_is_looked_up() -> None:
    assert profile_grammar.is_name('dp-1')
    assert not profile_grammar.is_name('!@#$%^&*()=-[]')
    assert not profile_grammar.is_name('')


FIELDS = st.sampled_from(['name', 'uuid', 'description', 'groups'])
GROUPS = st.lists(
    st.dictionaries(
        st.sampled_from(
            ['resources:FPGA', 'trait:CUSTOM_A', 'accel:x', 'accel:attach_target']
        ),
        st.sampled_from(['1', 2, 'required', 'VM', None]),
    )
)


@given(st.dictionaries(FIELDS, JSON | GROUPS) | JSON)
def test_any_json_is_a_profile_or_refused(wanted: Any) -> None:
    name, reason = 'none', ''
    try:
        name = parse(wanted).name
    except InvalidDeviceProfile as error:
        reason = error.text
    assert reason.isprintable()
    assert profile_grammar.is_name(name)


@given(GROUPS)
def test_what_was_read_is_read_again_as_it_is(groups: list[dict[str, object]]) -> None:
    try:
        found = parse(profile(groups=groups))
    except InvalidDeviceProfile:
        return
    again = parse(profile(groups=list(found.groups)))
    assert again == found
