"""`lockstep demo`: a broker, a topic, a job, two kills, and a proof, on one machine."""
