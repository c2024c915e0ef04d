"""Numbers of schedules that `make test` walks. Documents quote them: the import has no other effect."""

from __future__ import annotations

from typing import Final

SCHEDULES: Final = 2_000
"""Random schedules of worlds whose workers write what they read."""

EXCHANGE_SCHEDULES: Final = 500
"""Random schedules of worlds whose workers hand rows over to each other."""

ENDING_SCHEDULES: Final = 500
"""Random schedules of worlds whose workers decode while their files are closed."""
