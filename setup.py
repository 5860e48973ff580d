# SPDX-License-Identifier: Apache-2.0
"""Only what setup.cfg cannot say: the migrations lie outside the package.

They stand in ``alembic/`` at the top of the tree and travel in the wheel as
``cyborg_lite.db.migrations``; ``cyborg_lite/db/migration.py`` finds either place.
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
