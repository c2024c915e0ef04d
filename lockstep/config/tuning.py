"""The settings that operators may change while a run goes on, and what the configuration says to that."""

from __future__ import annotations

from pydantic import ValidationError

from control_topic.controls import SETTINGS, Tuning
from lockstep.config.checks import check_relations
from lockstep.config.model import Config
from lockstep.config.sections import TransactionSection
from lockstep.config.units import format_duration, format_size


def tuning_of(config: Config) -> Tuning:
    """As the configuration has them."""
    transaction = config.transaction
    return Tuning(
        interval_ms=transaction.interval_ms,
        write_timeout_ms=transaction.write_timeout_ms,
        max_records=transaction.max_records,
        max_bytes=transaction.max_bytes,
        schedule=transaction.schedule,
        align_ms=transaction.align_ms,
    )


def objection(config: Config, tuning: Tuning) -> str:
    """Why a run of this configuration cannot have these; empty where it can. They have the same limits as in
    the file, and the same relations.
    """
    given = config.transaction.model_dump(by_alias=True) | {
        "interval": format_duration(tuning.interval_ms),
        "write_timeout": format_duration(tuning.write_timeout_ms),
        "max_records": tuning.max_records,
        "max_bytes": format_size(tuning.max_bytes) if tuning.max_bytes else "0",
    }
    if tuning.schedule is not None:
        given["schedule"] = tuning.schedule
    if tuning.align_ms is not None:
        given["align"] = format_duration(tuning.align_ms)
    try:
        transaction = TransactionSection.model_validate(given)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        context = detail.get("ctx", {})
        return f"transaction.{detail['loc'][0]}: {context.get('error') or detail['msg']}"
    wanted = config.model_copy(update={"transaction": transaction})
    settings = set(SETTINGS.values())
    for problem in check_relations(wanted):
        if settings.intersection(problem.settings):
            return f"{problem.settings[0]}: {problem.sentence}"
    return ""
