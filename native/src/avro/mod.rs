//! Avro: each value by the schema that it names, straight into the table's columns.
//!
//! What is read and what not, docs/formats.md says, and `participant/records/avro/datum.py` reads so. Whatever is taken
//! here that decoder takes, and makes the same row of it; what is refused here that decoder looks at, and has the words.
pub mod datum;
pub mod plan;
mod skip;
