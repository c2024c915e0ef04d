"""What an object store says no with, as the `OSError` that callers know, and a sentence for a person.

obstore gives most of it as text: the status, S3's error code in XML, the kind of what broke. Of an answer's
body only the code, and of a refusal the server's own sentence, get into ours: the rest may hold tokens.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from table.errors import Refused

SENTENCE_MAX = 300
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"(?:<Code>|\(code: )([A-Za-z0-9._-]{1,80})(?:</Code>|\))")
_PROVIDER = re.compile(r"credential provider: (\w{1,80})(?:: ([^\n]*))?")
_SENTENCE = re.compile(r"<Message>([^<]*)</Message>")
_NO_TAG = "ETag Header missing"
_KIND = re.compile(r"kind: (Connect|Timeout|Interrupted|Decode)\b")
_REDIRECT = "Received redirect without LOCATION"
_OF_SDK = re.compile(r"Status Code: (\d{3}); Error Code: (\d{3} )?([A-Za-z0-9._-]{0,80})")
_KEY = re.compile(r"\b(?:A3T|AKIA|ASIA|AROA)[A-Z0-9]{12,}\b")


class Act(StrEnum):
    """What is asked for."""

    READ = "read"
    LOOK = "look at what is"
    PUT = "write"
    LIST = "list"
    DELETE = "delete"
    LIST_UPLOADS = "list unfinished uploads"
    ABORT = "abort an unfinished upload"


_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
"""Of Azure's actions, which a role has; those of Storage Blob Data Contributor are enough."""

PERMISSIONS: Mapping[str, Mapping[Act, str]] = {
    "s3a": {
        Act.READ: "s3:GetObject",
        Act.LOOK: "s3:GetObject",
        Act.PUT: "s3:PutObject",
        Act.LIST: "s3:ListBucket",
        Act.DELETE: "s3:DeleteObject",
        Act.LIST_UPLOADS: "s3:ListBucketMultipartUploads",
        Act.ABORT: "s3:AbortMultipartUpload",
    },
    "gs": {
        Act.READ: "storage.objects.get",
        Act.LOOK: "storage.objects.get",
        Act.PUT: "storage.objects.create, storage.objects.delete and, for files of several parts, "
        "storage.multipartUploads.create",
        Act.LIST: "storage.objects.list",
        Act.DELETE: "storage.objects.delete",
    },
    "abfss": {
        Act.READ: f"{_BLOBS}/read",
        Act.LOOK: f"{_BLOBS}/read",
        Act.PUT: f"{_BLOBS}/write",
        Act.LIST: f"{_BLOBS}/read",
        Act.DELETE: f"{_BLOBS}/delete",
    },
}
"""Scheme -> what is asked for -> what a policy must allow."""

NEEDED = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket", "s3:AbortMultipartUpload")
"""What a table on S3 cannot be written without."""

_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken"})
_RENEWABLE = frozenset({"InvalidAccessKeyId", "SignatureDoesNotMatch"})
_ELSEWHERE = frozenset(
    {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}
)
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound", "ResourceNotFound", "InvalidBucketName"})
_FULL = frozenset({"QuotaExceeded", "InsufficientStorage", "XMinioStorageFull"})
_NO_OBJECT = frozenset({"", "NoSuchKey", "BlobNotFound", "NoSuchUpload"})
_SKEWED = "RequestTimeTooSkewed"
_UNAUTHORIZED, _UNPROVED = "AuthorizationFailure", "failed to authenticate"
"""Azure's word for whom it does not let in from there; its emulator says it of wrong keys as well."""
_WRONG_KEYS = {
    "InvalidAccessKeyId": "nobody has this access key, or not any more",
    "SignatureDoesNotMatch": "the secret is not this access key's",
    "AuthenticationFailed": "the account's key is not the account's, or this machine's clock is far off",
    _SKEWED: "its clock is too far from the store's (15 minutes or so): set it right, with NTP",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAnswer:
    """What is known of a request that failed."""

    status: int = 0
    """0 where none came."""
    code: str = ""
    sentence: str = ""
    broke: str = ""
    """What broke instead."""

    @property
    def is_final(self) -> bool:
        """Whether the request provably had no effect, and asking again says the same."""
        return 300 <= self.status < 500 and self.status not in (408, 409, 412, 429)

    @property
    def is_of_credentials(self) -> bool:
        """Whether others might be taken. An answer to a look has no body that says why it refuses."""
        return self.is_silent_refusal or self.code in _EXPIRED | _RENEWABLE

    @property
    def is_silent_refusal(self) -> bool:
        return self.status in (400, 401, 403) and not self.code

    @classmethod
    def of(cls, error: BaseException) -> RequestAnswer:
        """Of an error of obstore's, or of its files'."""
        text = str(error)
        status, code, sentence = _STATUS.search(text), _CODE.search(text), _SENTENCE.search(text)
        kind, provider = _KIND.search(text), _PROVIDER.search(text)
        if provider:  # ours, which was asked for keys and had none
            says = provider[1] == Refused.__name__
            return cls(status=401, code=provider[1], sentence=(provider[2] or "") if says else "")
        if _NO_TAG in text:
            return cls(broke=_NO_TAG)
        if _REDIRECT in text:
            return cls(status=301)
        named = code[1] if code else ""
        if named == _UNAUTHORIZED and sentence and _UNPROVED in sentence[1]:
            named = "AuthenticationFailed"
        if named.isdigit():  # of one of many that Azure was to delete
            return cls(status=int(named), code="BlobNotFound" if named == "404" else "")
        return cls(
            status=int(status[1]) if status else _status_of(error, named),
            code=named,
            sentence=sentence[1] if sentence else "",
            broke=kind[1] if kind else "",
        )


def _status_of(error: BaseException, code: str) -> int:
    """Of errors that came without one: one object's of many, and those that the client finds itself."""
    if code:
        return 403 if code in ("AccessDenied", "Forbidden") else 500
    return 404 if isinstance(error, FileNotFoundError) else 0


def told(answer: RequestAnswer, act: Act, *, scheme: str, bucket: str, place: str) -> OSError:
    """The error to raise. `place`: which object or folder, for people."""
    status, code = answer.status, answer.code
    said = f"{status} {code}".strip() if status else code
    if code in _NO_BUCKET:
        kind = "container" if scheme == "abfss" else "bucket"
        why = f"there is no {kind} {bucket} at this endpoint ({said}): make it, or correct path or endpoint"
        return OSError(errno.ENXIO, why, place)
    if status == 301 or code in _ELSEWHERE:
        why = f"the bucket {bucket} is in another region ({said}): set the region that it is in"
        return OSError(errno.ENXIO, why, place)
    if status == 404 and not code and act is not Act.LOOK:
        why = (
            f"what answers for bucket {bucket} is no object store ({said} and no more): correct the endpoint"
        )
        return OSError(errno.ENXIO, why, place)
    if code in _EXPIRED:
        return PermissionError(
            errno.EKEYEXPIRED,
            f"the credentials have ended ({code}): renew them where they come from; fixed keys are not "
            "renewed while a run goes on: give it others, and start it again",
            place,
        )
    if code in _FULL or status == 507:
        return OSError(errno.EDQUOT, f"the bucket {bucket} takes no more ({said}): raise its quota", place)
    if status == 404 and code in _NO_OBJECT:
        return FileNotFoundError(errno.ENOENT, "No such file or directory", place)
    if status in (401, 403):
        is_policy = status == 403 and code not in _WRONG_KEYS
        number = errno.EACCES if is_policy else errno.EKEYREJECTED
        return PermissionError(number, _refusal(answer, act, scheme), place)
    return _passing(answer, act, said, bucket, place)


def _refusal(answer: RequestAnswer, act: Act, scheme: str) -> str:
    said = f"{answer.status} {answer.code}".strip()
    if answer.code == _SKEWED:
        return f"the store takes no request of this machine's ({said}): {_WRONG_KEYS[_SKEWED]}"
    if answer.code in _WRONG_KEYS:
        return f"the store refuses the credentials ({said}): {_WRONG_KEYS[answer.code]}"
    if answer.status == 401 and answer.code not in _WRONG_KEYS:
        if answer.code == Refused.__name__ and answer.sentence:
            return f"no credentials could be had, or renewed: {_KEY.sub('***', answer.sentence)}"
        return f"no credentials could be had, or renewed ({said}): see to where the settings take them from"
    permission = PERMISSIONS[scheme].get(act, "")
    why = f"the store does not let these credentials {act} here ({said}): the policy must allow {permission}"
    if scheme == "s3a" and act is Act.READ:
        why += ", and s3:ListBucket, without which an object that is missing is refused, too"
    words = _KEY.sub("***", " ".join(answer.sentence.split()))[:SENTENCE_MAX]
    return f"{why}. It says: {words}" if words and answer.code == "AccessDenied" else why


def _passing(answer: RequestAnswer, act: Act, said: str, bucket: str, place: str) -> OSError:
    """What may be otherwise soon."""
    if answer.status in (429, 503):
        return OSError(errno.EBUSY, f"the store asks for fewer requests ({said}), and kept to it", place)
    if answer.status == 400 and act is Act.LOOK:  # whose answer has no body to say more
        said = "400, as where credentials have ended, or the bucket is in another region"
    if answer.status:
        return OSError(errno.EIO, f"the store does not {act} here: it answers {said}", place)
    if answer.broke == _NO_TAG:
        return OSError(
            errno.EPROTO,
            f"the answers for bucket {bucket} have no ETag: see whether a proxy between changes or drops "
            "ETags (it compresses, or caches), and take it out",
            place,
        )
    if answer.broke == "Timeout":
        return TimeoutError(errno.ETIMEDOUT, f"the store of bucket {bucket} did not answer in time", place)
    broke = f" ({answer.broke})" if answer.broke else ""
    return ConnectionError(
        errno.EHOSTUNREACH,
        f"the store of bucket {bucket} cannot be reached, or broke the connection off{broke}: see whether "
        "it is up, and whether the endpoint is http or https",
        place,
    )


def said_by_sdk(message: str) -> str:
    """What a message of AWS's own library for Java means, as the sentence of ours; empty where it says more
    than we would. Nobody knows there what was asked for.
    """
    found = _OF_SDK.search(message)
    if found is None:
        return ""
    code = "" if found[2] else found[3]  # an answer without a body has the status's own words
    answer = RequestAnswer(status=int(found[1]), code=code)
    if answer.status == 403 and code not in _WRONG_KEYS and code not in _EXPIRED | _FULL:
        needed = " and ".join((", ".join(NEEDED[:-1]), NEEDED[-1]))
        return (
            f"the store does not let these credentials do this ({f'403 {code}'.strip()}): the policy must "
            f"allow {needed}, or the credentials are not those that were meant"
        )
    known = code in _NO_BUCKET | _EXPIRED | _ELSEWHERE | _FULL or code in _WRONG_KEYS
    if not known and answer.status not in (301, 401, 503, 507) and not (answer.status == 400 and not code):
        return ""
    act = Act.LOOK if answer.status == 400 else Act.PUT
    return str(told(answer, act, scheme="s3a", bucket="of the table", place="").strerror)
