# SPDX-License-Identifier: Apache-2.0
"""Packages of the wheel, which setup.cfg cannot describe.

The migrations are in ``alembic/`` at the top of the repository. The wheel contains them
as ``cyborg_lite.db.migrations``. ``cyborg_lite/db/migration.py`` supports both places.
"""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=['cyborg_lite', 'cyborg_lite.*']),
        'cyborg_lite.db.migrations',
        'cyborg_lite.db.migrations.versions',
    ],
    package_dir={'cyborg_lite.db.migrations': 'alembic'},
)
