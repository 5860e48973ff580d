# SPDX-License-Identifier: Apache-2.0
"""Import of a deployment of OpenStack Cyborg: its database and its configuration.

Nothing of the service imports this package. ``cyborg-lite-manage`` finds commands by
their entry points.
"""
