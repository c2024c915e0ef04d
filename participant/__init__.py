"""The participant: the half of the protocol that buffers records and writes file groups."""
