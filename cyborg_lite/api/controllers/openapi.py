# SPDX-License-Identifier: Apache-2.0
"""The API document."""

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, VERSIONS, Microversion
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.text import format_value


class OpenApiDocument(Resource):
    """``/v2/openapi.json``"""

    @expose(errors=(400,))
    @accepts(arguments=('microversion',))
    def get(self, call: Call) -> bytes:
        """Show the API document of one microversion, or of all of them.

        The document follows OpenAPI 3.1. No token is required.
        """
        version = _parse_version(call.arguments.get('microversion', ''))
        return self.context.encode_document(version, call.links.base)


def _parse_version(text: str) -> Microversion | None:
    """Return the microversion; None: all of them.

    :raises InvalidInput: the microversion is not supported
    """
    if not text:
        return None
    for version in VERSIONS:
        if str(version) == text:
            return version
    raise InvalidInput(
        reason=f'microversion must be one of {MINIMUM} to {MAXIMUM}, '
        f'not {format_value(text)}.'
    )
