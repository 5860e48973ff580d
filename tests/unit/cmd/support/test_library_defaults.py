# SPDX-License-Identifier: Apache-2.0
"""Tests of the defaults of libraries in the sample configuration."""

from pathlib import Path

from cyborg_lite.cmd.support import library_defaults

SAMPLE = Path(__file__).parents[4] / 'etc' / 'cyborg-lite.conf.sample'


def test_sample_shows_defaults_of_this_service() -> None:
    library_defaults.set_all()
    text = SAMPLE.read_text()
    assert '#control_exchange = cyborg_lite' in text
    assert '#control_exchange = openstack' not in text
