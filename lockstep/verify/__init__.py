"""`lockstep verify`: does the table hold every committed record once, and no other?

Evidence: the table's rows, as the PyPI `hudi` reader gives them, and its timeline. The control topic and the
consumer group are never asked; the source topics only where an offset has no row. S1 to S5 of the design.
"""

from lockstep.verify.log import SourceLog
from lockstep.verify.report import PartitionReport, VerifyReport
from lockstep.verify.verify import verify_table

__all__ = ["PartitionReport", "SourceLog", "VerifyReport", "verify_table"]
