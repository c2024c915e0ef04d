"""Debian's packages that tests want: what is installed, else unpacked below Lockstep's cache, without root.

Nothing of the system is changed: a package and what it lacks are downloaded and unpacked into a folder of
their own, once for a machine. Where that cannot be, `NotToBeHad` says what to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from control_topic.cache_folder import default_cache
from tests.cached import alone

PACKAGES_S_MAX = 600
PACKAGES_MAX = 300
FONT = "fonts-dejavu-core"
"""A browser without any font draws boxes."""


class NotToBeHad(Exception):
    """A tool that is missing and cannot be got; the sentence says what to install."""


def chromium() -> tuple[Path, dict[str, str]]:
    """The browser, and what its environment needs beside. Raises `NotToBeHad`."""
    installed = shutil.which("chromium") or shutil.which("chromium-browser")
    if installed is not None:
        return Path(installed), {}
    folder = unpacked("chromium", FONT)
    binary = folder / "usr" / "lib" / "chromium" / "chromium"
    if not binary.exists():
        raise NotToBeHad(f"there is no browser in Debian's package, unpacked in {folder}: install chromium")
    return binary, {
        "LD_LIBRARY_PATH": os.pathsep.join(sorted({str(one.parent) for one in folder.rglob("*.so*")})),
        "FONTCONFIG_FILE": str(_fonts(folder)),
        "XDG_DATA_DIRS": f"{folder / 'usr' / 'share'}:/usr/local/share:/usr/share",
    }


def prometheus() -> Path:
    """The folder with `prometheus` and `promtool`. Raises `NotToBeHad`."""
    installed = shutil.which("prometheus"), shutil.which("promtool")
    if all(installed):
        return Path(str(installed[0])).parent
    folder = unpacked("prometheus") / "usr" / "bin"
    if not (folder / "promtool").exists():
        raise NotToBeHad(f"there is no promtool in Debian's package, in {folder}: install prometheus")
    return folder


def _fonts(folder: Path) -> Path:
    """A configuration that finds the system's fonts, where it has some, and those that were unpacked."""
    path = folder / "fonts.conf"
    path.write_text(
        f"""\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
<dir>/usr/share/fonts</dir>
<dir>{folder}/usr/share/fonts</dir>
<cachedir>{folder}/font-cache</cachedir>
<include ignore_missing="yes">/etc/fonts/conf.d</include>
</fontconfig>
""",
        encoding="utf-8",
    )
    return path


def unpacked(package: str, *beside: str) -> Path:
    """The folder with this package, others `beside` it, and whatever of what they need is not installed.

    Raises `NotToBeHad`.
    """
    folder = default_cache() / "debian" / package
    done = folder / ".unpacked"
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder / ".lock"):
        if not done.exists():
            _fetch(folder, (package, *beside))
            done.touch()
    return folder


def _fetch(folder: Path, wanted: Sequence[str]) -> None:
    sentence = f"{wanted[0]} is not installed and its Debian package could not be had: install {wanted[0]}"
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise NotToBeHad(sentence)
    lists, cache = folder / "lists", folder / "cache"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    (cache / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    own = ["-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={cache}"]
    for options, refresh in (([], False), (own, True)):  # the system's lists may be missing, or old
        if refresh and _said(["apt-get", *options, "update"], folder) is None:
            continue
        names = _missing(options, wanted, folder)
        if names and _said(["apt-get", *options, "download", *names], folder) is not None:
            break
    else:
        raise NotToBeHad(sentence)
    for archive in sorted(folder.glob("*.deb")):
        if _said(["dpkg-deb", "-x", str(archive), str(folder)], folder) is None:
            raise NotToBeHad(sentence)
        archive.unlink()
    shutil.rmtree(lists)
    shutil.rmtree(cache)


def _missing(options: Sequence[str], wanted: Sequence[str], folder: Path) -> list[str]:
    """What an installation would bring; empty where apt knows of none of it."""
    asked = ["apt-get", *options, "install", "--simulate", "--no-install-recommends", *wanted]
    said = _said(asked, folder) or ""
    return [line.split()[1] for line in said.splitlines() if line.startswith("Inst ")][:PACKAGES_MAX]


def _said(command: Sequence[str], folder: Path) -> str | None:
    """What it printed; None where it failed."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PACKAGES_S_MAX,
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
