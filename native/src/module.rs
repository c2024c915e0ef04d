//! `participant.records.json._native`: JSON values to Arrow columns. See `participant/records/json/native.py`.
//!
//! Columns go through Arrow's PyCapsule interface
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>).

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::Array;
use arrow_array::ffi::{FFI_ArrowSchema, to_ffi};
use arrow_data::ArrayData;
use arrow_schema::Schema;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::rows::{BYTES_MAX, Rows};

/// The number in participant/records/json/native.py of what is passed between it and this module.
const INTERFACE: u32 = 1;

const BROKEN: &str =
    "the native decoder of JSON failed by a mistake of its own: set record.decoder = \"plain\", and report it";

fn wrong(sentence: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(sentence.to_string())
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

/// For one schema. Not for several threads.
#[pyclass]
struct Decoder {
    rows: Rows,
    /// A batch failed in a way that nobody foresaw: what it left in the columns nobody knows.
    broken: bool,
}

#[pymethods]
impl Decoder {
    /// `schema` has `__arrow_c_schema__`. Raises `ValueError` for a type that is not read here.
    #[new]
    #[pyo3(signature = (schema, wide=true))]
    fn new(schema: &Bound<'_, PyAny>, wide: bool) -> PyResult<Decoder> {
        let capsule = schema.call_method0("__arrow_c_schema__")?.cast_into::<PyCapsule>()?;
        let pointer = capsule.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
        // SAFETY: a capsule of this name holds such a structure for as long as it lives, which is to the end of this call
        let schema = Schema::try_from(unsafe { pointer.as_ref() }).map_err(wrong)?;
        let rows = Rows::new(schema.fields(), wide).map_err(wrong)?;
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
        if self.broken {
            return Err(PyRuntimeError::new_err(BROKEN));
        }
        let (data, rows) = (data.as_bytes(), &mut self.rows);
        // A panic would reach Python as what is no `Exception`, and end a thread without a word
        let done = py.detach(|| catch_unwind(AssertUnwindSafe(|| rows.decode(data, &starts))));
        self.broken = done.is_err();
        let (columns, refused) = done.map_err(|_| PyRuntimeError::new_err(BROKEN))?.map_err(wrong)?;
        let refused: Vec<u8> = refused.into_iter().flat_map(i64::to_ne_bytes).collect();
        Ok((Columns(columns.into_data()), PyBytes::new(py, &refused)))
    }
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("INTERFACE", INTERFACE)?;
    module.add("BYTES_MAX", BYTES_MAX)?;
    module.add_class::<Decoder>()
}
