"""What an object store says no with: the class for callers, the sentence for people, and no secret."""

from __future__ import annotations

import errno

import pytest

from table.store.objects.errors import Act, RequestAnswer, said_by_sdk, told

XML = (
    "Generic S3 error: Error performing PUT http://127.0.0.1/lake/x in 3ms - Server returned non-2xx status "
    "code: {status}: <Error><Code>{code}</Code><Message>{message}</Message><Token-0>SeCrEt</Token-0></Error>"
)


@pytest.mark.parametrize(
    ("status", "code", "kind", "number", "sentence"),
    [
        (404, "NoSuchKey", FileNotFoundError, errno.ENOENT, "No such file"),
        (404, "NoSuchBucket", OSError, errno.ENXIO, "there is no bucket lake at this endpoint"),
        (404, "", OSError, errno.ENXIO, "is no object store"),
        (301, "", OSError, errno.ENXIO, "another region"),
        (400, "AuthorizationHeaderMalformed", OSError, errno.ENXIO, "another region"),
        (400, "IllegalLocationConstraintException", OSError, errno.ENXIO, "another region"),
        (400, "ExpiredToken", PermissionError, errno.EKEYEXPIRED, "credentials have ended"),
        (403, "AccessDenied", PermissionError, errno.EACCES, "the policy must allow s3:PutObject"),
        (403, "InvalidAccessKeyId", PermissionError, errno.EKEYREJECTED, "nobody has this access key"),
        (403, "SignatureDoesNotMatch", PermissionError, errno.EKEYREJECTED, "the secret is not"),
        (403, "RequestTimeTooSkewed", PermissionError, errno.EKEYREJECTED, "clock is too far .* NTP"),
        (403, "QuotaExceeded", OSError, errno.EDQUOT, "takes no more"),
        (507, "", OSError, errno.EDQUOT, "takes no more"),
        (503, "SlowDown", OSError, errno.EBUSY, "asks for fewer requests"),
        (500, "InternalError", OSError, errno.EIO, "answers 500 InternalError"),
    ],
)
def test_each_no_has_its_class_and_says_what_to_do(
    status: int, code: str, kind: type[OSError], number: int, sentence: str
) -> None:
    answer = RequestAnswer.of(
        Exception(XML.format(status=status, code=code, message="AKIAABCDEFGHIJKLMNOP may not"))
    )
    error = told(answer, Act.PUT, scheme="s3a", bucket="lake", place="s3a://lake/x")
    assert isinstance(error, kind) and error.errno == number and error.filename == "s3a://lake/x"
    with pytest.raises(kind, match=sentence):
        raise error
    assert "SeCrEt" not in str(error) and "AKIA" not in str(error)


def test_a_bucket_that_is_missing_is_never_taken_for_a_file_that_is() -> None:
    """Else a table that is somewhere else is begun anew."""
    for code in ("NoSuchBucket", "ContainerNotFound"):
        answer = RequestAnswer(status=404, code=code)
        error = told(answer, Act.READ, scheme="s3a", bucket="lake", place="x")
        assert not isinstance(error, FileNotFoundError)


@pytest.mark.parametrize("kind", ["Timeout", "Connect", "Interrupted"])
def test_where_no_answer_came_it_says_whether_it_was_waited_for(kind: str) -> None:
    answer = RequestAnswer.of(Exception(f"HTTP error: error sending request\n\nDebug source: kind: {kind},"))
    error = told(answer, Act.READ, scheme="gs", bucket="lake", place="x")
    assert isinstance(error, TimeoutError if kind == "Timeout" else ConnectionError)
    assert not answer.is_final


@pytest.mark.parametrize(
    ("status", "is_final"),
    [
        (400, True),
        (403, True),
        (404, True),
        (408, False),
        (409, False),
        (412, False),
        (429, False),
        (500, False),
    ],
)
def test_only_a_plain_no_is_final(status: int, is_final: bool) -> None:
    assert RequestAnswer(status=status).is_final is is_final


SDK = "{words} (Service: Amazon S3; Status Code: {status}; Error Code: {code}; Request ID: 18EB)"


@pytest.mark.parametrize(
    ("status", "code", "sentence"),
    [
        (404, "NoSuchBucket", "there is no bucket of the table"),
        (403, "SignatureDoesNotMatch", "the secret is not this access key's"),
        (403, "InvalidAccessKeyId", "nobody has this access key"),
        (403, "RequestTimeTooSkewed", "its clock is too far from the store's"),
        (403, "AccessDenied", "s3:PutObject"),
        (403, "403 Forbidden", "s3:PutObject"),
        (403, "QuotaExceeded", "takes no more"),
        (400, "ExpiredToken", "the credentials have ended"),
        (400, "400 Bad Request", "credentials have ended, or"),
        (400, "AuthorizationHeaderMalformed", "in another region"),
        (503, "SlowDown", "asks for fewer requests"),
    ],
)
def test_what_the_library_for_java_says_is_said_as_everywhere(status: int, code: str, sentence: str) -> None:
    said = said_by_sdk(SDK.format(words="No", status=status, code=code))
    assert sentence in said and "Request ID" not in said
    assert "must allow" in said or code not in ("AccessDenied", "403 Forbidden")


def test_why_nobody_has_keys_is_said_in_our_words_and_in_nobody_elses() -> None:
    text = "path External AWS credential provider: {}: the role r cannot be assumed\n\nDebug source: x"
    ours, others = (RequestAnswer.of(RuntimeError(text.format(name))) for name in ("Refused", "RuntimeError"))
    assert (ours.status, ours.sentence) == (401, "the role r cannot be assumed")
    assert (others.status, others.code, others.sentence) == (401, "RuntimeError", "")
    said = told(ours, Act.PUT, scheme="s3a", bucket="lake", place="there").strerror
    assert said == "no credentials could be had, or renewed: the role r cannot be assumed"


def test_a_clock_is_not_taken_for_a_permission() -> None:
    answer = RequestAnswer(status=403, code="RequestTimeTooSkewed")
    said = str(told(answer, Act.PUT, scheme="s3a", bucket="lake", place="x"))
    assert "NTP" in said and "must allow" not in said and "credentials" not in said


def test_what_the_library_for_java_says_of_others_is_left_as_it_is() -> None:
    for status, code in ((412, "PreconditionFailed"), (404, "NoSuchKey"), (500, "InternalError")):
        assert said_by_sdk(SDK.format(words="No", status=status, code=code)) == ""
    assert said_by_sdk("Connection refused") == ""
