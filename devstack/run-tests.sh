#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests: all suites, or those that are named, e.g. `run-tests.sh lint unit`.
# Makes what it needs in .tox/ at the top of the checkout. The suites are those of
# tox.ini. The last line counts the tests of all suites.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

suites=("$@")
if [ ${#suites[@]} -eq 0 ]; then
    suites=(lint types unit functional chaos)
fi

for python in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        found="$python"
        break
    fi
done
if [ -z "${found:-}" ]; then
    echo 'Python 3.11 or newer is needed, and python3 of this machine is none.' >&2
    exit 1
fi

if [ ! -x .tox/runner/bin/tox ]; then
    "$found" -m venv .tox/runner
    .tox/runner/bin/pip install --disable-pip-version-check --quiet \
        --constraint devstack/constraints.txt tox
fi

rm -rf .tox/results
status=0
.tox/runner/bin/tox run -e "$(IFS=,; echo "${suites[*]}")" || status=$?
"$found" devstack/count_results.py .tox/results
exit "$status"
