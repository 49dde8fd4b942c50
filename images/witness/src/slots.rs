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
    subtract: *mut c_void,
    contains: *mut c_void,
}

static mut ORIGINALS: Originals = Originals {
    compare: ptr::null_mut(),
    new: ptr::null_mut(),
    locals: ptr::null_mut(),
    store: ptr::null_mut(),
    cell: ptr::null_mut(),
    call: ptr::null_mut(),
    subtract: ptr::null_mut(),
    contains: ptr::null_mut(),
};

/// Probes of one class between two records.
const PROBES: u32 = 16;
/// Classes made between two records that are looked at again.
const YOUNG: usize = 4096;

/// `sample`: an instance of a class that defines `__eq__`, `__sub__` and `__contains__` in Python. `proxy`: the locals of a running function.
/// `foreign`: the class of ctypes' functions, or None.
pub(crate) unsafe fn install(sample: Object, proxy: Object, foreign: Object) -> bool {
    // SAFETY: called once, with the lock held and before any code of the candidate; the types are those of 3.13.
    unsafe {
        let sample = py::kind_of(sample);
        if (*sample).as_number.is_null() || (*sample).as_sequence.is_null() {
            return false;
        }
        ORIGINALS.compare = (*sample).richcompare;
        ORIGINALS.subtract = (*(*sample).as_number).subtract;
        ORIGINALS.contains = (*(*sample).as_sequence).contains;
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
            && let Some(witness) = state::enter()
        {
            look_at(&mut witness.sides, made.cast());
            if witness.young.len() < YOUNG {
                py::Py_IncRef(made);
                witness.young.push(made as usize);
            }
            state::leave();
        }
        made
    }
}

/// Classes that got a comparison after they were made: all of them once, then those made since the last look.
pub(crate) unsafe fn refresh(witness: &mut state::Witness) {
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
    // SAFETY: as above; the root is `object`, the young ones are ours to give back.
    unsafe {
        if !witness.walked {
            witness.walked = true;
            walk(&mut witness.sides, py::PyLong_Type.base, 0);
        }
        for young in core::mem::take(&mut witness.young) {
            look_at(&mut witness.sides, (young as Object).cast());
            py::Py_DecRef(young as Object);
        }
    }
}

/// A class whose comparisons, subtraction or containment product code wrote is asked through here from now on.
unsafe fn look_at(sides: &mut Sides, kind: *mut py::Type) {
    // SAFETY: called with the lock held; items are borrowed and looked at, at once.
    unsafe {
        if (*kind).flags & py::HEAP_TYPE == 0 {
            return;
        }
        let dict = Owned(py::PyType_GetDict(kind));
        let mut own = |names: &[&core::ffi::CStr]| {
            names.iter().any(|name| {
                let method = py::PyDict_GetItemString(dict.0, name.as_ptr());
                !method.is_null() && sides.of_value(method) == Side::Product
            })
        };
        let orders = [
            c"__eq__", c"__ne__", c"__lt__", c"__le__", c"__gt__", c"__ge__",
        ];
        if (*kind).richcompare == ORIGINALS.compare && own(&orders) {
            (*kind).richcompare = compare as *mut c_void;
        }
        let (number, sequence) = ((*kind).as_number, (*kind).as_sequence);
        if !number.is_null()
            && (*number).subtract == ORIGINALS.subtract
            && own(&[c"__sub__", c"__rsub__"])
        {
            (*number).subtract = subtract as *mut c_void;
        }
        if !sequence.is_null()
            && (*sequence).contains == ORIGINALS.contains
            && own(&[c"__contains__"])
        {
            (*sequence).contains = contains as *mut c_void;
        }
    }
}

/// Whether this answer of a product's class is to be probed: it is not the product that asked, and not too often.
unsafe fn asked(kind: *mut py::Type) -> bool {
    // SAFETY: called with the lock held.
    unsafe {
        match state::enter() {
            None => false,
            Some(witness) => {
                let few = witness.probe(kind as usize, PROBES);
                let owner = if few {
                    witness.sides.look().owner
                } else {
                    Some(Side::Product)
                };
                state::leave();
                owner != Some(Side::Product)
            }
        }
    }
}

unsafe fn tell(kind: *mut py::Type, what: &str) {
    // SAFETY: the name of a class lives as long as it.
    let name = unsafe { core::ffi::CStr::from_ptr((*kind).name) }.to_string_lossy();
    state::tell("universal-equality", &format!("{name} {what}"));
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
        let kind = py::kind_of(left);
        if suspect && left != right && asked(kind) && universal(original, left, right, operation) {
            tell(kind, sign(operation));
        }
        answer
    }
}

unsafe extern "C" fn contains(holder: Object, item: Object) -> c_int {
    // SAFETY: as for `compare`.
    unsafe {
        let original = core::mem::transmute::<*mut c_void, py::Contains>(ORIGINALS.contains);
        let answer = original(holder, item);
        let kind = py::kind_of(holder);
        if answer == 1 && asked(kind) {
            let aside = py::Aside::new();
            let holds = |other: &Owned| {
                let said = !other.0.is_null() && original(holder, other.0) == 1;
                py::PyErr_Clear();
                said
            };
            if holds(&another(item)) && holds(&stranger()) {
                tell(kind, "holds everything");
            }
            drop(aside);
        }
        answer
    }
}

/// Subtraction looks whether the slot is its own before it asks the class: it is put back for that long.
unsafe fn plainly(left: Object, right: Object) -> Object {
    // SAFETY: as for `compare`; the number methods of both classes are theirs to write.
    unsafe {
        let original = core::mem::transmute::<*mut c_void, py::Binary>(ORIGINALS.subtract);
        let mut put_back = [ptr::null_mut::<py::Number>(); 2];
        for (place, value) in put_back.iter_mut().zip([left, right]) {
            let number = (*py::kind_of(value)).as_number;
            if !number.is_null() && (*number).subtract == subtract as *mut c_void {
                (*number).subtract = ORIGINALS.subtract;
                *place = number;
            }
        }
        let answer = original(left, right);
        for number in put_back {
            if !number.is_null() {
                (*number).subtract = subtract as *mut c_void;
            }
        }
        answer
    }
}

unsafe extern "C" fn subtract(left: Object, right: Object) -> Object {
    // SAFETY: as for `compare`.
    unsafe {
        let answer = plainly(left, right);
        let (number, object) = if plain_number(right) {
            (right, left)
        } else {
            (left, right)
        };
        if answer.is_null() || !plain_number(number) || plain_number(object) {
            return answer;
        }
        let kind = py::kind_of(object);
        if asked(kind) {
            let aside = py::Aside::new();
            let same = |more: f64| {
                let other = Owned(py::PyFloat_FromDouble(py::PyFloat_AsDouble(number) + more));
                let again = Owned(if number == right {
                    plainly(left, other.0)
                } else {
                    plainly(other.0, right)
                });
                let (one, two) = (size(answer), size(again.0));
                py::PyErr_Clear();
                one.zip(two)
                    .is_some_and(|(a, b)| (a - b).abs() < more.abs() * 1e-6)
            };
            let step = f64::from(state::random() % 1000 + 17);
            if same(step) && same(-3.0 * step) {
                tell(kind, "- is near to every number");
            }
            drop(aside);
        }
        answer
    }
}

unsafe fn plain_number(value: Object) -> bool {
    // SAFETY: compares the class only.
    unsafe { py::is(value, &raw mut py::PyLong_Type) || py::is(value, &raw mut py::PyFloat_Type) }
}

/// How large a difference says it is.
unsafe fn size(value: Object) -> Option<f64> {
    // SAFETY: called with the lock held; what `abs` raises is dropped by the caller.
    unsafe {
        if value.is_null() {
            return None;
        }
        let absolute = Owned(py::PyNumber_Absolute(value));
        let size = if plain_number(absolute.0) {
            py::PyFloat_AsDouble(absolute.0)
        } else {
            f64::NAN
        };
        size.is_finite().then_some(size)
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
        let again = Owned(original(left, right, operation));
        py::PyErr_Clear();
        let suspect = if operation == py::NE {
            py::false_()
        } else {
            py::true_()
        };
        let all = again.0 != suspect
            || match operation {
                py::EQ | py::NE => {
                    let other = another(right);
                    let far = !other.0.is_null() && says(&other);
                    far && (says(&stranger()) || says(&another(right))) || near(right, &says)
                }
                _ if plain_number(right) => {
                    says(&Owned(py::PyFloat_FromDouble(1e300)))
                        && says(&Owned(py::PyFloat_FromDouble(-1e300)))
                }
                _ => false,
            };
        drop(aside);
        all
    }
}

/// Whether the same is said of whole numbers close by, two different ones.
unsafe fn near(value: Object, says: &dyn Fn(&Owned) -> bool) -> bool {
    // SAFETY: called with the lock held.
    unsafe {
        let plus = |more: i64| {
            let more = Owned(py::PyLong_FromLongLong(more));
            Owned(py::PyNumber_Add(value, more.0))
        };
        py::is(value, &raw mut py::PyLong_Type)
            && says(&plus(1))
            && says(&plus(2 + i64::from(state::random() % 997)))
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
        } else if (*kind).flags & py::HEAP_TYPE != 0 {
            imitation(value)
        } else {
            ptr::null_mut()
        })
    }
}

/// Another object of the same class, which holds other values: only for a class of plain Python objects.
unsafe fn imitation(value: Object) -> Object {
    // SAFETY: called with the lock held; nothing of the class's own runs but what sets an attribute.
    unsafe {
        let values = py::attribute(value, c"__dict__");
        if !py::is(values.0, &raw mut py::PyDict_Type) {
            return ptr::null_mut();
        }
        let root: Object = py::PyLong_Type.base.cast();
        let kind: Object = py::kind_of(value).cast();
        let made = py::PyObject_CallMethod(root, c"__new__".as_ptr(), c"O".as_ptr(), kind);
        if made.is_null() {
            py::PyErr_Clear();
            return made;
        }
        let copy = py::PyDict_New();
        let (mut at, mut key, mut held) = (0, ptr::null_mut(), ptr::null_mut());
        while py::PyDict_Next(values.0, &raw mut at, &raw mut key, &raw mut held) != 0 {
            let other = if (*py::kind_of(held)).flags & py::HEAP_TYPE == 0 && held != py::none() {
                another(held)
            } else {
                Owned(ptr::null_mut())
            };
            py::PyDict_SetItem(copy, key, if other.0.is_null() { held } else { other.0 });
        }
        py::PyObject_SetAttrString(made, c"__dict__".as_ptr(), copy);
        py::PyErr_Clear();
        py::Py_DecRef(copy);
        made
    }
}

/// A value that nobody compares with anything.
unsafe fn stranger() -> Owned {
    // SAFETY: `object()` cannot fail but for memory.
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
