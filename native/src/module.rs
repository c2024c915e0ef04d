//! `participant.records._native`: values to Arrow columns. See `participant/records/native.py`, and `native.py` in the
//! folders of JSON and Avro.
//!
//! Columns go through Arrow's PyCapsule interface
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>).

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ffi::{FFI_ArrowSchema, to_ffi};
use arrow_array::{Array, StructArray};
use arrow_data::ArrayData;
use arrow_schema::Schema;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::budget::{BATCH_VALUES_MAX, Failure, VALUES_MAX};
use crate::by_schema::framing::Framing;
use crate::by_schema::plan::Described;
use crate::by_schema::records::{Decoded, Format, Records};
use crate::rows::{BYTES_MAX, Rows};

/// The number in participant/records/native.py of what is passed between it and this module.
const INTERFACE: u32 = 5;

const BROKEN: &str = "the native decoder failed by a mistake of its own: set record.decoder = \"plain\", and report it";

fn wrong(sentence: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(sentence.to_string())
}

pyo3::create_exception!(
    participant.records._native,
    TooLarge,
    pyo3::exceptions::PyException,
    "The records of a batch have more values together than one batch may have."
);

fn failed(failure: Failure) -> PyErr {
    match failure {
        Failure::Wrong(sentence) => wrong(sentence),
        Failure::TooLarge => TooLarge::new_err("the batch has too many values: fewer records at once may pass"),
    }
}

/// Columns that whoever knows the interface takes, once.
#[pyclass(frozen)]
struct Columns(ArrayData);

#[pymethods]
impl Columns {
    /// The schema's capsule and the array's. Another schema is never made: `requested_schema` may be ignored.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        let (array, schema) = to_ffi(&self.0).map_err(wrong)?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}

/// Of JSON, for one schema. Not for several threads.
#[pyclass]
struct Decoder {
    rows: Rows,
    /// A batch failed in a way that nobody foresaw: what it left in the columns nobody knows.
    broken: bool,
}

#[pymethods]
impl Decoder {
    /// `schema` has `__arrow_c_schema__`. `rest`: one column more, of what it does not name. Raises `ValueError` for a
    /// type that is not read here.
    #[new]
    #[pyo3(signature = (schema, wide=true, rest=false))]
    fn new(schema: &Bound<'_, PyAny>, wide: bool, rest: bool) -> PyResult<Decoder> {
        let rows = Rows::new(columns_of(schema)?.fields(), wide, rest).map_err(wrong)?;
        Ok(Decoder { rows, broken: false })
    }

    /// The rows of the values that are taken, and the places of the others as 64-bit numbers. `starts` is a buffer of
    /// such numbers, too. Raises `ValueError` where values are not given as `participant.records.raw.Values` has them,
    /// and `RuntimeError` for a mistake of this module's own.
    fn decode<'py>(
        &mut self,
        py: Python<'py>,
        data: &Bound<'py, PyBytes>,
        starts: &Bound<'py, PyAny>,
    ) -> PyResult<(Columns, Bound<'py, PyBytes>)> {
        let starts = PyBuffer::<i64>::get(starts)?.to_vec(py)?;
        let (data, rows) = (data.as_bytes(), &mut self.rows);
        let (columns, refused) = guarded(py, &mut self.broken, || rows.decode(data, &starts))?;
        Ok(told(py, columns, refused))
    }
}

/// Of Avro or Protobuf, for one table. Not for several threads.
#[pyclass]
struct BySchema {
    records: Records,
    /// As of `Decoder`.
    broken: bool,
}

#[pymethods]
impl BySchema {
    /// `format`, `framing`: as the configuration names them; `header`: the one that names a value's schema. Raises
    /// `ValueError` for a type that is not read here.
    #[new]
    fn new(schema: &Bound<'_, PyAny>, format: &str, framing: &str, header: &str) -> PyResult<BySchema> {
        let unread = || wrong(format!("{format} with framing {framing} is not read here"));
        let format = Format::named(format).ok_or_else(unread)?;
        let framing = Framing::named(framing, format).ok_or_else(unread)?;
        let records = Records::new(columns_of(schema)?.fields(), format, framing, header.as_bytes()).map_err(wrong)?;
        Ok(BySchema { records, broken: false })
    }

    /// How values of the schema of this key are read: its types, each with a name, numbers and texts, as
    /// `plan` in `participant.records.avro` and `.protobuf` describes them; None: not here. Raises `ValueError` for types that do not go into
    /// the columns; the schema is then known as one that is not read here.
    fn learn(&mut self, key: &[u8], types: Option<Vec<Described>>) -> PyResult<()> {
        self.records.learn(key, types).map_err(wrong)
    }

    /// As `Decoder.decode`, with the values' headers, in such buffers as well, or None; and the keys of schemas that are
    /// to be learned first, in which case there are no columns, and nothing else was decoded.
    #[pyo3(signature = (data, starts, headers=None, header_starts=None))]
    #[allow(clippy::type_complexity)]
    fn decode<'py>(
        &mut self,
        py: Python<'py>,
        data: &Bound<'py, PyBytes>,
        starts: &Bound<'py, PyAny>,
        headers: Option<&Bound<'py, PyBytes>>,
        header_starts: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Option<(Columns, Bound<'py, PyBytes>)>, Vec<Bound<'py, PyBytes>>)> {
        let starts = PyBuffer::<i64>::get(starts)?.to_vec(py)?;
        let header_starts = header_starts.map(|one| PyBuffer::<i64>::get(one)?.to_vec(py)).transpose()?;
        let headers = headers.map(|one| one.as_bytes()).zip(header_starts.as_deref());
        let (data, records) = (data.as_bytes(), &mut self.records);
        Ok(match guarded(py, &mut self.broken, || records.decode((data, &starts), headers))? {
            Decoded::Rows(columns, refused) => (Some(told(py, columns, refused)), Vec::new()),
            Decoded::Unknown(keys) => (None, keys.iter().map(|key| PyBytes::new(py, key)).collect()),
        })
    }
}

fn columns_of(schema: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let capsule = schema.call_method0("__arrow_c_schema__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    // SAFETY: a capsule of this name holds such a structure for as long as it lives, which is to the end of this call
    let schema = unsafe { pointer.as_ref() };
    // Whoever took it left it so: what it points to is theirs, and may be gone
    if schema.release().is_none() {
        return Err(wrong("the schema's capsule is empty: somebody has taken what was in it"));
    }
    Schema::try_from(schema).map_err(wrong)
}

/// What is decoded without Python's lock. `broken`: whether it failed before in a way that nobody foresaw.
fn guarded<T: Send>(
    py: Python<'_>,
    broken: &mut bool,
    decode: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    if *broken {
        return Err(PyRuntimeError::new_err(BROKEN));
    }
    // A panic would reach Python as what is no `Exception`, and end a thread without a word
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(decode)));
    *broken = done.is_err();
    done.map_err(|_| PyRuntimeError::new_err(BROKEN))?.map_err(failed)
}

fn told(py: Python<'_>, columns: StructArray, refused: Vec<i64>) -> (Columns, Bound<'_, PyBytes>) {
    let refused: Vec<u8> = refused.into_iter().flat_map(i64::to_ne_bytes).collect();
    (Columns(columns.into_data()), PyBytes::new(py, &refused))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("INTERFACE", INTERFACE)?;
    module.add("BYTES_MAX", BYTES_MAX)?;
    module.add("VALUES_MAX", VALUES_MAX)?;
    module.add("BATCH_VALUES_MAX", BATCH_VALUES_MAX)?;
    module.add("TooLarge", module.py().get_type::<TooLarge>())?;
    module.add_class::<Decoder>()?;
    module.add_class::<BySchema>()
}
