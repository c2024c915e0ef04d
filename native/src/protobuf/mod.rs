//! Protobuf: each value by the schema that it names, straight into the table's columns.
//!
//! What is read and what not, docs/formats.md says, and `participant/records/protobuf` reads so. Whatever is taken here
//! that decoder takes, and makes the same row of it. What is rare is left to it: groups, fields that are there twice,
//! keys that are, varints of more than 64 bits.
pub mod message;
pub mod plan;
