# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI documents of all microversions."""

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from cyborg_lite.api.microversion import VERSIONS, Microversion
from tests.support.api.api_document import load_document


@pytest.mark.parametrize('version', VERSIONS, ids=str)
def test_document_is_valid_openapi(version: Microversion) -> None:
    errors = OpenAPIV31SpecValidator(load_document(version)).iter_errors()
    assert [(list(element.absolute_path), element.message) for element in errors] == []
