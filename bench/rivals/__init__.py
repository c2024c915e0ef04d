"""Who is measured: Lockstep itself and what it is compared with, one module each."""
