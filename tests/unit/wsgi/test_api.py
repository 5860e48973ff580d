# SPDX-License-Identifier: Apache-2.0
"""Tests of the WSGI application, which the first request builds."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import webob

from cyborg_lite.wsgi.api import LazyApplication


def hello(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response('200 OK', [('Content-Type', 'text/plain')])
    return [b'hello']


def test_application_is_built_once_by_first_request() -> None:
    built: list[int] = []
    waiting = threading.Barrier(4)

    def build() -> Any:
        built.append(threading.get_ident())
        return hello

    application = LazyApplication(build)
    assert not built

    def ask() -> bytes:
        waiting.wait()
        body: bytes = webob.Request.blank('/').get_response(application).body
        return body

    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(ask) for _ in range(4)]
        assert [answer.result() for answer in answers] == [b'hello'] * 4
    assert len(built) == 1


def test_application_failed_build_is_retried() -> None:
    failures = [OSError('the file is not there yet')]

    def build() -> Any:
        if failures:
            raise failures.pop()
        return hello

    application = LazyApplication(build)
    with pytest.raises(OSError, match='not there yet'):
        webob.Request.blank('/').get_response(application)
    assert webob.Request.blank('/').get_response(application).body == b'hello'
