"""The page on which a JVM shows the table locks that it holds, as its guardian reads it."""

from __future__ import annotations

from pathlib import Path

from table.hudi.driver.held import PAGE_BYTES, SLOT, SLOTS, Held, Page, page_path


def test_what_is_held_is_read_as_it_is_now(tmp_path: Path) -> None:
    file = tmp_path / "page"
    file.write_bytes(bytes(PAGE_BYTES))
    page = Page(str(file))
    assert page.held() == []
    with file.open("r+b") as written:
        written.write(SLOT.pack(1_500, 60_000))
        written.seek((SLOTS - 1) * SLOT.size)
        written.write(SLOT.pack(2_500, 300_000))
        written.flush()
        assert page.held() == [Held(1.5, 60.0), Held(2.5, 300.0)]
        written.seek(0)
        written.write(SLOT.pack(1_500, 0))
        written.flush()
        assert page.held() == [Held(2.5, 300.0)]


def test_a_page_that_is_not_there_shows_nothing(tmp_path: Path) -> None:
    assert Page(str(tmp_path / "page")).held() == []


def test_a_process_has_one_page_that_only_its_user_reads() -> None:
    file = Path(page_path())
    assert page_path() == str(file) and file.stat().st_size == PAGE_BYTES
    assert file.stat().st_mode & 0o077 == 0
