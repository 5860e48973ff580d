# SPDX-License-Identifier: Apache-2.0
"""The whole document: that it is one, and that nothing is missing."""

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from cyborg_lite.api.microversion import V2_0, V2_2, V2_3, VERSIONS, Microversion
from tests.unit.api.described import document_of

EVERY = pytest.mark.parametrize('version', [None, *VERSIONS], ids=str)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for path, item in document['paths'].items():
        for method, operation in item.items():
            yield f'{method.upper()} {path}', operation


@EVERY
def test_it_is_a_document_of_openapi(version: Microversion | None) -> None:
    errors = OpenAPIV31SpecValidator(document_of(version)).iter_errors()
    assert [(list(one.absolute_path), one.message) for one in errors] == []


def test_every_argument_is_described() -> None:
    silent = [
        f'{parameter["name"]} of {name}'
        for name, operation in operations(document_of(None))
        for parameter in operation['parameters']
        if 'name' in parameter and 'description' not in parameter
    ]
    assert not silent, f'{silent}: describe them in api/schemas/arguments.py'


def test_every_body_has_an_example_that_fits() -> None:
    """It is what newcomers copy, and where a search for faults begins."""
    for name, operation in operations(document_of(None)):
        if 'requestBody' in operation:
            schema = operation['requestBody']['content']['application/json']['schema']
            assert schema.get('examples'), f'{name}: write examples into its schema'
            for example in schema['examples']:
                Draft202012Validator(schema).validate(example)


def test_operations_have_names_of_their_own() -> None:
    names = [one['operationId'] for _, one in operations(document_of(None))]
    assert len(names) == len(set(names))


def test_what_is_newer_than_the_version_is_left_out() -> None:
    assert '/v2/services' not in document_of(V2_3)['paths']
    paths = document_of(V2_0)['paths']
    assert 'patch' not in paths['/v2/device_profiles/{device_profile}']
    known = [one.get('name') for one in paths['/v2/devices']['get']['parameters']]
    assert ('vendor' in known, 'health' in known) == (True, False)


def test_a_client_of_one_version_knows_what_it_will_find() -> None:
    fields = {
        version: document_of(version)['components']['schemas']['Device']
        for version in (V2_2, V2_3, None)
    }
    assert 'status' not in fields[V2_2]['properties']
    assert 'status' in fields[V2_3]['required']
    assert 'status' not in fields[None]['required']
    shown = fields[None]['properties']['status']
    assert shown['x-openstack'] == {'min-ver': '2.3'}
