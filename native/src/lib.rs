//! Lockstep's decoder of JSON records: one pass, steered by the schema, into Arrow's columns.
//!
//! What it takes and what not, `participant/records/json/decoder.py` says; `parser.rs` how far it may differ.
pub mod buffers;
pub mod columns;
pub mod numbers;
pub mod parser;
pub mod rows;
pub mod strings;
pub mod texts;

#[cfg(feature = "python")]
mod module;
