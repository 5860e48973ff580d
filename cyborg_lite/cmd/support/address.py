# SPDX-License-Identifier: Apache-2.0
"""Back-end URLs without credentials, for log messages."""


def without_password(url: str) -> str:
    """Return scheme, hosts and path of a URL.

    Users, passwords and parameters are removed, because parameters may also contain
    secrets. The URL may contain a comma-separated list of hosts.

    >>> without_password('rabbit://joe:secret@one:5672,joe:secret@two:5672/cloud?ssl=1')
    'rabbit://one:5672,two:5672/cloud'
    """
    scheme, separator, location = url.partition('://')
    if not separator:
        return 'an invalid URL' if '@' in url else url
    authority, slash, path = location.partition('?')[0].partition('/')
    hosts = (host.rpartition('@')[2] for host in authority.split(','))
    return f'{scheme}://{",".join(hosts)}{slash}{path}'
