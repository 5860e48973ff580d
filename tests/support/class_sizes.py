# SPDX-License-Identifier: Apache-2.0
"""Sizes of classes in lines of code."""

import ast
import inspect
import textwrap


def count_class_lines(cls: type[object]) -> int:
    """Return the lines of a class, without blank lines, comments and docstrings."""
    source = textwrap.dedent(inspect.getsource(cls))
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    return sum(
        bool(text.strip()) and not text.lstrip().startswith('#')
        for number, text in enumerate(source.splitlines(), 1)
        if number not in docstrings
    )
