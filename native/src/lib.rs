//! Lockstep's decoders of JSON, Avro and Protobuf: one pass, steered by the schema, into Arrow's columns.
//!
//! What is taken and what not, `participant/records/json/decoder.py` and docs/formats.md say; `parser.rs`, `avro` and
//! `protobuf` how far they may differ.
pub mod avro;
pub mod budget;
pub mod buffers;
pub mod by_schema;
pub mod columns;
pub mod numbers;
pub mod parser;
pub mod protobuf;
pub mod rows;
pub mod strings;
pub mod texts;

#[cfg(feature = "python")]
mod module;
