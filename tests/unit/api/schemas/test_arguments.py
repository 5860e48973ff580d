# SPDX-License-Identifier: Apache-2.0
"""Tests of the descriptions of path and query arguments."""

import re

import pytest
from jsonschema import Draft202012Validator

from cyborg_lite.api.microversion import VERSIONS
from cyborg_lite.api.routes import ROUTES
from cyborg_lite.api.schemas.arguments import IN_PATH, IN_QUERY, Parameter

ALL = [*IN_PATH.items(), *IN_QUERY.items()]


@pytest.mark.parametrize(('name', 'parameter'), ALL, ids=lambda item: str(item)[:20])
def test_parameter_has_sentence_and_valid_schema(
    name: str, parameter: Parameter
) -> None:
    assert parameter['description'][0].isupper(), name
    assert parameter['description'].endswith('.')
    Draft202012Validator.check_schema(parameter['schema'])


def test_every_path_parameter_of_routes_is_described() -> None:
    names = {name for path in ROUTES for name in re.findall('{(.*?)}', path)}
    assert names == IN_PATH.keys()


def test_microversion_argument_lists_supported_versions() -> None:
    versions = [str(version) for version in VERSIONS]
    assert IN_QUERY['microversion']['schema']['enum'] == versions


def test_arqs_argument_is_list_separated_by_commas() -> None:
    parameter = IN_QUERY['arqs']
    assert parameter['schema']['type'] == 'array'
    assert (parameter['style'], parameter['explode']) == ('form', False)


@pytest.mark.parametrize('name', ['deployable_id', 'device_id'])
@pytest.mark.parametrize(
    ('value', 'is_valid'),
    [(0, True), (-(2**31), True), (2**31 - 1, True), (2**31, False), ('1', False)],
)
def test_row_id_has_range_of_database_column(
    name: str, value: object, is_valid: bool
) -> None:
    validator = Draft202012Validator(IN_QUERY[name]['schema'])
    assert validator.is_valid(value) is is_valid
