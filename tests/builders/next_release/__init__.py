# SPDX-License-Identifier: Apache-2.0
"""An imaginary next release: what tests of upgrades add to this checkout."""
