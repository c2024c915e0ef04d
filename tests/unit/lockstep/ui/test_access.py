"""Who may read the page."""

from __future__ import annotations

import pytest

from lockstep.ui.access import Access, hostname, is_loopback

TOKEN = "a-token-of-some-length"


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.7", "a.host.example", ""])
def test_a_page_for_others_without_a_token_is_refused(bind: str) -> None:
    with pytest.raises(ValueError, match=r"needs ui\.token"):
        Access(bind=bind)
    assert Access(bind=bind, token=TOKEN).token == TOKEN


def test_a_token_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(ValueError, match="fewer than 16") as caught:
        Access(bind="127.0.0.1", token="short-secret")
    assert "short-secret" not in str(caught.value)
    assert TOKEN not in repr(Access(bind="127.0.0.1", token=TOKEN))


def test_loopback_is_told_from_the_rest() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(
        map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.evil.example", "127.0.0.1.evil"))
    )


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost:8420", "localhost"),
        ("LOCALHOST", "localhost"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("[::1]:8420", "::1"),
        ("evil.example.:80", "evil.example"),
        ("", ""),
    ],
)
def test_the_name_in_a_host_header(host: str, name: str) -> None:
    assert hostname(host) == name


def test_a_name_that_only_leads_to_loopback_is_another_site() -> None:
    here = Access(bind="127.0.0.1")
    assert all(map(here.is_here, ("localhost:8420", "127.0.0.1:8420", "[::1]:8420")))
    assert not any(map(here.is_here, ("evil.example:8420", "localhost.evil.example", "", "127.0.0.1.evil:1")))
    assert Access(bind="0.0.0.0", token=TOKEN).is_here("lake.example:8420")


def test_the_token_is_shown_as_a_bearer_or_by_its_cookie() -> None:
    access = Access(bind="0.0.0.0", token=TOKEN)

    def admits(*, authorization: str = "", cookies: str = "") -> bool:
        return access.admits(authorization=authorization, cookies=cookies, cookie="page")

    assert admits(authorization=f"Bearer {TOKEN}")
    assert admits(authorization=f"bearer  {TOKEN}")
    assert admits(cookies=f"other=1; page={access.ticket()}")
    for wrong in ("", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ", "Bearer é"):
        assert not admits(authorization=wrong)
    for wrong in (
        f"page={TOKEN}",
        f"wrong={access.ticket()}",
        "page=",
        "page=\x00;;==",
        "page=é",
        "x" * 9_000,
    ):
        assert not admits(cookies=wrong)
    assert not access.is_token("")
    assert not Access(bind="127.0.0.1").is_token("")
