"""What a broker is asked beside the records: topics, groups; and one to try things with."""
