"""`lockstep demo`: a broker, a topic, a job, kills, and a proof, on one machine."""
