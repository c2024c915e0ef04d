"""The page on which a JVM shows the table locks that it holds, as its guardian reads it."""

from __future__ import annotations

from pathlib import Path

from table.hudi.driver.held import PAGE_BYTES, SLOT, SLOTS, Held, Page, page_file


def test_what_is_held_is_read_as_it_is_now(tmp_path: Path) -> None:
    file = tmp_path / "page"
    file.write_bytes(bytes(PAGE_BYTES))
    with file.open("r+b") as written:
        page = Page(written.fileno())
        assert page.held() == []
        written.write(SLOT.pack(1_500, 60_000))
        written.seek((SLOTS - 1) * SLOT.size)
        written.write(SLOT.pack(2_500, 300_000))
        written.flush()
        assert page.held() == [Held(1.5, 60.0), Held(2.5, 300.0)]
        written.seek(0)
        written.write(SLOT.pack(1_500, 0))
        written.flush()
        assert page.held() == [Held(2.5, 300.0)]


def test_a_process_has_one_page_that_only_its_user_reads() -> None:
    file = Path(page_file().path)
    assert page_file() is page_file() and file.stat().st_size == PAGE_BYTES
    assert file.stat().st_mode & 0o077 == 0
