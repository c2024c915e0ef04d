"""Errors of the participant. All but one end the worker; a fresh one starts from what the table holds."""


class ParticipantError(Exception):
    """Base of all errors that a worker's shells raise."""


class SourceUnreadable(ParticipantError):
    """The source topic could not be read as the protocol needs it."""


class HandingBroken(ParticipantError):
    """Rows did not come from one worker to another: the transaction is given up, and the worker serves."""


class DeadLetterError(ParticipantError):
    """Rejected records did not become durable in the dead-letter topic, so their offsets must not move."""


class DeadLetterRefused(DeadLetterError):
    """Nor will they, whoever tries: the topic does not take such a record, or takes nothing from us."""


class DeadLetterUnavailable(DeadLetterError):
    """They may yet: the broker is away, or too slow, or the topic is gone for a while."""
