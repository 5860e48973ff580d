# SPDX-License-Identifier: Apache-2.0
"""Tests of the validation of device profiles in requests."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model.profiles import grammar
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, Limits
from tests.builders.json_values import ANY_JSON

NEW_UUID = '47840318-1387-4d41-8b72-61a23362641d'
CLIENT_UUID = 'd5ca2f11-3108-4426-a11c-a959987565df'
CREATED_AT = datetime(2026, 11, 21, tzinfo=UTC)
GROUP = {'resources:FPGA': '1'}


def parse(request_body: object, limits: Limits | None = None) -> DeviceProfile:
    return grammar.parse_profile(
        request_body, limits or Limits(), fresh_uuid=NEW_UUID, moment=CREATED_AT
    )


def parse_error(request_body: object, limits: Limits | None = None) -> str:
    with pytest.raises(InvalidDeviceProfile) as caught:
        parse(request_body, limits)
    return caught.value.text


def profile(**fields: object) -> dict[str, object]:
    return {'name': 'dp1', 'groups': [GROUP], **fields}


@pytest.mark.parametrize('name', ['a', 'A-b_9', 'x' * 255, '-', '5'])
def test_parse_profile_accepts_valid_names(name: str) -> None:
    assert parse(profile(name=name)).name == name


def test_parse_profile_duplicate_key_spellings_raise() -> None:
    group = {**GROUP, 'trait:CUSTOM_A': 'required', 'trait:custom-a': 'forbidden'}
    assert 'groups[0] has trait:CUSTOM_A twice' in parse_error(profile(groups=[group]))


def test_parse_profile_bitstream_and_function_raise() -> None:
    group = {**GROUP, 'accel:bitstream_id': CLIENT_UUID, 'accel:function_id': 'x'}
    assert 'accel:bitstream_id and accel:function_id' in parse_error(
        profile(groups=[group])
    )
    single = {**group, 'accel:function_id': None}
    assert parse(profile(groups=[single])).groups == (
        {**GROUP, 'accel:bitstream_id': CLIENT_UUID},
    )


def test_parse_profile_too_many_accelerators_raises() -> None:
    groups = [{'resources:FPGA': 128}, {'resources:GPU': 128}]
    assert len(parse(profile(groups=groups)).groups) == 2
    groups.append({'resources:FPGA': 1})
    assert 'groups request 257 accelerators, at most 256' in parse_error(
        profile(groups=groups)
    )


def test_parse_profile_applies_configured_limits() -> None:
    limits = Limits(groups=1, accelerators=2, name=3, description=4, value=5)
    parse(profile(name='abc', description='abcd'), limits)
    parse_error(profile(name='abcd'), limits)
    parse_error(profile(description='abcde'), limits)
    parse_error(profile(groups=[GROUP, GROUP]), limits)
    parse_error(profile(groups=[{'resources:FPGA': 3}]), limits)
    parse_error(profile(groups=[{**GROUP, 'accel:x': '123456'}]), limits)


FIELDS = st.sampled_from(['name', 'uuid', 'description', 'groups'])
GROUPS = st.lists(
    st.dictionaries(
        st.sampled_from(
            ['resources:FPGA', 'trait:CUSTOM_A', 'accel:x', 'accel:attach_target']
        ),
        st.sampled_from(['1', 2, 'required', 'VM', None]),
    )
)


@given(st.dictionaries(FIELDS, ANY_JSON | GROUPS) | ANY_JSON)
def test_parse_profile_arbitrary_json_returns_or_raises(request_body: Any) -> None:
    name, reason = 'none', ''
    try:
        name = parse(request_body).name
    except InvalidDeviceProfile as error:
        reason = error.text
    assert reason.isprintable()
    assert grammar.is_valid_name(name)


@given(GROUPS)
def test_parse_profile_is_idempotent(groups: list[dict[str, object]]) -> None:
    try:
        parsed_profile = parse(profile(groups=groups))
    except InvalidDeviceProfile:
        return
    reparsed_profile = parse(profile(groups=list(parsed_profile.groups)))
    assert reparsed_profile == parsed_profile
