"""Errors of whoever decodes records. A record that is no row is none of them: that is a reject."""


class RecordsError(Exception):
    """Base of all errors that decoding raises; the sentence is for an operator."""


class SchemasUnavailable(RecordsError):
    """What says how records are to be read cannot be asked now, and may be later. No reason for a reject."""


class UnknownSchema(RecordsError):
    """There is no such schema, and will be none: whatever was written by it cannot be read."""


class NoSuchSchema(UnknownSchema):
    """The registry has none of that name."""


class ChangedSchema(RecordsError):
    """There are two schemas of one name, and nobody can tell which of them a record was written by."""
