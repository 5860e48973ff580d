# SPDX-License-Identifier: Apache-2.0
"""A real Placement service on loopback: ``placement_server.py CONFIG PORT``.

It creates the schema, then serves until SIGTERM. A single thread serves all requests,
because concurrent transactions would fail on the locks of SQLite.
"""

import signal
import sys
from typing import Any

import waitress
from oslo_config import cfg
from placement import conf as placement_conf
from placement import db_api, deploy
from placement.db.sqlalchemy import migration


def main(config: str, port: str) -> None:
    """Serve until SIGTERM."""
    conf = cfg.ConfigOpts()
    placement_conf.register_opts(conf)
    conf([], default_config_files=[config], default_config_dirs=[])
    db_api.configure(conf)
    migration.create_schema(db_api.get_placement_engine())
    application = grant_roles(deploy.loadapp(conf))
    signal.signal(signal.SIGTERM, _interrupt)
    waitress.serve(application, listen=f'127.0.0.1:{port}', threads=1)


# Any, here and below: parts of WSGI, for which the packages have no types.
def grant_roles(application: Any) -> Any:
    """Return an application whose clients have the roles of the installation guide.

    Without Keystone, Placement grants the role ``admin`` only.
    """

    def call(environ: Any, start_response: Any) -> Any:
        environ.setdefault('HTTP_X_ROLES', 'admin,service')
        return application(environ, start_response)

    return call


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == '__main__':
    main(*sys.argv[1:])
