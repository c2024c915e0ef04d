/* What must hold, by the numbers of docs/protocol.md, watched where the step is made that could break it. */

#define REQUIRE(holds, says) if :: holds :: else -> printf(says); printf("\n"); assert(false) fi

/* A decision is said. S7, and its other half: an ABORT is said of what can never be completed any more. */
inline s7_only_of_what_is_durable(t) {
    REQUIRE(tx[t].phase == COMPLETED, "VIOLATED S7: ACK of a transaction that is not in the table")
}

inline s7_abort_only_of_what_is_gone(t) {
    REQUIRE(tx[t].phase == ROLLED_BACK, "VIOLATED S7: ABORT of a transaction that is in the table, or may yet be")
}

/* docs/protocol.md: "complete when the set of expected partitions is covered; it is never a count". */
inline s4_whole(t) {
    REQUIRE(owes_nothing(t), "VIOLATED S4: a commit without all that START listed")
}

/* A commit passes the checks under the table lock. */
inline s6_newest_of_its_run(t) {
    REQUIRE(epoch[tx[t].by] == registered[RUN_OF_COORDINATOR(tx[t].by)],
        "VIOLATED S6: a commit of an epoch that is not the newest of its run")
}

/* A commit is completed: r is its run, e its epoch. */
inline s6_not_after_its_successor(e, r) {
    REQUIRE(e >= recovered[r], "VIOLATED S6: completed after a successor in its run had recovered");
    REQUIRE(e > table_epoch || (e == table_epoch && r == table_run),
        "VIOLATED S6: completed after a commit of a newer epoch, or of another run with this one")
}

/* Range [starts, ends) of source partition p is completed, with files that hold [first, last). */
inline s1_s2_s5(p, starts, ends, first, last) {
    y = first;
    do
    :: y < last -> REQUIRE(!(rows[p] & BIT(y)), "VIOLATED S1: an offset is in two completed commits");
        rows[p] = rows[p] | BIT(y);
        y++
    :: else -> break
    od;
    y = 0;
    REQUIRE(starts == offsets[p], "VIOLATED S2: a range does not begin where the one before it ends");
    REQUIRE(ends >= offsets[p], "VIOLATED S5: committed offsets go back");
    REQUIRE(rows[p] == BIT(ends) - 1, "VIOLATED S2: rows of a committed range are missing, or others are there")
}

/* An instant is rolled back. */
inline s11_not_completed(t) {
    REQUIRE(tx[t].phase != COMPLETED, "VIOLATED S11: a completed instant is rolled back")
}

/* A participant obeys a decision. */
inline s6_not_of_a_lower_epoch(i, t) {
    REQUIRE(epoch[tx[t].by] >= known[i], "VIOLATED S6: a coordinator is obeyed that a newer one has replaced")
}

/* A participant commits offset o to the consumer group. */
inline s8_not_past_the_table(i, o) {
    REQUIRE(o <= offsets[PARTITION_OF(i)], "VIOLATED S8: the group's offset passes the table's")
}

#ifdef ORDERS
/* A transaction begins. O1: none while the run is paused, but for an order to commit that came later. */
inline o1_not_while_paused(still) {
    REQUIRE(!(still), "VIOLATED O1: a transaction begins while the run is paused")
}

/* The pause is answered. What is begun for a later order is that one's. */
inline o1_reached() {
    x = 0;
    do
    :: x < TRANSACTIONS ->
        REQUIRE(!(open_at_pause & BIT(x)) || tx[x].phase != INFLIGHT,
            "VIOLATED O1: the run is said to be paused, and what was open is open");
        x++
    :: else -> break
    od;
    x = 0
}

/* Order number n + 1, to commit, is answered. */
inline o2_of_what_is_durable(n) {
    REQUIRE(must[n] <= offsets[0], "VIOLATED O2: a commit is said to be done, and what was read is not in the table")
}

/* The run ends, drained. */
inline o3_drained() {
    x = 0;
    do
    :: x < TRANSACTIONS ->
        REQUIRE(tx[x].phase != INFLIGHT, "VIOLATED O3: the run is said to be drained, and a transaction is open");
        x++
    :: else -> break
    od;
    x = 0
}

inline o3_not_after_the_end() {
    REQUIRE(!stopped, "VIOLATED O3: something is begun or completed after the run has ended, drained")
}
#endif
