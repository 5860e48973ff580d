# SPDX-License-Identifier: Apache-2.0
"""The packages of the wheel; setup.cfg describes the rest.

The migrations are in ``alembic/`` at the top of the repository. The wheel contains them
as ``cyborg_lite.db.migrations``: setup.cfg cannot add that to the packages it finds.
"""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=['cyborg_lite*']),
        'cyborg_lite.db.migrations',
        'cyborg_lite.db.migrations.versions',
    ],
    package_dir={'cyborg_lite.db.migrations': 'alembic'},
)
