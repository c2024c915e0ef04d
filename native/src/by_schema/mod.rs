//! What formats share whose values name the schema that they were written by.
pub mod framing;
pub mod plan;
pub mod records;
