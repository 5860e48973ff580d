# SPDX-License-Identifier: Apache-2.0
"""Errors of HTTP requests that no object of the service causes."""

from cyborg_lite.errors.base import Conflict, CyborgError, Forbidden, InvalidInput


class InvalidBody(InvalidInput):
    """The request body violates the schema of the operation.

    The error names the first bad value in ``pointer``, a JSON pointer.
    """

    message = '{place} {violation}.'


class InvalidJsonPatch(InvalidInput):
    """An operation of a JSON Patch cannot be applied to the object.

    The error names the operation in ``pointer``, a JSON pointer into the request body.
    """

    message = 'Invalid JSON Patch: {place}: {reason}.'


class PatchTestFailed(Conflict):
    """The operation test of a JSON Patch finds another value, or none.

    The error names the operation in ``pointer``, as for an invalid JSON Patch.
    """

    message = 'The value of {path} is not that of the operation test.'
    advice = 'Read the object again, then repeat the change with its values.'


class Unauthenticated(CyborgError):
    """The request has no token, or the token is not valid."""

    code = 401
    message = 'The request requires a valid token in the header X-Auth-Token.'
    advice = 'Request a token from Keystone, then repeat the request.'


class PolicyForbids(Forbidden):
    """A policy rule rejects the caller."""

    message = "Policy doesn't allow {rule} to be performed."


class ServiceTokenRequired(Forbidden):
    """The operation on ARQs of an instance requires a service token, as Nova sends."""

    message = (
        '{action} requires a service token: accelerators of instances are managed '
        'through the Compute API.'
    )
    advice = (
        'Set [service_user] send_service_user_token = true in nova.conf and assign '
        'the service role to the user of Nova.'
    )


class MethodNotAllowed(CyborgError):
    """The resource does not support the HTTP method."""

    code = 405
    message = 'The method {method} is not allowed for this resource.'


class NotAcceptable(CyborgError):
    """The microversion is malformed or not supported."""

    code = 406
    message = '{reason}'
    advice = 'Request a microversion in the range that the version document lists.'


class BodyTooLarge(CyborgError):
    """The request body exceeds the size limit."""

    code = 413
    message = 'The request body is larger than {limit} bytes.'


class UnsupportedMediaType(CyborgError):
    """The content type of the request is not JSON."""

    code = 415
    message = 'The request body must be application/json.'


class GenerationConflict(Conflict):
    """The object has changed since the client read it."""

    message = 'The generation of {uuid} is not {generation}: the object has changed.'
    advice = 'Read the object again, and repeat the change with its generation.'
