# SPDX-License-Identifier: Apache-2.0
"""Prints one line about the results of all suites: ``count_results.py DIRECTORY``."""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree


def count_results(directory: Path) -> Counter[str]:
    """Return the numbers of passed, failed and skipped tests in the XML files."""
    total: Counter[str] = Counter()
    for path in directory.glob('*.xml'):
        for suite in ElementTree.parse(path).iter('testsuite'):
            number = {name: int(suite.get(name, 0)) for name in _NAMES}
            failed = number['failures'] + number['errors']
            total['failed'] += failed
            total['skipped'] += number['skipped']
            total['passed'] += number['tests'] - failed - number['skipped']
    return total


_NAMES = ('tests', 'failures', 'errors', 'skipped')


if __name__ == '__main__':
    results = count_results(Path(sys.argv[1]))
    print(
        f'{results["passed"]} passed, {results["failed"]} failed, '
        f'{results["skipped"]} skipped'
    )
