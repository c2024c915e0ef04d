"""Object stores to try things with."""
