# SPDX-License-Identifier: Apache-2.0
"""Tests of the recorded calls."""

from cyborg_lite.api.openapi.examples import Sample, load_sample


def test_load_sample_with_bodies() -> None:
    sample = load_sample('create_accelerator_request')
    assert sample is not None
    assert (sample.status, sample.request_body) == (
        201,
        {'device_profile_name': 'fpga'},
    )
    assert list(sample.response_body) == ['arqs']


def test_load_sample_without_bodies() -> None:
    assert load_sample('delete_attribute') == Sample(204)


def test_load_sample_of_unknown_operation_is_none() -> None:
    assert load_sample('get_v2_nothing') is None
