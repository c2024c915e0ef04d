"""What a run shows: status, events, one fold over the control topic."""
