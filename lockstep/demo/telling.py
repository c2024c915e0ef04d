"""News of a run in sentences, as somebody who looks on would want to read them. Pure."""

from __future__ import annotations

from lockstep.watch.told import Aborted, Claimed, Joined, News, RunHalted, RunIsUp
from lockstep.watch.topic_fold import Fold


def sentence(news: News, known: Fold) -> str:
    """Empty where the view shows it already. `known`: whom the run's incarnations belong to."""
    match news:
        case RunIsUp(run):
            return f"run {run} is up"
        case Claimed(coordinator, epoch):
            return (
                f"{coordinator} now decides what is committed, in epoch {epoch}: a coordinator of a lower "
                "one is obeyed no more"
            )
        case Joined(worker, fresh, partitions):
            count = "source partition" if len(partitions) == 1 else "source partitions"
            owned = f"{count} {', '.join(map(str, partitions))}" if partitions else "no source partition yet"
            return f"{worker} {'joins' if fresh else 'now'} with {owned}"
        case Aborted(transaction):
            return f"transaction {transaction.id[:8]} is aborted: {known.named(transaction.reason)}"
        case RunHalted(reason):
            return f"the run halts: {reason}"
        case _:
            return ""
