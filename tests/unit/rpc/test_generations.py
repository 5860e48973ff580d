# SPDX-License-Identifier: Apache-2.0
"""Tests of the generation as an argument of calls."""

from cyborg_lite.rpc.generations import expect_generation


def test_call_without_generation_keeps_version() -> None:
    """A conductor of an earlier release can serve the call."""
    assert expect_generation(None, '1.3') == {'since': '1.3'}


def test_call_with_generation_requires_conductor_that_checks_it() -> None:
    for generation in (0, 7):
        arguments = expect_generation(generation, '1.3')
        assert arguments == {'since': '1.17', 'generation': generation}
