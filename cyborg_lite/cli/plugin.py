# SPDX-License-Identifier: Apache-2.0
"""Plugin of python-openstackclient.

The client reads the capital names. The plugin has a name of its own, because the name
``accelerator`` belongs to the plugin of python-openstackclient or python-cyborgclient.
Its commands stand beside theirs and replace none of them.
"""

import argparse
from typing import Any, Final

from cyborg_lite.cli.rest import AcceleratorApi

API_NAME: Final = 'accelerator_lite'
API_VERSION_OPTION: Final = 'os_accelerator_lite_api_version'
DEFAULT_API_VERSION: Final = '2'
API_VERSIONS: Final = (DEFAULT_API_VERSION,)


# Any: the class of the instance depends on the version of python-openstackclient.
def make_client(instance: Any) -> AcceleratorApi:
    """Return a client over the connection of the ``openstack`` program."""
    return AcceleratorApi(instance.sdk_connection.accelerator)


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Return the parser without new options.

    Each command names the microversion that it needs, so it has no global option.
    """
    return parser
