# SPDX-License-Identifier: Apache-2.0
"""Errors of the API by what Horizon does with them.

The settings of Horizon load this module, so it imports nothing of Django.
"""

from typing import Final

from cyborg_lite.api_client import ApiError


class ObjectNotFound(ApiError):
    """The object does not exist, or the user may not see it."""


class TokenRejected(ApiError):
    """The token has expired; Horizon asks the user to log in again."""


RECOVERABLE: Final = (ApiError,)
NOT_FOUND: Final = (ObjectNotFound,)
UNAUTHORIZED: Final = (TokenRejected,)
