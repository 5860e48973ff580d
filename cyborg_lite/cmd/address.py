# SPDX-License-Identifier: Apache-2.0
"""URLs of back ends as a log may show them."""


def without_password(url: str) -> str:
    """Scheme, hosts and path, for one host or a comma-separated list of them.

    Users, passwords and parameters are left out: parameters too may hold secrets.

    >>> without_password('rabbit://joe:secret@one:5672,joe:secret@two:5672/cloud?ssl=1')
    'rabbit://one:5672,two:5672/cloud'
    """
    scheme, separator, rest = url.partition('://')
    if not separator:
        return 'an unreadable address' if '@' in url else url
    authority, slash, path = rest.partition('?')[0].partition('/')
    hosts = (part.rpartition('@')[2] for part in authority.split(','))
    return f'{scheme}://{",".join(hosts)}{slash}{path}'
