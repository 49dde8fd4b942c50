//! The witness: an extension module of CPython 3.13 that watches, from native memory, what product code
//! does to a process that it shares with its judge, and the only pen on that process's record pipe.
//!
//! It turns changes of dicts and functions, audit events and a few slots of the interpreter's own types
//! into facts, plain texts that go to PID 1 with the next record. It refuses nothing, decides nothing,
//! and never holds a verdict; what base's own code does as well is taken off by the judge.
//!
//! It fails closed: an interpreter that it was not written for, a key that does not come, a record that
//! anything but the harness's one function sends, end the attempt without its last record, and so red.
//! It cannot see what other native code does: a product that writes to memory without asking the
//! interpreter is beyond it, and has to load such code first, which is seen.
//!
//! | room | turns |
//! | --- | --- |
//! | `py` | nothing: the C API by hand |
//! | `sides` | frames into sides, the stack into the one who does it |
//! | `watch` | changes of dicts and functions into facts |
//! | `audit` | audit events into facts |
//! | `slots` | frame locals, cells, foreign calls and comparisons into facts |
//! | `facts` | facts into records |
//! | `hear` | a few audit events into calls of the split oracle's own function |
//! | `line` | records into frames with a keyed mark |

mod audit;
mod facts;
mod hear;
mod line;
mod py;
#[path = "../../pins/src/sha256.rs"]
mod sha256;
mod sides;
mod slots;
mod state;
mod watch;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use py::{MethodDef, ModuleDef, Object, Owned};
use sides::Side;
use watch::{Change, Group};

const METHODS: usize = 7;

static mut METHOD_TABLE: [MethodDef; METHODS] = [
    method(c"watch", watch_interpreter, py::METH_VARARGS),
    method(c"arm", arm, py::METH_O),
    method(c"also", also, py::METH_VARARGS),
    method(c"open", open, py::METH_VARARGS),
    method(c"send", send, py::METH_O),
    method(c"hear", hear::hear, py::METH_VARARGS),
    MethodDef {
        name: ptr::null(),
        call: None,
        flags: 0,
        doc: ptr::null(),
    },
];

static mut MODULE: ModuleDef = ModuleDef::new(c"tribunal_witness", (&raw mut METHOD_TABLE).cast());

const fn method(name: &'static CStr, call: py::Method, flags: c_int) -> MethodDef {
    MethodDef {
        name: name.as_ptr(),
        call: Some(call),
        flags,
        doc: ptr::null(),
    }
}

/// What the interpreter calls when the module is imported.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PyInit_tribunal_witness() -> Object {
    if !py::fits() {
        // SAFETY: called with the lock held.
        return unsafe { py::raise(c"the witness is for CPython 3.13") };
    }
    // SAFETY: a static definition, used once.
    unsafe { py::create(&raw mut MODULE) }
}

/// `watch(prefixes, sealed, pinned, sample, proxy, foreign, stores)`: hooks, and every module that is there. Nothing is
/// told before `arm`, so that a fork of this process can do without.
unsafe extern "C" fn watch_interpreter(_: Object, arguments: Object) -> Object {
    // SAFETY: called by the interpreter with the lock held and a tuple.
    unsafe {
        if py::PyTuple_Size(arguments) != 7 {
            return py::raise(c"watch() takes seven arguments");
        }
        let at = |n| py::PyTuple_GetItem(arguments, n);
        if state::is_armed() {
            return py::raise(c"armed already");
        }
        let witness = state::get();
        if witness.watch.is_started() {
            return py::raise(c"watched already");
        }
        let mut prefixes = Vec::new();
        for n in 0..py::PyList_Size(at(0)).max(0) {
            let pair = py::PyList_GetItem(at(0), n);
            let (path, word) = (
                py::text_of(py::PyTuple_GetItem(pair, 0)),
                py::text_of(py::PyTuple_GetItem(pair, 1)),
            );
            match (path, word.as_deref().and_then(Side::of_word)) {
                (Some(path), Some(side)) => prefixes.push((path, side)),
                _ => return py::raise(c"a prefix is a path and a side"),
            }
        }
        witness.sides.set(prefixes);
        for n in 0..py::PyList_Size(at(1)).max(0) {
            if let Some(path) = py::text_of(py::PyList_GetItem(at(1), n)) {
                let bare = path.rsplit('/').next().unwrap_or_default().to_owned();
                witness.audit.sealed.push((path, bare));
            }
        }
        for n in 0..py::PyList_Size(at(2)).max(0) {
            witness
                .audit
                .pinned
                .extend(py::text_of(py::PyList_GetItem(at(2), n)));
        }
        let operations = py::bytes_of(at(6)).unwrap_or_default();
        let Some((star, stores)) = operations.split_first() else {
            return py::raise(c"no operations");
        };
        witness.watch.star = *star;
        witness.watch.stores = stores.to_vec();
        let dicts = py::PyDict_AddWatcher(dict_changed);
        let functions = py::PyFunction_AddWatcher(function_changed);
        if dicts < 0 || functions < 0 {
            return ptr::null_mut();
        }
        witness.watch.start(dicts);
        if py::PySys_AddAuditHook(audited, ptr::null_mut()) != 0 {
            return ptr::null_mut();
        }
        if !slots::install(at(3), at(4), at(5)) {
            return py::raise(c"the interpreter's types are not as expected");
        }
        witness.watch.arm_all(&mut witness.sides);
        let count = i64::try_from(witness.watch.armed()).unwrap_or(0);
        py::PyLong_FromLongLong(count)
    }
}

/// `open(key, records)`: the key is read from one descriptor, records go to the other.
unsafe extern "C" fn open(_: Object, arguments: Object) -> Object {
    // SAFETY: as for `watch_interpreter`.
    unsafe {
        let at = |n| py::PyTuple_GetItem(arguments, n);
        let witness = state::get();
        if py::PyTuple_Size(arguments) != 2 || witness.line.is_open() {
            return py::raise(c"open() takes two descriptors, once");
        }
        let number = |n| c_int::try_from(py::PyLong_AsLong(at(n))).unwrap_or(-1);
        if !witness.line.open(number(0), number(1)) {
            return py::raise(c"no key came");
        }
        witness.seed();
        py::new_none()
    }
}

/// `arm(function)`: from now on what product code does is told, and only that function may send records. There is no
/// way back.
unsafe extern "C" fn arm(_: Object, sender: Object) -> Object {
    // SAFETY: as for `watch_interpreter`.
    unsafe {
        let witness = state::get();
        if !witness.watch.is_started()
            || state::is_armed()
            || !py::is(sender, &raw mut py::PyFunction_Type)
        {
            return py::raise(c"arm() takes a function, once, after watch()");
        }
        witness.sender = py::PyFunction_GetCode(sender) as usize;
        witness.sides.begin();
        witness.watch.arm_all(&mut witness.sides);
        state::arm();
        py::new_none()
    }
}

/// `also(name, dict)`: any change of this dict counts as well.
unsafe extern "C" fn also(_: Object, arguments: Object) -> Object {
    // SAFETY: as for `watch_interpreter`.
    unsafe {
        let (name, dict) = (
            py::PyTuple_GetItem(arguments, 0),
            py::PyTuple_GetItem(arguments, 1),
        );
        if py::PyTuple_Size(arguments) != 2 || !py::is(dict, &raw mut py::PyDict_Type) {
            return py::raise(c"also() takes a name and a dict");
        }
        let name = py::text_of(name).unwrap_or_default();
        state::get()
            .watch
            .arm(dict, Group::Strict, name, ptr::null_mut());
        py::new_none()
    }
}

/// `send(bytes)`: one record. Called by anything but the harness's own function, from the harness's own session, it
/// sends nothing and tells.
unsafe extern "C" fn send(_: Object, record: Object) -> Object {
    // SAFETY: as for `watch_interpreter`.
    unsafe {
        let Some(body) = py::bytes_of(record) else {
            return py::raise(c"send() takes bytes");
        };
        let witness = state::get();
        if !witness.line.is_open() {
            return py::raise(c"there is no line");
        }
        if state::is_armed() {
            let (_, frame) = witness.sides.nth(0);
            let code = if frame.0.is_null() {
                Owned(ptr::null_mut())
            } else {
                Owned(py::PyFrame_GetCode(frame.0))
            };
            let (caller, _) = witness.sides.nth(1);
            let scene = witness.sides.look();
            if code.0 as usize != witness.sender
                || caller != Side::Harness
                || scene.owner.is_some()
                || !scene.session
            {
                witness
                    .facts
                    .add("protocol", "a record that the harness did not send");
                return py::raise(c"not from here");
            }
            slots::refresh(witness);
            witness.new_phase();
        }
        let seen = witness.facts.take();
        if !seen.iter().all(|fact| witness.line.send(fact)) || !witness.line.send(&body) {
            return py::raise(c"nobody takes records");
        }
        py::new_none()
    }
}

unsafe extern "C" fn dict_changed(event: c_int, dict: Object, key: Object, new: Object) -> c_int {
    if event == watch::DEALLOCATED {
        // SAFETY: only the address is looked at. A dict that dies while the witness is at work stays on the list,
        // and a new one in its place is armed under the old name at worst.
        unsafe { state::get().watch.forget(dict) };
        return 0;
    }
    if let Some(witness) = state::enter() {
        // SAFETY: called by the interpreter with the lock held, before the change.
        unsafe {
            let aside = py::Aside::new();
            // A text of a class of its own could answer for itself.
            let exact = Owned(if py::is_text(key) {
                py::PyUnicode_FromObject(key)
            } else {
                ptr::null_mut()
            });
            let change = Change {
                event,
                dict,
                key: exact.0,
                new,
            };
            if let Some(what) = witness.watch.change(&mut witness.sides, &change) {
                witness.facts.add("witness", &what);
            }
            drop(aside);
        }
        state::leave();
    }
    0
}

unsafe extern "C" fn function_changed(event: c_int, function: Object, new: Object) -> c_int {
    if event < 2 {
        return 0;
    }
    if let Some(witness) = state::enter() {
        // SAFETY: called by the interpreter with the lock held, before the change.
        unsafe {
            let aside = py::Aside::new();
            if let Some(what) = witness
                .watch
                .function(&mut witness.sides, event, function, new)
            {
                witness.facts.add("witness", &what);
            }
            drop(aside);
        }
        state::leave();
    }
    0
}

unsafe extern "C" fn audited(event: *const c_char, arguments: Object, _: *mut c_void) -> c_int {
    if let Some(witness) = state::enter() {
        // SAFETY: called by the interpreter; the name is a C string, the arguments a tuple or null.
        unsafe {
            let aside = py::Aside::new();
            if let Ok(event) = CStr::from_ptr(event).to_str()
                && py::is_tuple(arguments)
                && let Some(what) = witness.audit.event(&mut witness.sides, event, arguments)
            {
                witness.facts.add("audit", &what);
            }
            drop(aside);
        }
        state::leave();
    }
    0
}
