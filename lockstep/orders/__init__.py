"""Orders to a run while it goes on, given from the command line of the machine that its driver is on."""
