"""`lockstep infer`: a sample of a topic, and the schema that it would go into."""
