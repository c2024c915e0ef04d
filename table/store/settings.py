"""How stores are reached that have to be told. One that is a file system needs nothing."""

from __future__ import annotations

from typing import TypeAlias

from table.store.objects.settings import ObjectSettings

StoreSettings: TypeAlias = ObjectSettings
"""A kind of store with settings of its own adds them here."""
