# SPDX-License-Identifier: Apache-2.0
"""Requests to the Accelerator API whose errors the ``openstack`` program prints."""

from collections.abc import Mapping
from typing import Any, Final

from osc_lib import exceptions

from cyborg_lite import api_client
from cyborg_lite.api_client import ApiError, quote_path

__all__ = ['AcceleratorApi', 'quote_path']

_NOT_FOUND: Final = 404


class AcceleratorApi(api_client.AcceleratorApi):
    """Sends requests. An error response becomes an error with one line of text."""

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        generation: int | None = None,
    ) -> Any:
        """Send a request and return the JSON of the response; None: it has no body.

        :raises CommandError: the service refuses the request
        :raises NotFound: the object does not exist
        """
        try:
            return super().call(
                method, path, query=query, body=body, generation=generation
            )
        except ApiError as error:
            raise _translate_error(error) from error


def _translate_error(error: ApiError) -> Exception:
    if error.status == _NOT_FOUND:
        return exceptions.NotFound(_NOT_FOUND, str(error))
    return exceptions.CommandError(f'{error} (HTTP {error.status})')
