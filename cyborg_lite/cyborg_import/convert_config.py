# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage convert-config``: takes over the configuration of Cyborg."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg

from cyborg_lite.cmd.support.parsers import add_command
from cyborg_lite.cmd.support.text_table import format_table
from cyborg_lite.cyborg_import.known_names import list_known_names, read_sections
from cyborg_lite.cyborg_import.options import ConvertedOption, convert_options
from cyborg_lite.errors.daemons import ConfigurationError


# Any: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    """Add the command ``convert-config``."""
    parser = add_command(
        parsers,
        'convert-config',
        'convert the configuration of OpenStack Cyborg; the exit status is 1 if an '
        'option has no counterpart',
    )
    parser.add_argument('source', metavar='FILE', help='such as cyborg.conf')
    parser.add_argument(
        '--output', required=True, metavar='FILE', help='new file, which must not exist'
    )
    parser.set_defaults(run=_run)


def _run(conf: cfg.ConfigOpts) -> int:
    """Convert a file.

    :returns: 1 if an option is not converted
    :raises ConfigurationError: the file cannot be read
    """
    source = conf.command.source
    if not Path(source).is_file():
        raise ConfigurationError(reason=f'There is no file {source}.')
    try:
        sections = read_sections(source)
    except cfg.ParseError as error:
        raise ConfigurationError(reason=str(error)) from None
    options = convert_options(sections, list_known_names(conf, sections))
    # Passwords: only the owner may read the file.
    descriptor = os.open(
        conf.command.output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600
    )
    with os.fdopen(descriptor, 'w', encoding='utf-8') as file:
        file.writelines(f'{line}\n' for line in _format(source, options))
    return _report(options)


def _format(source: str, options: Sequence[ConvertedOption]) -> Iterator[str]:
    """Yield the lines of the new file."""
    yield f'# Converted from {source}.'
    sections: dict[str, list[str]] = defaultdict(list)
    for option in options:
        if option.target is not None:
            section, name = option.target
            sections[section] += [
                f'{name} = {_quote(value)}' for value in option.values
            ]
    for section, lines in sections.items():
        yield from ('', f'[{section}]', *lines)
    omitted = [option for option in options if option.target is None]
    if omitted:
        yield ''
        yield '# Not converted:'
        for option in omitted:
            section, name = option.source
            yield f'# [{section}] {name}: {option.reason}'


def _quote(value: str) -> str:
    """Return a value so that the parser of oslo.config reads it unchanged."""
    first, *continued = value.split('\n')
    if first.strip() != first or (first and first[0] == first[-1] in '"\''):
        first = f'"{first}"'
    # An empty line would end the value.
    return '\n    '.join((first, *filter(None, continued)))


def _report(options: Iterable[ConvertedOption]) -> int:
    rows: list[Sequence[object]] = [('OPTION', 'RESULT')]
    status = 0
    for option in options:
        section, name = option.source
        if option.target is None:
            rows.append((f'[{section}] {name}', f'not converted: {option.reason}'))
            status = 1
        elif option.target != option.source:
            rows.append((f'[{section}] {name}', '[{}] {}'.format(*option.target)))
    if len(rows) > 1:
        print(format_table(rows))
    else:
        print('All options have the same names.')
    return status
