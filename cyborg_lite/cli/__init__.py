# SPDX-License-Identifier: Apache-2.0
"""Commands ``openstack accelerator ...`` for what the usual clients do not have."""
