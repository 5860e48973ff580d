#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The whole product on this machine, with one command and no servers: see --help.
# All that it makes lies in .standalone/ at the top of the checkout.

set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

for python in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        # -P: what stands in the directory of the caller may bear the names of ours.
        PYTHONPATH="$root" exec "$python" -P -m devstack.launcher "$@"
    fi
done

echo 'Python 3.11 or newer is needed, and python3 of this machine is none.' >&2
exit 1
