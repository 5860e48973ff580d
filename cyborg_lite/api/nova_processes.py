# SPDX-License-Identifier: Apache-2.0
"""Recognition of the process of Nova that sends a request.

The requests of Nova do not state their purpose, but each process reads for other
purposes:

===============  ==================  =====================================
process          device profiles     ARQs of an instance
===============  ==================  =====================================
Compute API      new instance        shelve, shelve-offload
nova-conductor   unshelve, evacuate  rebuild
nova-compute     never               build, power-on, hard reboot, rebuild
===============  ==================  =====================================

keystoneauth writes the name of the process as the first product of the header
``User-Agent``. The name is a hint and no permission. An unknown process is treated as
a process other than the API.
"""

from typing import Final

# The Compute API runs as a script of its own up to release 31, and in a WSGI server.
_API_PROCESSES: Final = frozenset(
    {'nova-api', 'nova-api-wsgi', 'uwsgi', 'gunicorn', 'apache2', 'httpd'}
)


def is_nova_api(user_agent: str) -> bool:
    """Check whether a process with this User-Agent is the Compute API.

    :param user_agent: header of a request with a service token; may be empty
    """
    product = user_agent.partition(' ')[0].partition('/')[0]
    return product in _API_PROCESSES
