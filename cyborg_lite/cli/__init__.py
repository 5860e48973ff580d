# SPDX-License-Identifier: Apache-2.0
"""Commands ``openstack accelerator ...`` that python-cyborgclient does not have."""
