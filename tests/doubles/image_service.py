# SPDX-License-Identifier: Apache-2.0
"""Image service that serves the images of a directory as Glance does, over real HTTP.

Started by ``python -m tests.doubles.image_service --port 9292 --directory DIR``. An
image is a pair of files, ``<uuid>.json`` with its fields and ``<uuid>`` with its
content. ``store_image`` writes such a pair. Each request reads the files again.
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from cyborg_lite.model.bitstreams.bitstreams import Image

_IMAGES: Final = '/v2/images'


def store_image(directory: Path, image: Image, content: bytes) -> None:
    """Write the files of an image."""
    directory.mkdir(parents=True, exist_ok=True)
    fields = {
        'id': image.id,
        'name': image.name,
        'status': image.status,
        'tags': list(image.tags),
        'size': image.size,
        'os_hash_algo': image.hash_algo,
        'os_hash_value': image.hash_value,
        **image.properties,
    }
    (directory / f'{image.id}.json').write_text(json.dumps(fields))
    (directory / image.id).write_bytes(content)


# Any, here and below: the fields of an image have various types.
def read_images(directory: Path) -> Iterator[dict[str, Any]]:
    """Yield the fields of all images."""
    for file in sorted(directory.glob('*.json')):
        yield json.loads(file.read_text())


def answer(directory: Path, target: str) -> tuple[int, bytes]:
    """Return status and body for a GET.

    :param target: path with query
    """
    parts = urlsplit(target)
    images = {fields['id']: fields for fields in read_images(directory)}
    if parts.path.rstrip('/') == _IMAGES:
        query = dict(parse_qsl(parts.query))
        matches = [fields for fields in images.values() if _matches(fields, query)]
        return 200, json.dumps({'images': matches}).encode()
    uuid, _, below = parts.path.removeprefix(f'{_IMAGES}/').partition('/')
    if uuid not in images:
        return 404, b'{}'
    if below == 'file':
        return 200, (directory / uuid).read_bytes()
    return 200, json.dumps(images[uuid]).encode()


def _matches(fields: dict[str, Any], query: dict[str, str]) -> bool:
    required = dict(query)
    tag = required.pop('tag', None)
    has_tag = tag is None or tag in fields['tags']
    return has_tag and all(fields.get(key) == text for key, text in required.items())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    server: '_Server'

    def handle(self) -> None:
        # The client may close the connection before the next request.
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        status, content = answer(self.server.directory, self.path)
        self.send_response(status)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, directory: Path) -> None:
        super().__init__(('127.0.0.1', port), _Handler)
        self.directory = directory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--port', type=int, required=True)
    parser.add_argument('--directory', type=Path, required=True)
    arguments = parser.parse_args()
    with suppress(KeyboardInterrupt):
        _Server(arguments.port, arguments.directory).serve_forever(poll_interval=0.05)


if __name__ == '__main__':
    main()
