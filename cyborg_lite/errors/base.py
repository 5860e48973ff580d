# SPDX-License-Identifier: Apache-2.0
"""Base classes of all errors, one for each kind of HTTP answer."""

from typing import ClassVar


class CyborgError(Exception):
    """The request failed, and no other error describes the cause."""

    # RPC transfers an error by its class and fields.

    code: ClassVar[int] = 500
    message: ClassVar[str] = 'The service failed to handle the request.'
    advice: str = 'Search the log of the conductor for the request id.'

    def __init__(self, *_args: object, **fields: object) -> None:
        # oslo.messaging rebuilds an error from `args`, not needed here, and `kwargs`.
        self.kwargs = fields
        text = self.message.format(**fields).encode(errors='replace').decode()
        self.text = text.replace('\0', '?')  # text that every database can store
        self.advice = self.advice.format(**fields)
        super().__init__(self.text)

    @property
    def full_text(self) -> str:
        """Text and advice. A text from a library may have no full stop."""
        return f'{self.text.removesuffix(".")}. {self.advice}'


class InvalidInput(CyborgError):
    """The request or message contains an invalid value."""

    code = 400
    message = '{reason}'
    advice = 'Correct the request.'


class Forbidden(CyborgError):
    """The caller is not allowed to perform the operation."""

    code = 403
    message = '{reason}'
    advice = 'Check the roles of the caller and the policy file.'


class NotFound(CyborgError):
    """The object does not exist, or the caller may not see it."""

    code = 404
    message = '{what} {name} not found.'
    advice = 'List the collection to see the existing objects.'


class Conflict(CyborgError):
    """The current state of an object does not allow the operation."""

    code = 409
    message = '{reason}'
    advice = 'Check the state of the object, then retry.'
