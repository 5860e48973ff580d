# SPDX-License-Identifier: Apache-2.0
"""Options of the database connection. Their names are the names of oslo.db."""

from typing import Final

from oslo_config import cfg

GROUP: Final = 'database'

OPTIONS: Final[list[cfg.Opt]] = [
    cfg.StrOpt(
        'connection',
        default='sqlite:////var/lib/cyborg-lite/cyborg-lite.sqlite',
        secret=True,
        help="""
URL of the database, e.g.
mysql+pymysql://USER:PASSWORD@HOST/cyborg_lite?charset=utf8mb4 or
postgresql+psycopg://USER:PASSWORD@HOST/cyborg_lite. Only the conductors and the
commands cyborg-lite-dbsync, cyborg-lite-manage and cyborg-lite-status open it. A SQLite
file serves one process on one host. Driver timeouts can be appended, e.g.
&read_timeout=60. Set it for every deployment with more than one conductor.
""",
    ),
    cfg.IntOpt(
        'max_pool_size',
        default=16,
        min=1,
        help="""
Number of connections that a process keeps open. The number of concurrent transactions
is enough. Lower it if the database server limits connections. No effect on SQLite.
""",
    ),
    cfg.IntOpt(
        'max_overflow',
        default=16,
        min=0,
        help="""
Number of connections that a process may open in addition to max_pool_size for a short
time. Raise it if load peaks exhaust the pool. No effect on SQLite.
""",
    ),
    cfg.IntOpt(
        'pool_timeout',
        default=5,
        min=1,
        help="""
Seconds to wait for a connection if all are in use; then the request fails with 503.
Raise it, or max_pool_size and max_overflow, if that happens under load. No effect on
SQLite.
""",
    ),
    cfg.IntOpt(
        'connection_recycle_time',
        default=3600,
        min=1,
        help="""
Seconds after which a connection is replaced. Lower it if a firewall or proxy closes
connections earlier.
""",
    ),
    cfg.IntOpt(
        'mysql_wsrep_sync_wait',
        min=0,
        max=15,
        help="""
Value of the session variable wsrep_sync_wait of Galera. Set it to 1 if conductors may
use different nodes of the cluster; otherwise a client may not see its own last write.
Leave it unset on other database servers, which may not support the variable.
""",
    ),
]
