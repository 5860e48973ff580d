#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs test suites of tox.ini. The last line counts the tests of all suites.
#
#   run-tests.sh             lint, types and unit at the same time; needs no server
#   run-tests.sh --all       also conformance, functional, chaos, nova, kernel, ansible,
#                            dashboard, docs and lowest
#   run-tests.sh SUITE ...   the given suites, e.g. `run-tests.sh lint unit`
#   run-tests.sh --parallel SUITE ...
#                            as many suites at the same time as there are processors
#
# The virtual environments and the results are in .tox/ at the top of the checkout.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The longest first: the others run beside it.
quick=(unit lint types)
mode=(run)
parallel=(run-parallel --parallel auto --parallel-no-spinner)
case "${1:-}" in
    '')
        suites=("${quick[@]}")
        # They share no server. Each alone leaves a processor unused for some time.
        mode=("${parallel[@]}")
        ;;
    --all) suites=("${quick[@]}" conformance functional chaos nova kernel ansible dashboard docs lowest) ;;
    --parallel)
        suites=("${@:2}")
        mode=("${parallel[@]}")
        ;;
    -*)
        echo "Usage: $0 [--all | [--parallel] SUITE ...]" >&2
        exit 2
        ;;
    *) suites=("$@") ;;
esac

for python in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        interpreter="$python"
        break
    fi
done
if [ -z "${interpreter:-}" ]; then
    echo 'Python 3.11 or newer is required. Install it or set PYTHON.' >&2
    exit 1
fi

if [ ! -x .tox/runner/bin/tox ]; then
    "$interpreter" -m venv .tox/runner
    .tox/runner/bin/pip install --disable-pip-version-check --quiet \
        --constraint devstack/constraints.txt tox
fi

rm -rf .tox/results
status=0
.tox/runner/bin/tox "${mode[@]}" -e "$(IFS=,; echo "${suites[*]}")" || status=$?
"$interpreter" devstack/count_results.py .tox/results
exit "$status"
