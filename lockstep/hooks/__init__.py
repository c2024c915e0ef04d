"""What others are told of each commit, once it is durable: see docs/hooks.md."""
