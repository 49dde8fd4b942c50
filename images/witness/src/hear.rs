//! Hands a few named audit events to one function of the oracle's own, and passes over all others without entering the
//! interpreter: a hook written in Python would be called for each of the thousands that an honest suite causes.
//!
//! There is no way back, and no second function. What the function raises refuses the event.

use crate::py::{self, Object, Owned};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use std::sync::OnceLock;

struct Ear {
    events: Vec<String>,
    /// A reference that is never given back.
    function: usize,
}

static EAR: OnceLock<Ear> = OnceLock::new();

/// `hear(events, function)`.
pub(crate) unsafe extern "C" fn hear(_: Object, arguments: Object) -> Object {
    // SAFETY: called by the interpreter with the lock held and a tuple.
    unsafe {
        let (events, function) = (
            py::PyTuple_GetItem(arguments, 0),
            py::PyTuple_GetItem(arguments, 1),
        );
        if py::PyTuple_Size(arguments) != 2
            || !py::is_tuple(events)
            || py::PyCallable_Check(function) == 0
        {
            return py::raise(c"hear() takes a tuple of events, and a function");
        }
        let events = (0..py::PyTuple_Size(events))
            .filter_map(|n| py::text_of(py::PyTuple_GetItem(events, n)))
            .collect();
        py::Py_IncRef(function);
        let function = function as usize;
        if EAR.set(Ear { events, function }).is_err() {
            return py::raise(c"hear() is called once");
        }
        if py::PySys_AddAuditHook(heard, ptr::null_mut()) != 0 {
            return ptr::null_mut();
        }
        py::new_none()
    }
}

unsafe extern "C" fn heard(event: *const c_char, arguments: Object, _: *mut c_void) -> c_int {
    // SAFETY: called by the interpreter with the lock held, with a C string and the event's own tuple. The function runs
    // out of sight of tracers, as the interpreter's own hooks do.
    unsafe {
        let name = CStr::from_ptr(event);
        let Some(ear) = EAR.get() else { return 0 };
        if !ear
            .events
            .iter()
            .any(|each| each.as_bytes() == name.to_bytes())
        {
            return 0;
        }
        let text = Owned(py::PyUnicode_FromStringAndSize(
            event,
            name.count_bytes().cast_signed(),
        ));
        let thread = py::PyThreadState_Get();
        py::PyThreadState_EnterTracing(thread);
        let answer = Owned(py::PyObject_CallFunctionObjArgs(
            ear.function as Object,
            text.0,
            arguments,
            ptr::null_mut::<c_void>(),
        ));
        py::PyThreadState_LeaveTracing(thread);
        if answer.0.is_null() { -1 } else { 0 }
    }
}
