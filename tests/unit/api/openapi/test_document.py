# SPDX-License-Identifier: Apache-2.0
"""Tests of the whole API document."""

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from cyborg_lite.api.microversion import (
    MAXIMUM,
    V2_0,
    V2_2,
    V2_3,
    V2_5,
    VERSIONS,
    Microversion,
)
from tests.support.api.api_document import load_document

EVERY = pytest.mark.parametrize('version', [None, *VERSIONS], ids=str)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for path, item in document['paths'].items():
        for method, operation in item.items():
            yield f'{method.upper()} {path}', operation


def resolve_reference(document: dict[str, Any], schema: dict[str, Any]) -> Any:
    name = schema['$ref'].rpartition('/')[2]
    return document['components']['schemas'][name]


# The suite conformance validates the documents of all microversions.
@pytest.mark.parametrize('version', [None, V2_0, VERSIONS[-1]], ids=str)
def test_document_is_valid_openapi(version: Microversion | None) -> None:
    errors = OpenAPIV31SpecValidator(load_document(version)).iter_errors()
    assert [(list(element.absolute_path), element.message) for element in errors] == []


def test_arguments_have_descriptions() -> None:
    undescribed = [
        f'{parameter["name"]} of {name}'
        for name, operation in operations(load_document(None))
        for parameter in operation['parameters']
        if 'name' in parameter and 'description' not in parameter
    ]
    assert not undescribed, (
        f'{undescribed}: describe them in api/schemas/arguments.yaml'
    )


def test_bodies_have_valid_examples() -> None:
    """Newcomers copy the examples, and fuzzing starts from them."""
    document = load_document(None)
    for name, operation in operations(document):
        if 'requestBody' in operation:
            content = operation['requestBody']['content']['application/json']
            schema = resolve_reference(document, content['schema'])
            assert schema.get('examples'), f'{name}: write examples into its schema'
            for example in schema['examples']:
                Draft202012Validator(schema).validate(example)


def test_operations_have_texts() -> None:
    incomplete = [
        name
        for name, operation in operations(load_document(None))
        if not (operation['summary'] and operation['description'])
    ]
    assert not incomplete, f'{incomplete}: write a docstring of two paragraphs'


def test_operations_have_examples() -> None:
    """A body has an example in one of the successful responses at least."""
    incomplete = []
    for name, operation in operations(load_document(None)):
        contents = [
            response['content']['application/json']
            for code, response in operation['responses'].items()
            if code < '300' and 'content' in response
        ]
        if contents and not any('example' in content for content in contents):
            incomplete.append(name)
    assert not incomplete, f'{incomplete}: record calls in test_api_samples.py'


@EVERY
def test_examples_match_their_schemas(version: Microversion | None) -> None:
    document = load_document(version)
    for name, operation in operations(document):
        bodies = [operation.get('requestBody', {}), *operation['responses'].values()]
        for content in (item for body in bodies for item in _list_contents(body)):
            schema = {**content['schema'], 'components': document['components']}
            errors = Draft202012Validator(schema).iter_errors(content['example'])
            for error in errors:
                pointer = '/'.join(map(str, error.absolute_path))
                raise AssertionError(f'{name} at {version}: {pointer}: {error.message}')


def _list_contents(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the media types of a body that have an example."""
    return [item for item in body.get('content', {}).values() if 'example' in item]


def test_older_documents_have_no_examples_of_responses() -> None:
    path = '/v2/devices/{uuid}'
    for version, has_example in ((V2_3, False), (MAXIMUM, True), (None, True)):
        responses = load_document(version)['paths'][path]['get']['responses']
        assert ('example' in responses['200']['content']['application/json']) is (
            has_example
        )


def test_replaced_operation_is_deprecated_then_absent() -> None:
    path = '/v2/device_profiles'
    for version in (V2_0, None):
        operation = load_document(version)['paths'][path]['delete']
        assert operation['deprecated']
        assert operation['x-openstack']['max-ver'] == '2.4'
    assert 'delete' not in load_document(V2_5)['paths'][path]
    assert 'deprecated' not in load_document(None)['paths'][path]['get']


def test_document_omits_newer_operations() -> None:
    assert '/v2/services' not in load_document(V2_3)['paths']
    paths = load_document(V2_0)['paths']
    assert 'patch' not in paths['/v2/device_profiles/{device_profile}']
    names = [
        element.get('name') for element in paths['/v2/devices']['get']['parameters']
    ]
    assert ('vendor' in names, 'health' in names) == (True, False)


def test_document_of_version_requires_fields() -> None:
    fields = {
        version: load_document(version)['components']['schemas']['Device']
        for version in (V2_2, V2_3, None)
    }
    assert 'status' not in fields[V2_2]['properties']
    assert 'status' in fields[V2_3]['required']
    assert 'status' not in fields[None]['required']
    status = fields[None]['properties']['status']
    assert status['x-openstack'] == {'min-ver': '2.3'}
