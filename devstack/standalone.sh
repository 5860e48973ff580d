#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the whole service on this machine, without other servers. See --help.
# All files that it creates are in .standalone/ at the top of the checkout.

set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

for python in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        # -P: do not import modules from the current directory.
        PYTHONPATH="$root" exec "$python" -P -m devstack.launcher "$@"
    fi
done

echo 'Python 3.11 or newer is required. Set PYTHON to its path.' >&2
exit 1
