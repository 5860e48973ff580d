# SPDX-License-Identifier: Apache-2.0
"""Options of the notifications for other services."""

from typing import Final

from oslo_config import cfg

GROUP: Final = 'notifications'

OPTIONS: Final[list[cfg.Opt]] = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help="""
Write a notification for each change of an ARQ, a device, a cleaning run, a programming
job or a device profile, and send it to a topic of the message broker. Set it to true on
all conductors, and on hosts where cyborg-lite-manage is used, if another service
consumes the topic, for example for billing. The broker keeps messages that nobody
consumes.
""",
    ),
    cfg.StrOpt(
        'topic',
        default='cyborg_lite_notifications',
        regex=r'^[A-Za-z0-9_.-]{1,100}$',
        help="""
Topic of the notifications. The queue has this name with the suffix .info. Set it if the
consumer reads another topic. [oslo_messaging_notifications] transport_url names another
broker than that of the RPC.
""",
    ),
    cfg.IntOpt(
        'max_backlog',
        default=500000,
        min=1000,
        help="""
Number of notifications that may wait in the database while the broker is unreachable.
The oldest ones beyond it are deleted, logged and counted by the metric
cyborg_lite_notifications_total with result dropped. One notification takes about 1 KB.
Raise it if longer outages of the broker must lose nothing.
""",
    ),
]
