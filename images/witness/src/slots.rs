//! Slots of the interpreter's own types that say more than any event: a sealed frame's locals, a cell's content, a
//! foreign function, and what product classes answer when they are compared.
//!
//! The originals always run; what is added is a look. A comparison is asked once more with a value that nobody gave:
//! a class that holds that equal too, or both above and below it, does not compare anything.

use crate::py::{self, Object, Owned};
use crate::sides::{Side, Sides};
use crate::state;
use core::ffi::{c_int, c_void};
use core::ptr;

/// What the slots held before. Written once, by `install`.
struct Originals {
    compare: *mut c_void,
    new: *mut c_void,
    locals: *mut c_void,
    store: *mut c_void,
    cell: *mut c_void,
    call: *mut c_void,
}

static mut ORIGINALS: Originals = Originals {
    compare: ptr::null_mut(),
    new: ptr::null_mut(),
    locals: ptr::null_mut(),
    store: ptr::null_mut(),
    cell: ptr::null_mut(),
    call: ptr::null_mut(),
};

/// Probes of one class between two records.
const PROBES: u32 = 16;

/// `sample`: an instance of a class that defines `__eq__` in Python. `proxy`: the locals of a running function.
/// `foreign`: the class of ctypes' functions, or None.
pub(crate) unsafe fn install(sample: Object, proxy: Object, foreign: Object) -> bool {
    // SAFETY: called once, with the lock held and before any code of the candidate; the types are those of 3.13.
    unsafe {
        ORIGINALS.compare = (*py::kind_of(sample)).richcompare;
        let locals = py::get_set(&raw mut py::PyFrame_Type, c"f_locals");
        let cell = py::get_set(&raw mut py::PyCell_Type, c"cell_contents");
        let store = py::kind_of(proxy);
        if locals.is_null() || cell.is_null() || (*store).as_mapping.is_null() {
            return false;
        }
        ORIGINALS.locals = (*locals).get;
        (*locals).get = frame_locals as *mut c_void;
        ORIGINALS.cell = (*cell).set;
        (*cell).set = set_cell as *mut c_void;
        let mapping = (*store).as_mapping;
        ORIGINALS.store = (*mapping).ass_subscript;
        (*mapping).ass_subscript = store_local as *mut c_void;
        for name in [c"__setitem__", c"__delitem__"] {
            py::rewrap(store, name, store_local as *mut c_void);
        }
        let meta = &raw mut py::PyType_Type;
        ORIGINALS.new = (*meta).new;
        replace_new(meta);
        if py::is_type(foreign) {
            ORIGINALS.call = (*foreign.cast::<py::Type>()).call;
            replace_call(foreign.cast());
        }
        true
    }
}

unsafe fn subclasses(kind: *mut py::Type, each: &mut dyn FnMut(*mut py::Type)) {
    // SAFETY: `type.__subclasses__` is a method of every class; the list is ours.
    unsafe {
        let list = Owned(py::PyObject_CallMethod(
            (&raw mut py::PyType_Type).cast(),
            c"__subclasses__".as_ptr(),
            c"O".as_ptr(),
            kind,
        ));
        if list.0.is_null() {
            py::PyErr_Clear();
            return;
        }
        for n in 0..py::PyList_Size(list.0).max(0) {
            each(py::PyList_GetItem(list.0, n).cast());
        }
    }
}

/// `type.__new__`, here and in every metaclass that took it over.
unsafe fn replace_new(kind: *mut py::Type) {
    // SAFETY: as for `install`.
    unsafe {
        if (*kind).new == ORIGINALS.new {
            (*kind).new = new_class as *mut c_void;
        }
        subclasses(kind, &mut |sub| replace_new(sub));
    }
}

unsafe fn replace_call(kind: *mut py::Type) {
    // SAFETY: as for `install`.
    unsafe {
        if (*kind).call == ORIGINALS.call {
            (*kind).call = call_foreign as *mut c_void;
        }
        subclasses(kind, &mut |sub| replace_call(sub));
    }
}

unsafe extern "C" fn new_class(meta: Object, arguments: Object, named: Object) -> Object {
    // SAFETY: the original is called as it would have been.
    unsafe {
        let original = core::mem::transmute::<*mut c_void, py::New>(ORIGINALS.new);
        let made = original(meta, arguments, named);
        if !made.is_null()
            && py::is_type(made)
            && (*made.cast::<py::Type>()).richcompare == ORIGINALS.compare
            && let Some(witness) = state::enter()
        {
            look_at(&mut witness.sides, made.cast());
            state::leave();
        }
        made
    }
}

/// Classes whose comparison was written, or written over, after they were made.
pub(crate) unsafe fn refresh(sides: &mut Sides) {
    fn walk(sides: &mut Sides, kind: *mut py::Type, depth: u8) {
        if depth > 40 {
            return;
        }
        // SAFETY: called with the lock held, for classes that are alive while the list is.
        unsafe {
            look_at(sides, kind);
            subclasses(kind, &mut |sub| walk(sides, sub, depth + 1));
        }
    }
    // SAFETY: as above; the root is `object`.
    let root = unsafe { py::PyLong_Type.base };
    walk(sides, root, 0);
}

/// A class with comparisons that product code wrote is compared through `compare` from now on.
unsafe fn look_at(sides: &mut Sides, kind: *mut py::Type) {
    // SAFETY: called with the lock held; items are borrowed and looked at, at once.
    unsafe {
        if (*kind).flags & py::HEAP_TYPE == 0 || (*kind).richcompare != ORIGINALS.compare {
            return;
        }
        let dict = Owned(py::PyType_GetDict(kind));
        for name in [
            c"__eq__", c"__ne__", c"__lt__", c"__le__", c"__gt__", c"__ge__",
        ] {
            let method = py::PyDict_GetItemString(dict.0, name.as_ptr());
            if !method.is_null() && sides.of_value(method) == Side::Product {
                (*kind).richcompare = compare as *mut c_void;
                return;
            }
        }
    }
}

unsafe extern "C" fn compare(left: Object, right: Object, operation: c_int) -> Object {
    // SAFETY: the original is called as it would have been; a probe's own exception is dropped.
    unsafe {
        let original = core::mem::transmute::<*mut c_void, py::RichCompare>(ORIGINALS.compare);
        let answer = original(left, right, operation);
        let suspect = match operation {
            py::NE => answer == py::false_(),
            _ => answer == py::true_(),
        };
        if !suspect || left == right {
            return answer;
        }
        let kind = py::kind_of(left);
        let asked = match state::enter() {
            None => false,
            Some(witness) => {
                let few = witness.probe(kind as usize, PROBES);
                let scene = if few {
                    Some(witness.sides.look())
                } else {
                    None
                };
                state::leave();
                scene.is_some_and(|scene| scene.owner != Some(Side::Product))
            }
        };
        if asked && universal(original, left, right, operation) {
            let name = core::ffi::CStr::from_ptr((*kind).name)
                .to_string_lossy()
                .into_owned();
            state::tell("universal-equality", &format!("{name} {}", sign(operation)));
        }
        answer
    }
}

fn sign(operation: c_int) -> &'static str {
    match operation {
        py::EQ => "==",
        py::NE => "!=",
        py::LT | py::LE => "<",
        _ => ">",
    }
}

/// Whether the same is said of values that cannot all be so.
unsafe fn universal(
    original: py::RichCompare,
    left: Object,
    right: Object,
    operation: c_int,
) -> bool {
    // SAFETY: called with the lock held; every probe is ours.
    unsafe {
        let aside = py::Aside::new();
        let says = |other: &Owned| {
            if other.0.is_null() {
                py::PyErr_Clear();
                return false;
            }
            let answer = Owned(original(left, other.0, operation));
            py::PyErr_Clear();
            answer.0
                == if operation == py::NE {
                    py::false_()
                } else {
                    py::true_()
                }
        };
        let all = match operation {
            py::EQ | py::NE => {
                let other = another(right);
                says(&other) && says(&stranger())
                    || (!other.0.is_null() && says(&other) && says(&another(right)))
            }
            _ if py::is_int(right) || py::is(right, &raw mut py::PyFloat_Type) => {
                says(&Owned(py::PyFloat_FromDouble(1e300)))
                    && says(&Owned(py::PyFloat_FromDouble(-1e300)))
            }
            _ => false,
        };
        drop(aside);
        all
    }
}

/// A value of the same kind that nobody can have computed.
unsafe fn another(value: Object) -> Owned {
    // SAFETY: called with the lock held; a failure is null.
    unsafe {
        let number = i64::from(state::random() | 1) << 20;
        let text = format!("{number:x}-nobody");
        let word = || {
            py::PyUnicode_FromStringAndSize(
                text.as_ptr().cast(),
                isize::try_from(text.len()).unwrap_or(0),
            )
        };
        let kind = py::kind_of(value);
        Owned(if py::is(value, &raw mut py::PyLong_Type) {
            let more = Owned(py::PyLong_FromLongLong(number));
            py::PyNumber_Add(value, more.0)
        } else if kind == &raw mut py::PyFloat_Type {
            let more = Owned(py::PyFloat_FromDouble(number as f64));
            py::PyNumber_Add(value, more.0)
        } else if kind == &raw mut py::PyUnicode_Type {
            word()
        } else if kind == &raw mut py::PyBytes_Type {
            py::PyBytes_FromStringAndSize(
                text.as_ptr().cast(),
                isize::try_from(text.len()).unwrap_or(0),
            )
        } else if kind == &raw mut py::PyList_Type {
            let list = py::PyList_New(0);
            let item = Owned(word());
            py::PyList_Append(list, item.0);
            list
        } else if kind == &raw mut py::PyTuple_Type {
            let list = Owned(py::PyList_New(0));
            let item = Owned(word());
            py::PyList_Append(list.0, item.0);
            py::PyObject_CallMethod(
                kind.cast(),
                c"__new__".as_ptr(),
                c"OO".as_ptr(),
                kind,
                list.0,
            )
        } else if kind == &raw mut py::PySet_Type {
            let list = Owned(py::PyList_New(0));
            let item = Owned(word());
            py::PyList_Append(list.0, item.0);
            py::PySet_New(list.0)
        } else if kind == &raw mut py::PyDict_Type {
            let dict = py::PyDict_New();
            let item = Owned(word());
            py::PyDict_SetItem(dict, item.0, item.0);
            dict
        } else {
            ptr::null_mut()
        })
    }
}

/// A value of a kind that the product does not know.
unsafe fn stranger() -> Owned {
    // SAFETY: a new cell-like object: an empty code-free module dict's iterator would do as well; a tuple of nothing
    // that is not a value anybody compares.
    unsafe {
        let kind: Object = py::PyLong_Type.base.cast();
        Owned(py::PyObject_CallMethod(
            kind,
            c"__new__".as_ptr(),
            c"O".as_ptr(),
            kind,
        ))
    }
}

unsafe extern "C" fn frame_locals(frame: Object, closure: *mut c_void) -> Object {
    // SAFETY: the original is called as it would have been.
    unsafe {
        let original = core::mem::transmute::<*mut c_void, py::Getter>(ORIGINALS.locals);
        foreign_frame(frame, "f_locals of a frame that is not its own");
        original(frame, closure)
    }
}

unsafe fn foreign_frame(frame: Object, what: &str) {
    // SAFETY: called with the lock held and a frame.
    unsafe {
        if let Some(witness) = state::enter() {
            let code = Owned(py::PyFrame_GetCode(frame));
            let side = witness.sides.of_code(code.0);
            if matches!(side, Side::Sealed | Side::Runner | Side::Harness) {
                let scene = witness.sides.look();
                if scene.by_product() || scene.stray() {
                    witness.facts.add("audit", what);
                }
            }
            state::leave();
        }
    }
}

unsafe extern "C" fn store_local(proxy: Object, key: Object, value: Object) -> c_int {
    // SAFETY: the original is called as it would have been; the proxy may be of any frame, so the writer is what counts.
    unsafe {
        let original = core::mem::transmute::<*mut c_void, py::Store>(ORIGINALS.store);
        if let Some(witness) = state::enter() {
            let scene = witness.sides.look();
            if scene.by_product() && scene.inner_side() != Side::Library {
                let named = py::text_of(key).unwrap_or_default();
                let own = Owned(py::PyFrame_GetCode(scene.frame()));
                let names = py::attribute(own.0, c"co_varnames");
                let mine = (0..py::PyTuple_Size(names.0).max(0)).any(|n| {
                    py::text_of(py::PyTuple_GetItem(names.0, n)).as_deref() == Some(&named)
                });
                if !mine {
                    witness
                        .facts
                        .add("witness", "a local variable of another frame replaced");
                }
            }
            state::leave();
        }
        original(proxy, key, value)
    }
}

unsafe extern "C" fn set_cell(cell: Object, value: Object, closure: *mut c_void) -> c_int {
    // SAFETY: the original is called as it would have been.
    unsafe {
        let original = core::mem::transmute::<*mut c_void, py::Setter>(ORIGINALS.cell);
        if let Some(witness) = state::enter() {
            let scene = witness.sides.look();
            if scene.by_product() || scene.stray() {
                witness
                    .facts
                    .add("witness", "cell_contents of a closure replaced");
            }
            state::leave();
        }
        original(cell, value, closure)
    }
}

unsafe extern "C" fn call_foreign(function: Object, arguments: Object, named: Object) -> Object {
    // SAFETY: the original is called as it would have been.
    unsafe {
        let original = core::mem::transmute::<*mut c_void, py::Call>(ORIGINALS.call);
        if let Some(witness) = state::enter() {
            let scene = witness.sides.look();
            if scene.by_product() || scene.stray() {
                let name = py::text_attribute(function, c"__name__").unwrap_or_default();
                witness.facts.add("audit", &format!("ctypes call {name}"));
            }
            state::leave();
        }
        original(function, arguments, named)
    }
}
