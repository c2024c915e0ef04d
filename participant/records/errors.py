"""Errors of whoever decodes records. A record that is no row is none of them: that is a reject."""


class RecordsError(Exception):
    """Base of all errors that decoding raises; the sentence is for an operator."""


class BatchTooLarge(RecordsError):
    """The records of a batch become more values than one batch may have: it is decoded in parts.

    Never raised for a batch of one record.
    """

    def __init__(self) -> None:
        super().__init__("the batch has too many values: decode it in parts")


class SchemasUnavailable(RecordsError):
    """What says how records are to be read cannot be asked now, and may be later. No reason for a reject."""


class SchemasPending(SchemasUnavailable):
    """The registry answers, and has been asked enough for one batch: the next attempt asks for more."""


class UnknownSchema(RecordsError):
    """There is no such schema, and will be none: whatever was written by it cannot be read."""


class NoSuchSchema(UnknownSchema):
    """The registry has none of that name."""


class ChangedSchema(RecordsError):
    """There are two schemas of one name, and nobody can tell which of them a record was written by."""
