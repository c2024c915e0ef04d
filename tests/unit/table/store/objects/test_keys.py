"""When credentials are asked for anew, and when not."""

from __future__ import annotations

import pytest
from botocore.credentials import Credentials, ReadOnlyCredentials
from botocore.exceptions import ClientError, NoCredentialsError

from table.errors import Refused
from table.store.objects.keys import GOOD_FOR_S, SETTLES_S, Keys


class Source:
    """Where credentials come from; `now`: which. Empty: nobody can say."""

    def __init__(self) -> None:
        self.now, self.asked, self.clock_s = "first", 0, 100.0

    def find(self) -> Credentials:
        self.asked += 1
        if not self.now:
            raise Refused("nobody can say")
        return Credentials(self.now, "secret")

    def keys(self) -> Keys:
        return Keys(self.find, clock_s=lambda: self.clock_s)


def test_they_are_asked_for_anew_every_ten_minutes_and_stay_where_nobody_can_say() -> None:
    source = Source()
    keys = source.keys()
    source.now = "second"
    assert keys.now().access_key == "first" and source.asked == 1
    source.clock_s += GOOD_FOR_S
    assert keys.now().access_key == "second"
    source.now = ""
    source.clock_s += GOOD_FOR_S
    assert keys.now().access_key == "second" and source.asked == 3
    assert keys.now().access_key == "second" and source.asked == 3, "it is not asked with each request"


class Failing(Credentials):  # type: ignore[misc]  # botocore has no types
    """Which botocore cannot renew, for want of the service or of the right to."""

    def __init__(self, error: Exception) -> None:
        super().__init__("a", "b")
        self.error = error

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        NoCredentialsError(),
        ClientError({"Error": {"Code": "AccessDenied", "Message": "not you"}}, "AssumeRole"),
        Refused("the role cannot be assumed"),
    ],
)
def test_whoever_has_none_is_told_why_in_one_kind_of_error(error: Exception) -> None:
    keys = Keys(lambda: Failing(error))
    with pytest.raises(Refused, match=r"not you|Unable to locate|cannot be assumed"):
        keys.now()
    assert not keys.refused()


def test_what_is_refused_is_asked_for_at_once_and_no_more_often_than_helps() -> None:
    source = Source()
    keys = source.keys()
    assert not keys.refused() and source.asked == 2, "there are no others"
    source.now = "second"
    assert not keys.refused() and source.asked == 2, "it was asked for just now"
    source.clock_s += SETTLES_S
    assert keys.refused() and keys.now().access_key == "second"
    assert keys.refused() and source.asked == 3, "those who had asked before the renewal ask again"
    source.clock_s += SETTLES_S
    assert not keys.refused() and keys.now().access_key == "second"
