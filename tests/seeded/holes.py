"""What was once open, and what seeded bugs of the shells open again: each a sentence for the document."""

from __future__ import annotations

from enum import StrEnum


class Hole(StrEnum):
    CLOCK = "A clock that goes back, or an hour that comes twice, makes the newest commit look old."
    LOCK = "By a clock, or by standing still, two are in the table lock at once, or one for ever."
    OTHERS = "What others do to the table is not seen, or what is theirs is taken from them."
    ABSENCE = "A record that is missing is taken for a proof: files are deleted, or records are read again."
    BOMBS = "A small input takes all of a worker's memory, or hours."
    REGISTRY = "A schema registry that is reset or slow has records read wrongly, or holds up all others."
    FILES = "A commit names files that are not there or are not what was reported."
    SHORT = "What the JVM did not say to its end is taken for all that there is."
    UNDER_HANDS = "Files are taken away under a worker's hands, and others are blamed."
    STRANGERS = "Whoever may write to the control topic, or reaches a port of the driver, is heard out."
    SECRETS = "A secret is shown, or taken where other users of the machine can read it."
    REJECTS = "Rejects break the memory cap, or stand in the way of all that comes after them."
    LETTERS = "A dead letter that goes back does so twice, or what is in it is shown to whoever looks."
    STANDSTILL = "A run stands still, and nobody says so or ends it."
    BEGINNINGS = (
        "A source partition whose log begins late, or whose log is damaged, is read as if nothing were."
    )
    AGAIN = "Change data that comes again undoes what is newer, and a time of no calendar breaks a batch."
    VALUES = "An event's placeholder or encoded number is stored as if it were the value."
    WRITERS = "Who writes for long is taken for silent."
    LEFT = "What a driver that died has left is nobody's, and stays for ever."
    WORDS = "What an operator reads has no cause, no name, or no end."
    ORDERS = "Who may not gives an order, or one is answered as done that is not, or is done for ever."
    TOLD = "Whoever waits for a commit is never told of it, or is told too early."
    COMPLETE = "A stretch of event time is said to be complete while records of it are to come."
    CIVIL_TIME = "A local time that the clock shows twice is taken for its first meaning."
    OFFSETS = "An operator's change of offsets goes past what every commit is asked."
    READERS = "Another engine, or the JVM, does not find rows that are in the table."
    NEIGHBOURS = "A rule of a neighbouring system is assumed, and not the one that it has."
