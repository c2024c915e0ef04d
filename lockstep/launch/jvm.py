"""How the JVMs that Lockstep starts are told to compile."""

LATE_C2 = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Ten times HotSpot's own: its optimizing compiler takes half of two cores from a start that should be short,
and the driver's Java code runs once per transaction. Long loops, a compaction's say, and a broker under load
still reach it."""
