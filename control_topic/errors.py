"""Errors of the control topic. A caller decides by the class; a person reads the sentence."""


class ControlTopicError(Exception):
    """Base of all errors that concern the control topic."""


class ControlTopicRefused(ControlTopicError):
    """The topic that exists cannot serve as a control topic: the sentence says what to change."""


class ControlTopicUnavailable(ControlTopicError):
    """The broker did not answer, or not well. Try again later."""


class Malformed(ControlTopicError):
    """Content that the protocol does not allow, read or about to be written."""
