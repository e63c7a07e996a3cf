//! The library in Python: the module `uniqcrawl._uniqcrawl` of the wheel that maturin builds.
//!
//! In: Python objects, and Arrow tables by the PyCapsule interface. Out: the same. Work is done
//! without the lock of the interpreter; whatever is wrong is a `ValueError` or an `OSError`.

// What Python calls takes arguments as Python gives them.
#![allow(clippy::needless_pass_by_value, reason = "arguments come as values from Python")]

mod columns;
mod dedup;
mod page;
mod rules;
mod store;

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Texts of Python, as they are.
#[derive(FromPyObject)]
enum TextOrBytes {
    Text(pyo3::pybacked::PyBackedStr),
    Bytes(pyo3::pybacked::PyBackedBytes),
}

impl TextOrBytes {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Does work without the lock of the interpreter. A fault of ours is an error, never a panic.
fn apart<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    done.map_err(|_| PyRuntimeError::new_err("uniqcrawl failed inside: please report it"))
}

/// A polite web crawler that removes duplicate pages: the parts that work without a crawl.
#[pymodule]
fn _uniqcrawl(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<page::Extracted>()?;
    module.add_class::<dedup::Deduplicator>()?;
    module.add_class::<dedup::Verdict>()?;
    module.add_class::<dedup::Verdicts>()?;
    module.add_class::<rules::Rules>()?;
    module.add_class::<store::Store>()?;
    module.add_class::<store::Document>()?;
    module.add_class::<store::Documents>()?;
    module.add_function(wrap_pyfunction!(page::extract, module)?)?;
    module.add_function(wrap_pyfunction!(page::simhash, module)?)?;
    module.add_function(wrap_pyfunction!(rules::parse, module)?)?;
    module.add_function(wrap_pyfunction!(rules::allowed, module)?)?;
    module.add_function(wrap_pyfunction!(store::open_store, module)?)
}
