"""A bucket on loopback: moto's server, spoken to by the real client library over a socket."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.request import Request, urlopen

from moto.server import ThreadedMotoServer


@dataclass(frozen=True)
class Bucket:
    """An empty bucket, and the variables under which AWS's library finds it."""

    name: str
    environment: Mapping[str, str]


@contextmanager
def running_bucket(name: str = "cda-manifests") -> Iterator[Bucket]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        with urlopen(Request(f"http://{host}:{port}/{name}", method="PUT"), timeout=10):
            pass
        yield Bucket(
            name,
            {
                "AWS_ENDPOINT_URL_S3": f"http://{host}:{port}",
                "AWS_ACCESS_KEY_ID": "AKIACANARY4711",
                "AWS_SECRET_ACCESS_KEY": "canary-secret-4711",
                "AWS_DEFAULT_REGION": "us-east-1",
            },
        )
    finally:
        server.stop()
