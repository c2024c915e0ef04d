"""One module for each command. Each has an attribute `command`; `lockstep.cli.COMMANDS` names it."""
