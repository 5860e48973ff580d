# SPDX-License-Identifier: Apache-2.0
"""Requests to the Accelerator API with the token of the user who views a page."""

from typing import Any, Final

from django.conf import settings
from horizon.exceptions import ServiceCatalogException
from keystoneauth1 import exceptions as auth_exceptions
from keystoneauth1 import session, token_endpoint
from openstack import connection
from openstack import exceptions as sdk_exceptions
from openstack_dashboard.api import base

from cyborg_lite import api_client
from cyborg_lite.api_client import ApiError, quote_path
from cyborg_lite_dashboard.exceptions import ObjectNotFound, TokenRejected

__all__ = ['ApiError', 'DashboardApi', 'connect', 'quote_path']

SERVICE_TYPE: Final = 'accelerator'

_NO_SERVICE: Final = 'The catalog has no accelerator service in this region.'
_NO_ANSWER: Final = 'The accelerator service does not answer.'
_ERRORS: Final = {401: TokenRejected, 404: ObjectNotFound}


class DashboardApi(api_client.AcceleratorApi):
    """Sends requests. All errors are classes that Horizon handles."""

    # Any: JSON, and the options of the base class.
    def call(self, method: str, path: str, **options: Any) -> Any:
        """Send a request, as the base class does.

        :raises ApiError: the service refuses the request or does not answer
        """
        try:
            return super().call(method, path, **options)
        except ApiError as error:
            kind = _ERRORS.get(error.status, ApiError)
            raise kind(error.status, str(error)) from error
        except (auth_exceptions.ClientException, sdk_exceptions.SDKException) as error:
            raise ApiError(503, _NO_ANSWER) from error


# Any: Django has no types.
def connect(request: Any) -> DashboardApi:
    """Return a client with the token of the user.

    :raises ApiError: the catalog has no accelerator service
    """
    try:
        endpoint = base.url_for(request, SERVICE_TYPE)
    except ServiceCatalogException as error:
        raise ApiError(503, _NO_SERVICE) from error
    token = token_endpoint.Token(endpoint=endpoint, token=request.user.token.id)
    verify = (
        False if settings.OPENSTACK_SSL_NO_VERIFY else settings.OPENSTACK_SSL_CACERT
    )
    cloud = connection.Connection(
        session=session.Session(auth=token, verify=True if verify is None else verify),
        region_name=request.user.services_region,
        app_name='cyborg-lite-dashboard',
    )
    return DashboardApi(cloud.accelerator)
