# SPDX-License-Identifier: Apache-2.0
"""Requests to the Accelerator API whose errors the ``openstack`` program prints."""

from collections.abc import Mapping
from typing import Any, Final

from osc_lib import exceptions

from cyborg_lite import api_client
from cyborg_lite.api_client import ApiError, quote_path

__all__ = ['AcceleratorApi', 'build_patch', 'quote_path']

_NOT_FOUND: Final = 404


class AcceleratorApi(api_client.AcceleratorApi):
    """Sends requests. An error response becomes an error with one line of text."""

    # Any: JSON, and the options of the base class.
    def call(self, method: str, path: str, **options: Any) -> Any:
        """Send a request, as the base class does.

        :raises CommandError: the service refuses the request
        :raises NotFound: the object does not exist
        """
        try:
            return super().call(method, path, **options)
        except ApiError as error:
            if error.status == _NOT_FOUND:
                raise exceptions.NotFound(_NOT_FOUND, str(error)) from error
            text = f'{error} (HTTP {error.status})'
            raise exceptions.CommandError(text) from error

    def read(self, path: str) -> dict[str, Any]:
        """Return the object of a path."""
        content: dict[str, Any] = self.call('GET', path)
        return content


def build_patch(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the patch that sets the values of fields."""
    return [
        {'op': 'replace', 'path': f'/{name}', 'value': value}
        for name, value in values.items()
    ]
