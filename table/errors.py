"""Errors of the table. A caller decides by the class; a person reads the sentence."""


class TableError(Exception):
    """Base of all errors that concern the table."""


class Refused(TableError):
    """Provably without effect, and asking again will not help: the sentence says what to change."""


class Contradiction(Refused):
    """The table that exists contradicts the configuration: key, partitioning, schema, kind."""


class Unavailable(TableError):
    """Provably without effect, and the environment's fault: storage, lock, or network. Try again later."""


class ClockBehind(Unavailable):
    """This machine's clock is behind what the table holds: nothing is begun or completed until it is past.

    `patience_ms`: how long that may be waited for where it is known to pass, 0 where it is not.
    """

    def __init__(self, reason: str, *, patience_ms: int = 0) -> None:
        super().__init__(reason)
        self.patience_ms = patience_ms


class ClockAhead(Unavailable):
    """This machine's clock is ahead of the file system's by more than the table lock can bear."""


class OutcomeUnknown(TableError):
    """May have had an effect. Read the table before anything else."""


class StorageError(TableError):
    """A file of the table could not be written; the sentence names the file and the system's reason.

    Raised where workers write files: it ends the worker, and a fresh one starts from what the table holds.
    """


class FilesGone(StorageError):
    """A file that was being written was taken away, and its table is still there: so does the rollback of its
    transaction, which thus is over. Storage serves, and so does the worker.
    """
