"""Small named documents in an S3 bucket, with compare-and-set: what machines that share an index must agree on.

Two writers are told apart by the bucket itself, through conditional writes (`If-None-Match`, `If-Match`), which Amazon
S3 and most services that speak its protocol have. A document that was removed stays as an empty object: a conditional
deletion is not to be had everywhere, and an unconditional one could remove what another writer has just put there.

Keys, region and endpoint are AWS's own variables and files, read by its library.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from backends.errors import AccessRefused, BackendError, BackendUnavailable

_CONFIG = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 4})
_MISSING = frozenset(("NoSuchKey", "404"))
_REFUSED = frozenset(
    ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "403")
)
_LOST = frozenset(("PreconditionFailed", "ConditionalRequestConflict", "412", "409"))  # somebody else was first


class S3Documents:
    """Documents of one bucket under one prefix."""

    def __init__(self, bucket: str, prefix: str = "") -> None:
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        with self._plain_errors():
            self._client = boto3.Session().client("s3", config=_CONFIG)  # boto3.client would keep the first keys

    def read(self, name: str) -> bytes | None:
        """The content, or None when there is no such document."""
        return self._held(name)[0]

    def replace(self, name: str, content: bytes, *, expect: bytes | None) -> bool:
        """Put `content`, which is not empty, in place of `expect` (None: of nothing); False, and nothing is done, when
        it is not so."""
        held, tag = self._held(name)
        if held != expect:
            return False
        # An answer that got lost makes the library ask again, and then what it finds in its way is its own.
        return self._put(name, content, tag) or self.read(name) == content

    def remove(self, name: str, *, expect: bytes) -> bool:
        """Remove the document; False, and nothing is done, when it is not `expect`."""
        held, tag = self._held(name)
        return held == expect and self._put(name, b"", tag)

    def names(self, folder: str) -> list[str]:
        """The names of all documents that begin with `folder/`, sorted."""
        found: list[str] = []
        with self._plain_errors():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=f"{self._prefix}{folder}/"
            )
            for page in pages:
                found += [one["Key"].removeprefix(self._prefix) for one in page.get("Contents", ()) if one["Size"]]
        return sorted(found)

    def _held(self, name: str) -> tuple[bytes | None, str | None]:
        """The content, None when there is none, and the tag of the object, None when there is no object either."""
        with self._plain_errors():
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
                content: bytes = answer["Body"].read()
            except ClientError as error:
                if _code(error) in _MISSING:
                    return None, None
                raise
        return content or None, answer["ETag"]

    def _put(self, name: str, content: bytes, tag: str | None) -> bool:
        condition = {"IfNoneMatch": "*"} if tag is None else {"IfMatch": tag}
        with self._plain_errors():
            try:
                self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content, **condition)
            except ClientError as error:
                if _code(error) in _LOST | _MISSING:
                    return False
                raise
        return True

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Every error of the library as one of ours. The original is not chained: it may name keys and hosts."""
        try:
            yield
        except (NoCredentialsError, PartialCredentialsError):
            raise AccessRefused(
                f"no AWS credentials for the bucket {self._bucket} of CDA_MANIFESTS; "
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
            ) from None
        except ClientError as error:
            raise self._translated(_code(error)) from None
        except BotoCoreError as error:
            raise BackendUnavailable(
                f"the bucket {self._bucket} of CDA_MANIFESTS does not answer ({type(error).__name__}); "
                "see AWS_REGION, AWS_ENDPOINT_URL_S3 and the network"
            ) from None

    def _translated(self, code: str) -> BackendError:
        where = f"the bucket {self._bucket} of CDA_MANIFESTS"
        if code in ("NoSuchBucket", "InvalidBucketName"):
            return BackendError(f"{where} does not exist; make it, or correct CDA_MANIFESTS")
        if code in _REFUSED:
            return AccessRefused(f"{where} refuses these AWS credentials ({code})")
        return BackendUnavailable(f"{where} did not do what was asked ({code}); run this again")


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
