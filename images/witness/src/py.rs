//! The part of CPython 3.13's C API that the witness uses, declared by hand: functions, and the few
//! structures whose slots it reads or replaces. `fits` says whether the interpreter is the one they
//! were written for; nothing else here may be called before it said so.

use core::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};
use core::ptr;

pub(crate) type Object = *mut c_void;

pub(crate) type RichCompare = unsafe extern "C" fn(Object, Object, c_int) -> Object;
pub(crate) type New = unsafe extern "C" fn(Object, Object, Object) -> Object;
pub(crate) type Call = unsafe extern "C" fn(Object, Object, Object) -> Object;
pub(crate) type Binary = unsafe extern "C" fn(Object, Object) -> Object;
pub(crate) type Contains = unsafe extern "C" fn(Object, Object) -> c_int;
pub(crate) type Store = unsafe extern "C" fn(Object, Object, Object) -> c_int;
pub(crate) type Getter = unsafe extern "C" fn(Object, *mut c_void) -> Object;
pub(crate) type Setter = unsafe extern "C" fn(Object, Object, *mut c_void) -> c_int;
pub(crate) type DictWatch = unsafe extern "C" fn(c_int, Object, Object, Object) -> c_int;
pub(crate) type FunctionWatch = unsafe extern "C" fn(c_int, Object, Object) -> c_int;
pub(crate) type AuditHook = unsafe extern "C" fn(*const c_char, Object, *mut c_void) -> c_int;
pub(crate) type Method = unsafe extern "C" fn(Object, Object) -> Object;

/// Only what a reader needs of an object: its type stands after its count.
#[repr(C)]
pub(crate) struct Head {
    count: isize,
    pub(crate) kind: *mut Type,
}

/// `PyTypeObject`, as far as the slots that are used.
#[repr(C)]
pub(crate) struct Type {
    head: Head,
    size: isize,
    pub(crate) name: *const c_char,
    basic_size: isize,
    item_size: isize,
    dealloc: *mut c_void,
    vectorcall_offset: isize,
    getattr: *mut c_void,
    setattr: *mut c_void,
    as_async: *mut c_void,
    repr: *mut c_void,
    pub(crate) as_number: *mut Number,
    pub(crate) as_sequence: *mut Sequence,
    pub(crate) as_mapping: *mut Mapping,
    hash: *mut c_void,
    pub(crate) call: *mut c_void,
    str: *mut c_void,
    getattro: *mut c_void,
    setattro: *mut c_void,
    as_buffer: *mut c_void,
    pub(crate) flags: c_ulong,
    doc: *const c_char,
    traverse: *mut c_void,
    clear: *mut c_void,
    pub(crate) richcompare: *mut c_void,
    weaklist_offset: isize,
    iter: *mut c_void,
    iternext: *mut c_void,
    methods: *mut c_void,
    members: *mut c_void,
    getset: *mut c_void,
    pub(crate) base: *mut Type,
    dict: Object,
    descr_get: *mut c_void,
    descr_set: *mut c_void,
    dict_offset: isize,
    init: *mut c_void,
    alloc: *mut c_void,
    pub(crate) new: *mut c_void,
}

#[repr(C)]
pub(crate) struct Mapping {
    length: *mut c_void,
    subscript: *mut c_void,
    pub(crate) ass_subscript: *mut c_void,
}

/// `PyNumberMethods`, as far as subtraction.
#[repr(C)]
pub(crate) struct Number {
    add: *mut c_void,
    pub(crate) subtract: *mut c_void,
}

/// `PySequenceMethods`, as far as containment.
#[repr(C)]
pub(crate) struct Sequence {
    before: [*mut c_void; 7],
    pub(crate) contains: *mut c_void,
}

#[repr(C)]
pub(crate) struct GetSet {
    name: *const c_char,
    pub(crate) get: *mut c_void,
    pub(crate) set: *mut c_void,
    doc: *const c_char,
    closure: *mut c_void,
}

/// `PyGetSetDescrObject` and `PyWrapperDescrObject` begin alike.
#[repr(C)]
struct Descriptor {
    head: Head,
    kind: *mut Type,
    name: Object,
    qualname: Object,
    /// `d_getset` of the one, `d_base` of the other.
    first: *mut c_void,
    /// `d_wrapped` of the other.
    wrapped: *mut c_void,
}

#[repr(C)]
pub(crate) struct MethodDef {
    pub(crate) name: *const c_char,
    pub(crate) call: Option<Method>,
    pub(crate) flags: c_int,
    pub(crate) doc: *const c_char,
}

#[repr(C)]
pub(crate) struct ModuleDef {
    head: Head,
    init: *mut c_void,
    index: isize,
    copy: *mut c_void,
    name: *const c_char,
    doc: *const c_char,
    size: isize,
    methods: *mut MethodDef,
    slots: *mut c_void,
    traverse: *mut c_void,
    clear: *mut c_void,
    free: *mut c_void,
}

impl ModuleDef {
    pub(crate) const fn new(name: &'static CStr, methods: *mut MethodDef) -> Self {
        Self {
            head: Head {
                count: 1,
                kind: ptr::null_mut(),
            },
            init: ptr::null_mut(),
            index: 0,
            copy: ptr::null_mut(),
            name: name.as_ptr(),
            doc: ptr::null(),
            size: -1,
            methods,
            slots: ptr::null_mut(),
            traverse: ptr::null_mut(),
            clear: ptr::null_mut(),
            free: ptr::null_mut(),
        }
    }
}

pub(crate) const METH_VARARGS: c_int = 1;
pub(crate) const METH_O: c_int = 8;
pub(crate) const HEAP_TYPE: c_ulong = 1 << 9;
pub(crate) const IMMUTABLE_TYPE: c_ulong = 1 << 8;
const LONG_SUBCLASS: c_ulong = 1 << 24;
const LIST_SUBCLASS: c_ulong = 1 << 25;
const TUPLE_SUBCLASS: c_ulong = 1 << 26;
const BYTES_SUBCLASS: c_ulong = 1 << 27;
const UNICODE_SUBCLASS: c_ulong = 1 << 28;
const DICT_SUBCLASS: c_ulong = 1 << 29;
const TYPE_SUBCLASS: c_ulong = 1 << 31;
const MODULE_API: c_int = 1013;

pub(crate) const LT: c_int = 0;
pub(crate) const LE: c_int = 1;
pub(crate) const EQ: c_int = 2;
pub(crate) const NE: c_int = 3;

unsafe extern "C" {
    static Py_Version: c_ulong;
    pub(crate) static mut PyType_Type: Type;
    pub(crate) static mut PyLong_Type: Type;
    pub(crate) static mut PyFloat_Type: Type;
    pub(crate) static mut PyUnicode_Type: Type;
    pub(crate) static mut PyBytes_Type: Type;
    pub(crate) static mut PyBool_Type: Type;
    pub(crate) static mut PyList_Type: Type;
    pub(crate) static mut PyTuple_Type: Type;
    pub(crate) static mut PyDict_Type: Type;
    pub(crate) static mut PySet_Type: Type;
    pub(crate) static mut PyFunction_Type: Type;
    pub(crate) static mut PyMethod_Type: Type;
    pub(crate) static mut PyCode_Type: Type;
    pub(crate) static mut PyModule_Type: Type;
    pub(crate) static mut PyFrame_Type: Type;
    pub(crate) static mut PyCell_Type: Type;
    pub(crate) static mut PyClassMethod_Type: Type;
    pub(crate) static mut PyStaticMethod_Type: Type;
    pub(crate) static mut PyProperty_Type: Type;
    static mut _Py_NoneStruct: Head;
    static mut _Py_TrueStruct: Head;
    static mut _Py_FalseStruct: Head;
    static mut PyExc_RuntimeError: Object;

    pub(crate) fn PyModule_Create2(def: *mut ModuleDef, api: c_int) -> Object;
    pub(crate) fn PyModule_GetDict(module: Object) -> Object;
    pub(crate) fn PyDict_AddWatcher(callback: DictWatch) -> c_int;
    pub(crate) fn PyDict_Watch(id: c_int, dict: Object) -> c_int;
    pub(crate) fn PyFunction_AddWatcher(callback: FunctionWatch) -> c_int;
    pub(crate) fn PySys_AddAuditHook(hook: AuditHook, data: *mut c_void) -> c_int;
    pub(crate) fn PySys_GetObject(name: *const c_char) -> Object;
    pub(crate) fn PyDict_GetItemWithError(dict: Object, key: Object) -> Object;
    pub(crate) fn PyDict_GetItemString(dict: Object, key: *const c_char) -> Object;
    pub(crate) fn PyDict_Next(
        dict: Object,
        at: *mut isize,
        key: *mut Object,
        value: *mut Object,
    ) -> c_int;
    pub(crate) fn PyEval_GetBuiltins() -> Object;
    pub(crate) fn PyEval_GetFrame() -> Object;
    pub(crate) fn PyFrame_GetBack(frame: Object) -> Object;
    pub(crate) fn PyFrame_GetCode(frame: Object) -> Object;
    pub(crate) fn PyFrame_GetGlobals(frame: Object) -> Object;
    pub(crate) fn PyFrame_GetLasti(frame: Object) -> c_int;
    pub(crate) fn PyCode_GetCode(code: Object) -> Object;
    pub(crate) fn PyFunction_GetCode(function: Object) -> Object;
    pub(crate) fn PyMethod_Function(method: Object) -> Object;
    pub(crate) fn PyType_GetDict(kind: *mut Type) -> Object;
    pub(crate) fn _PyType_Lookup(kind: *mut Type, name: Object) -> Object;
    pub(crate) fn PyCallable_Check(object: Object) -> c_int;
    pub(crate) fn PyObject_GetAttrString(object: Object, name: *const c_char) -> Object;
    pub(crate) fn PyObject_CallMethod(
        object: Object,
        name: *const c_char,
        format: *const c_char,
        ...
    ) -> Object;
    pub(crate) fn PyObject_CallFunctionObjArgs(function: Object, ...) -> Object;
    pub(crate) fn PyThreadState_Get() -> *mut c_void;
    pub(crate) fn PyThreadState_EnterTracing(thread: *mut c_void);
    pub(crate) fn PyThreadState_LeaveTracing(thread: *mut c_void);
    pub(crate) fn PyOS_FSPath(path: Object) -> Object;
    pub(crate) fn PyTuple_Size(tuple: Object) -> isize;
    pub(crate) fn PyTuple_GetItem(tuple: Object, at: isize) -> Object;
    pub(crate) fn PyList_Size(list: Object) -> isize;
    pub(crate) fn PyList_GetItem(list: Object, at: isize) -> Object;
    pub(crate) fn PyList_New(size: isize) -> Object;
    pub(crate) fn PyList_Append(list: Object, item: Object) -> c_int;
    pub(crate) fn PyDict_New() -> Object;
    pub(crate) fn PyDict_SetItem(dict: Object, key: Object, value: Object) -> c_int;
    pub(crate) fn PySet_New(items: Object) -> Object;
    pub(crate) fn PyLong_FromLongLong(value: i64) -> Object;
    pub(crate) fn PyLong_AsLong(value: Object) -> c_long;
    pub(crate) fn PyNumber_Add(left: Object, right: Object) -> Object;
    pub(crate) fn PyNumber_Absolute(value: Object) -> Object;
    pub(crate) fn PyFloat_AsDouble(value: Object) -> f64;
    pub(crate) fn PyObject_SetAttrString(
        object: Object,
        name: *const c_char,
        value: Object,
    ) -> c_int;
    pub(crate) fn PyFloat_FromDouble(value: f64) -> Object;
    pub(crate) fn PyUnicode_AsUTF8AndSize(text: Object, size: *mut isize) -> *const c_char;
    pub(crate) fn PyUnicode_FromObject(text: Object) -> Object;
    pub(crate) fn PyUnicode_FromStringAndSize(text: *const c_char, size: isize) -> Object;
    pub(crate) fn PyBytes_AsStringAndSize(
        bytes: Object,
        text: *mut *mut c_char,
        size: *mut isize,
    ) -> c_int;
    pub(crate) fn PyBytes_FromStringAndSize(text: *const c_char, size: isize) -> Object;
    pub(crate) fn PyErr_GetRaisedException() -> Object;
    pub(crate) fn PyErr_SetRaisedException(error: Object);
    pub(crate) fn PyErr_Clear();
    pub(crate) fn PyErr_SetString(kind: Object, text: *const c_char);
    pub(crate) fn PyGILState_Check() -> c_int;
    pub(crate) fn Py_IncRef(object: Object);
    pub(crate) fn Py_DecRef(object: Object);
}

/// Whether this is a plain CPython 3.13: with the global lock, not a debug build.
pub(crate) fn fits() -> bool {
    // SAFETY: `Py_Version` is a constant of every interpreter that can load this; the name of `int`
    // and of its base are read only through a layout that this comparison is there to confirm.
    unsafe {
        let flags = Owned(PyObject_GetAttrString(sys_module(), c"abiflags".as_ptr()));
        let int = &raw const PyLong_Type;
        Py_Version >> 16 == 0x030d
            && text_of(flags.0).as_deref() == Some("")
            && CStr::from_ptr((*int).name) == c"int"
            && CStr::from_ptr((*(*int).base).name) == c"object"
            && !PyType_Type.new.is_null()
    }
}

/// The module `sys`, borrowed.
fn sys_module() -> Object {
    // SAFETY: `sys.modules` is always there, and holds `sys`.
    unsafe { PyDict_GetItemString(modules(), c"sys".as_ptr()) }
}

pub(crate) fn modules() -> Object {
    // SAFETY: a borrowed reference that lives as long as the interpreter, or null.
    unsafe { PySys_GetObject(c"modules".as_ptr()) }
}

pub(crate) fn none() -> Object {
    (&raw mut _Py_NoneStruct).cast()
}

pub(crate) fn true_() -> Object {
    (&raw mut _Py_TrueStruct).cast()
}

pub(crate) fn false_() -> Object {
    (&raw mut _Py_FalseStruct).cast()
}

pub(crate) unsafe fn raise(text: &CStr) -> Object {
    // SAFETY: called with the lock held, from a function that returns null next.
    unsafe { PyErr_SetString(PyExc_RuntimeError, text.as_ptr()) };
    ptr::null_mut()
}

/// A new reference to None.
pub(crate) fn new_none() -> Object {
    // SAFETY: None is immortal.
    unsafe { Py_IncRef(none()) };
    none()
}

pub(crate) unsafe fn create(def: *mut ModuleDef) -> Object {
    // SAFETY: the definition is a static of this library.
    unsafe { PyModule_Create2(def, MODULE_API) }
}

/// A reference that is given back when it goes out of scope; may be null.
pub(crate) struct Owned(pub(crate) Object);

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: this is the one reference that was taken.
            unsafe { Py_DecRef(self.0) };
        }
    }
}

/// Puts aside the exception that is under way, if one is, and brings it back.
pub(crate) struct Aside(Object);

impl Aside {
    pub(crate) fn new() -> Self {
        // SAFETY: called with the lock held.
        Self(unsafe { PyErr_GetRaisedException() })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // SAFETY: what was raised meanwhile is ours to drop; the reference is handed back.
        unsafe {
            PyErr_Clear();
            if !self.0.is_null() {
                PyErr_SetRaisedException(self.0);
            }
        }
    }
}

pub(crate) unsafe fn kind_of(object: Object) -> *mut Type {
    // SAFETY: every object begins with its count and its type.
    unsafe { (*object.cast::<Head>()).kind }
}

pub(crate) unsafe fn is(object: Object, kind: *mut Type) -> bool {
    // SAFETY: as for `kind_of`; null is no object.
    !object.is_null() && unsafe { kind_of(object) } == kind
}

unsafe fn has(object: Object, flag: c_ulong) -> bool {
    // SAFETY: as for `kind_of`.
    !object.is_null() && unsafe { (*kind_of(object)).flags } & flag != 0
}

pub(crate) unsafe fn is_type(object: Object) -> bool {
    // SAFETY: as for `has`.
    unsafe { has(object, TYPE_SUBCLASS) }
}

pub(crate) unsafe fn is_text(object: Object) -> bool {
    // SAFETY: as for `has`.
    unsafe { has(object, UNICODE_SUBCLASS) }
}

pub(crate) unsafe fn is_bytes(object: Object) -> bool {
    // SAFETY: as for `has`.
    unsafe { has(object, BYTES_SUBCLASS) }
}

pub(crate) unsafe fn is_dict(object: Object) -> bool {
    // SAFETY: as for `has`.
    unsafe { has(object, DICT_SUBCLASS) }
}

pub(crate) unsafe fn is_list(object: Object) -> bool {
    // SAFETY: as for `has`.
    unsafe { has(object, LIST_SUBCLASS) }
}

pub(crate) unsafe fn is_tuple(object: Object) -> bool {
    // SAFETY: as for `has`.
    unsafe { has(object, TUPLE_SUBCLASS) }
}

pub(crate) unsafe fn is_int(object: Object) -> bool {
    // SAFETY: as for `has`.
    unsafe { has(object, LONG_SUBCLASS) }
}

/// Whether it is a module, or of a class derived from modules.
pub(crate) unsafe fn is_module(object: Object) -> bool {
    if object.is_null() {
        return false;
    }
    // SAFETY: the chain of bases of a type ends in null.
    unsafe {
        let mut kind = kind_of(object);
        while !kind.is_null() {
            if kind == &raw mut PyModule_Type {
                return true;
            }
            kind = (*kind).base;
        }
    }
    false
}

/// The text of a `str`; `None` for what is none, or cannot be said in UTF-8.
pub(crate) unsafe fn text_of(object: Object) -> Option<String> {
    // SAFETY: the pointer is valid as long as the object, and copied at once.
    unsafe {
        if !is_text(object) {
            return None;
        }
        let mut size = 0;
        let text = PyUnicode_AsUTF8AndSize(object, &raw mut size);
        if text.is_null() {
            PyErr_Clear();
            return None;
        }
        let bytes = core::slice::from_raw_parts(text.cast::<u8>(), usize::try_from(size).ok()?);
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// The content of a `bytes`, copied.
pub(crate) unsafe fn bytes_of(object: Object) -> Option<Vec<u8>> {
    // SAFETY: as for `text_of`.
    unsafe {
        if !is_bytes(object) {
            return None;
        }
        let (mut data, mut size) = (ptr::null_mut(), 0);
        if PyBytes_AsStringAndSize(object, &raw mut data, &raw mut size) != 0 {
            PyErr_Clear();
            return None;
        }
        Some(core::slice::from_raw_parts(data.cast::<u8>(), usize::try_from(size).ok()?).to_vec())
    }
}

/// An attribute, or null; what it raised is dropped. Only for objects whose class is not the product's.
pub(crate) unsafe fn attribute(object: Object, name: &CStr) -> Owned {
    // SAFETY: called with the lock held.
    unsafe {
        let found = PyObject_GetAttrString(object, name.as_ptr());
        if found.is_null() {
            PyErr_Clear();
        }
        Owned(found)
    }
}

pub(crate) unsafe fn text_attribute(object: Object, name: &CStr) -> Option<String> {
    // SAFETY: as for `attribute`.
    unsafe { text_of(attribute(object, name).0) }
}

/// The definition behind a getter or setter that a type's own dict holds.
pub(crate) unsafe fn get_set(kind: *mut Type, name: &CStr) -> *mut GetSet {
    // SAFETY: the caller names an attribute that is a getset descriptor of this type in 3.13.
    unsafe {
        let dict = Owned(PyType_GetDict(kind));
        let found = PyDict_GetItemString(dict.0, name.as_ptr());
        if found.is_null() || CStr::from_ptr((*kind_of(found)).name) != c"getset_descriptor" {
            return ptr::null_mut();
        }
        (*found.cast::<Descriptor>()).first.cast()
    }
}

/// Makes the slot wrapper that a type's own dict holds under `name` call `function`.
pub(crate) unsafe fn rewrap(kind: *mut Type, name: &CStr, function: *mut c_void) {
    // SAFETY: as for `get_set`, for a wrapper descriptor.
    unsafe {
        let dict = Owned(PyType_GetDict(kind));
        let found = PyDict_GetItemString(dict.0, name.as_ptr());
        if !found.is_null() && CStr::from_ptr((*kind_of(found)).name) == c"wrapper_descriptor" {
            (*found.cast::<Descriptor>()).wrapped = function;
        }
    }
}
