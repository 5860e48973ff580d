# SPDX-License-Identifier: Apache-2.0
"""The database. The names are those of oslo.db, which every operator knows."""

from typing import Final

from oslo_config import cfg

GROUP: Final = 'database'

OPTIONS: Final[list[cfg.Opt]] = [
    cfg.StrOpt(
        'connection',
        default='sqlite:////var/lib/cyborg-lite/cyborg-lite.sqlite',
        secret=True,
        help="""
Address of the database, for the conductors and cyborg-lite-dbsync alone: no other
daemon opens it. Examples: mysql+pymysql://USER:PASSWORD@HOST/cyborg_lite?charset=utf8mb4
and postgresql+psycopg://USER:PASSWORD@HOST/cyborg_lite. A SQLite file serves one
process on one host. Timeouts of the driver can be changed here too, for example with
&read_timeout=60.
""",
    ),
    cfg.IntOpt(
        'max_pool_size',
        default=16,
        min=1,
        help="""
Connections that a process keeps open. As many as it runs transactions at once is
enough; lower it where the server allows few connections. Without effect on SQLite.
""",
    ),
    cfg.IntOpt(
        'max_overflow',
        default=16,
        min=0,
        help="""
Connections that a process may open beyond max_pool_size for a moment. Without effect
on SQLite.
""",
    ),
    cfg.IntOpt(
        'pool_timeout',
        default=5,
        min=1,
        help="""
Seconds to wait for a connection when all are in use; then the request fails with 503.
Raise it, or the two above, if that happens under load. Without effect on SQLite.
""",
    ),
    cfg.IntOpt(
        'connection_recycle_time',
        default=3600,
        min=1,
        help="""
Seconds after which a connection is replaced. Lower it where a firewall or a proxy cuts
connections earlier than that.
""",
    ),
    cfg.IntOpt(
        'mysql_wsrep_sync_wait',
        min=0,
        max=15,
        help="""
Galera's wsrep_sync_wait for our connections. Set it to 1 if conductors may reach
different nodes of the cluster: else a client may not see yet what it has just written.
Leave it unset on other servers, which may not know the variable.
""",
    ),
]
