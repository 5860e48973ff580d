# SPDX-License-Identifier: Apache-2.0
"""The API document."""

from typing import Any

from cyborg_lite.api.call import Call
from cyborg_lite.api.expose import accepts, expose
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM, VERSIONS, Microversion
from cyborg_lite.api.openapi import document
from cyborg_lite.api.resource import Backing, Resource
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.text import shown


class OpenApi(Resource):
    """``/v2/openapi.json``"""

    def __init__(self, backing: Backing, root: Resource) -> None:
        """:param root: what the document describes"""
        super().__init__(backing)
        self._root = root
        self._made: dict[str, dict[str, Any]] = {}  # it takes a while; by microversion

    @expose(dict, errors=(400,))
    @accepts(arguments=('microversion',))
    def get(self, call: Call) -> dict[str, Any]:
        asked = call.arguments.get('microversion', '')
        if asked not in self._made:
            self._made[asked] = document.build(self._root, _version(asked))
        return {**self._made[asked], 'servers': [{'url': call.links.base}]}


def _version(asked: str) -> Microversion | None:
    """None: all of them.

    :raises InvalidInput: it is none of ours
    """
    if not asked:
        return None
    for version in VERSIONS:
        if str(version) == asked:
            return version
    raise InvalidInput(
        reason=f'microversion must be one of {MINIMUM} to {MAXIMUM}: '
        f'{shown(asked)} is none.'
    )
