# SPDX-License-Identifier: Apache-2.0
"""Import of a database of OpenStack Cyborg: its rows, and the rows made from them."""
