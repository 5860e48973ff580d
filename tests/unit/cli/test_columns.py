# SPDX-License-Identifier: Apache-2.0
"""Tests of the columns of the output."""

from cyborg_lite.cli import columns


def test_list_and_object_have_one_element_per_line() -> None:
    assert str(columns.format_value(['a', 'b'])) == 'a\nb'
    assert str(columns.format_value({'a': 1, 'b': None})) == 'a=1\nb=None'
    assert columns.format_value({'a': 1}).machine_readable() == {'a': 1}
    assert columns.format_value('text') == 'text'


def test_groups_have_one_line_each() -> None:
    groups = [{'resources:FPGA': '1', 'trait:CUSTOM_A': 'required'}, {'a': 'b'}]
    lines = str(columns.Groups(groups)).splitlines()
    assert lines == ['resources:FPGA=1, trait:CUSTOM_A=required', 'a=b']


def test_fields_of_object_omit_links() -> None:
    names, values = columns.build_fields({'uuid': 'u', 'links': [], 'tags': ['a']})
    assert names == ('uuid', 'tags')
    assert [str(value) for value in values] == ['u', 'a']


def test_rows_have_headings_and_empty_cells() -> None:
    headings, rows = columns.build_rows({'a': 'A', 'b': 'B'}, [{'a': 1}])
    assert (headings, rows) == (('A', 'B'), [(1, None)])
