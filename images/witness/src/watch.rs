//! Watched dicts and functions: a change that product code makes to what is not its own, to a fact.
//!
//! Armed are the dicts of every module that is not the product's and of the classes in it, as soon as a module is in
//! `sys.modules`; `sys.modules` itself; and what the harness names. A change counts when product code does it: its
//! frame is the nearest that decides. What a library changes in itself is its own affair, what sealed code does is
//! allowed (monkeypatch and mock run on its behalf) unless it puts product code in the place of something.

use crate::py::{self, Object, Owned};
use crate::sides::{Scene, Side, Sides};
use core::ptr;
use std::collections::HashMap;
use std::rc::Rc;

const ADDED: i32 = 0;
const DELETED: i32 = 2;
const CLONED: i32 = 3;
const CLEARED: i32 = 4;
pub(crate) const DEALLOCATED: i32 = 5;

const MODIFY_CODE: i32 = 2;
const MODIFY_KWDEFAULTS: i32 = 4;

/// Documented places for a program's own value.
const SETTABLE: &[&str] = &[
    "sys.excepthook",
    "sys.displayhook",
    "sys.breakpointhook",
    "sys.stdout",
    "sys.stderr",
    "sys.stdin",
    "sys.path",
    "sys.argv",
    "sys.tracebacklimit",
    "sys.ps1",
    "sys.ps2",
    "sys.dont_write_bytecode",
    "sys.last_exc",
    "sys.last_type",
    "sys.last_value",
    "sys.last_traceback",
    "sys.modules",
    "tempfile.tempdir",
    "logging.raiseExceptions",
    "logging.logThreads",
    "logging.logProcesses",
    "logging.logMultiprocessing",
    "logging.lastResort",
    "warnings.filters",
    "socket.SO_REUSEPORT",
]; // fmt: skip
/// What the interpreter and the standard library hang on modules and classes of others.
const OF_THE_LANGUAGE: &[&str] = &[
    "__warningregistry__",
    "__annotations__",
    "__slotnames__",
    "__annotations_cache__",
];
/// What a library of the runner sets in itself when a product asks it to, and the product may not ask.
const SET_BY_ASKING: &[&str] = &["_current_profile", "global_force_seed"];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Standard library and dependencies.
    Library,
    /// pytest, Hypothesis and what they need.
    Runner,
    /// Sealed modules, the harness, and what the harness names: any change counts.
    Strict,
    /// `sys.modules`.
    Modules,
}

struct Armed {
    group: Group,
    /// Module, or module and class.
    name: Rc<str>,
    /// The class whose dict it is, or null.
    kind: *mut py::Type,
}

pub(crate) struct Watch {
    dicts: i32,
    armed: HashMap<usize, Armed>,
    /// Opcodes that store or delete a name.
    pub(crate) stores: Vec<u8>,
    /// The one that `import *` runs as.
    pub(crate) star: u8,
}

/// What is done to a watched dict.
pub(crate) struct Change {
    pub(crate) event: i32,
    pub(crate) dict: Object,
    pub(crate) key: Object,
    pub(crate) new: Object,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self {
            dicts: -1,
            armed: HashMap::new(),
            stores: Vec::new(),
            star: 0,
        }
    }

    pub(crate) fn start(&mut self, dicts: i32) {
        self.dicts = dicts;
    }

    pub(crate) fn is_started(&self) -> bool {
        self.dicts >= 0
    }

    pub(crate) fn armed(&self) -> usize {
        self.armed.len()
    }

    pub(crate) unsafe fn forget(&mut self, dict: Object) {
        self.armed.remove(&(dict as usize));
    }

    /// Every module that is there.
    pub(crate) unsafe fn arm_all(&mut self, sides: &mut Sides) {
        // SAFETY: called with the lock held; nothing in the loop changes `sys.modules`.
        unsafe {
            let modules = py::modules();
            self.arm(
                modules,
                Group::Modules,
                "sys.modules".to_owned(),
                ptr::null_mut(),
            );
            let (mut at, mut key, mut value) = (0, ptr::null_mut(), ptr::null_mut());
            while py::PyDict_Next(modules, &raw mut at, &raw mut key, &raw mut value) != 0 {
                self.arm_module(sides, key, value);
            }
        }
    }

    unsafe fn arm_module(&mut self, sides: &mut Sides, key: Object, module: Object) {
        // SAFETY: as for `arm_all`.
        unsafe {
            if !py::is_module(module) {
                return;
            }
            let group = match sides.of_module(module) {
                Side::Product => return,
                Side::Sealed | Side::Harness => Group::Strict,
                Side::Runner => Group::Runner,
                Side::Library | Side::Nowhere => Group::Library,
            };
            let dict = py::PyModule_GetDict(module);
            if self.armed.contains_key(&(dict as usize)) {
                return;
            }
            let name = py::text_of(key).unwrap_or_default();
            self.arm(dict, group, name, ptr::null_mut());
            let (mut at, mut inner, mut value) = (0, ptr::null_mut(), ptr::null_mut());
            while py::PyDict_Next(dict, &raw mut at, &raw mut inner, &raw mut value) != 0 {
                self.arm_class(sides, value, 0);
            }
        }
    }

    /// A class that is not the product's, and the classes in it. A static or immutable class cannot be changed.
    unsafe fn arm_class(&mut self, sides: &mut Sides, value: Object, depth: u8) {
        // SAFETY: as for `arm_all`.
        unsafe {
            if !py::is_type(value) || depth > 3 {
                return;
            }
            let kind: *mut py::Type = value.cast();
            if (*kind).flags & py::HEAP_TYPE == 0 || (*kind).flags & py::IMMUTABLE_TYPE != 0 {
                return;
            }
            let dict = Owned(py::PyType_GetDict(kind));
            if self.armed.contains_key(&(dict.0 as usize)) {
                return;
            }
            let group = match sides.of_class(kind) {
                Side::Product => return,
                Side::Sealed | Side::Harness => Group::Strict,
                Side::Runner => Group::Runner,
                Side::Library | Side::Nowhere => Group::Library,
            };
            let of = py::text_of(py::PyDict_GetItemString(dict.0, c"__module__".as_ptr()));
            let class = core::ffi::CStr::from_ptr((*kind).name).to_string_lossy();
            self.arm(
                dict.0,
                group,
                format!("{}.{class}", of.unwrap_or_default()),
                kind,
            );
            let (mut at, mut key, mut inner) = (0, ptr::null_mut(), ptr::null_mut());
            while py::PyDict_Next(dict.0, &raw mut at, &raw mut key, &raw mut inner) != 0 {
                self.arm_class(sides, inner, depth + 1);
            }
        }
    }

    pub(crate) unsafe fn arm(
        &mut self,
        dict: Object,
        group: Group,
        name: String,
        kind: *mut py::Type,
    ) {
        // SAFETY: called with the lock held and a dict; a failure leaves it unwatched, and no exception.
        unsafe {
            if py::PyDict_Watch(self.dicts, dict) == 0 {
                self.armed.insert(
                    dict as usize,
                    Armed {
                        group,
                        name: name.into(),
                        kind,
                    },
                );
            } else {
                py::PyErr_Clear();
            }
        }
    }

    /// What this change is called, if it counts.
    pub(crate) unsafe fn change(&mut self, sides: &mut Sides, change: &Change) -> Option<String> {
        // SAFETY: called with the lock held, from the interpreter's own call for a dict that is alive.
        unsafe {
            let armed = self.armed.get(&(change.dict as usize))?;
            let (group, kind, name) = (armed.group, armed.kind, Rc::clone(&armed.name));
            if change.key.is_null() && change.event < CLONED {
                return None;
            }
            let old = match change.event {
                CLONED | CLEARED => ptr::null_mut(),
                _ => py::PyDict_GetItemWithError(change.dict, change.key),
            };
            if old == change.new && change.event < CLONED {
                return None;
            }
            if group == Group::Modules {
                let what = self.replaced_module(sides, change, old);
                if change.event == ADDED || what.is_none() {
                    self.arm_module(sides, change.key, change.new);
                }
                return what;
            }
            if change.event == ADDED {
                self.arm_class(sides, change.new, 0);
            }
            if change.event < CLONED && !worth(group, kind, change, old) {
                return None;
            }
            let scene = sides.look();
            let key = py::text_of(change.key).unwrap_or_else(|| "?".to_owned());
            if !self.guilty(sides, &scene, group, change, old)
                || OF_THE_LANGUAGE.contains(&key.as_str())
            {
                return None;
            }
            if group != Group::Strict && matches!(scene.inner_side(), Side::Library | Side::Runner)
            {
                let counts = if importer(&scene) {
                    false
                } else if self_made(&scene, &name) {
                    group == Group::Runner && SET_BY_ASKING.contains(&key.as_str())
                } else {
                    change.event == ADDED || callable(old)
                };
                if !counts {
                    return None;
                }
            }
            let full = format!("{name}.{key}");
            if group == Group::Library && SETTABLE.contains(&full.as_str()) {
                return None;
            }
            Some(match change.event {
                ADDED => format!("{full} added"),
                DELETED => format!("{full} removed"),
                CLONED | CLEARED => format!("{name} emptied"),
                _ => format!("{full} replaced"),
            })
        }
    }

    /// `sys.modules`: another object in the place of a module that is not the product's.
    unsafe fn replaced_module(
        &mut self,
        sides: &mut Sides,
        change: &Change,
        old: Object,
    ) -> Option<String> {
        // SAFETY: as for `change`.
        unsafe {
            if change.event < CLONED {
                if old.is_null() || !py::is_module(old) {
                    return None;
                }
                if !self
                    .armed
                    .contains_key(&(py::PyModule_GetDict(old) as usize))
                {
                    return None;
                }
            }
            let scene = sides.look();
            // An import that fails takes its module out again.
            let own = scene.inner_side() == Side::Library && change.event == DELETED;
            if own || !(scene.by_product() || scene.stray()) {
                return None;
            }
            let key = py::text_of(change.key).unwrap_or_else(|| "?".to_owned());
            Some(format!("sys.modules[{key}] replaced or removed"))
        }
    }

    /// Whether the running instruction is `import *`.
    unsafe fn stars(&self, scene: &Scene) -> bool {
        // SAFETY: as for `change`.
        unsafe { self.operation(scene).is_some_and(|op| op == self.star) }
    }

    unsafe fn operation(&self, scene: &Scene) -> Option<u8> {
        // SAFETY: as for `change`.
        unsafe {
            let frame = scene.frame();
            let code = Owned(py::PyFrame_GetCode(frame));
            let bytes = Owned(py::PyCode_GetCode(code.0));
            let at = usize::try_from(py::PyFrame_GetLasti(frame)).unwrap_or(usize::MAX);
            py::bytes_of(bytes.0).and_then(|bytes| bytes.get(at).copied())
        }
    }

    unsafe fn guilty(
        &self,
        sides: &mut Sides,
        scene: &Scene,
        group: Group,
        change: &Change,
        old: Object,
    ) -> bool {
        // SAFETY: as for `change`.
        unsafe {
            if scene.by_product() || scene.stray() {
                return true;
            }
            let inner = scene.inner_side();
            if inner == Side::Sealed && self.stars(scene) {
                // `import *` may bring names; it may not take those that the file, or the language, has already.
                return !old.is_null() || hides(ptr::null_mut(), change);
            }
            if inner == Side::Sealed {
                // A name that the sealed code does not say is not its own doing: something it called did this in C.
                return !self.says(scene, change.key);
            }
            group != Group::Strict && sides.of_value(change.new) == Side::Product
        }
    }

    /// Whether the running instruction of the sealed frame stores, or its code names the key.
    unsafe fn says(&self, scene: &Scene, key: Object) -> bool {
        // SAFETY: as for `change`.
        unsafe {
            if self
                .operation(scene)
                .is_some_and(|op| self.stores.contains(&op))
            {
                return true;
            }
            let code = Owned(py::PyFrame_GetCode(scene.frame()));
            let constants = py::attribute(code.0, c"co_consts");
            let key = py::text_of(key);
            let mut all = (0..py::PyTuple_Size(constants.0).max(0))
                .map(|n| py::PyTuple_GetItem(constants.0, n));
            key.is_none() || all.any(|constant| py::text_of(constant) == key)
        }
    }

    /// What is done to a function that is not the product's, if product code does it.
    pub(crate) unsafe fn function(
        &mut self,
        sides: &mut Sides,
        event: i32,
        function: Object,
        new: Object,
    ) -> Option<String> {
        if !(MODIFY_CODE..=MODIFY_KWDEFAULTS).contains(&event) {
            return None;
        }
        // SAFETY: as for `change`, for a function that is alive.
        unsafe {
            if sides.of_code(py::PyFunction_GetCode(function)) == Side::Product {
                return None;
            }
            let scene = sides.look();
            if !(scene.by_product() || scene.stray()) {
                return None;
            }
            // `types.coroutine` gives a function of the library a copy of its own code.
            let library = scene.inner_side() == Side::Library;
            if library
                && event == MODIFY_CODE
                && sides.of_code(new) == sides.of_code(py::PyFunction_GetCode(function))
            {
                return None;
            }
            let name = py::text_attribute(function, c"__qualname__").unwrap_or_default();
            let module = py::text_attribute(function, c"__module__").unwrap_or_default();
            let part = if event == MODIFY_CODE {
                "code"
            } else {
                "defaults"
            };
            Some(format!("{part} of {module}.{name} replaced"))
        }
    }
}

/// Whether the change could count at all: told without a look at the stack, because most changes are harmless.
unsafe fn worth(group: Group, kind: *mut py::Type, change: &Change, old: Object) -> bool {
    // SAFETY: as for `Watch::change`.
    unsafe {
        if change.event == ADDED {
            return match group {
                Group::Strict => !py::is_module(change.new),
                Group::Runner | Group::Library | Group::Modules => {
                    (callable(change.new) || !kind.is_null()) && hides(kind, change)
                }
            };
        }
        match group {
            Group::Strict | Group::Runner | Group::Modules => true,
            Group::Library => callable(old) || plain(old),
        }
    }
}

/// A new name that hides one: an inherited attribute, or a builtin.
unsafe fn hides(kind: *mut py::Type, change: &Change) -> bool {
    // SAFETY: as for `Watch::change`; both answers are borrowed and only compared with null.
    unsafe {
        let found = if kind.is_null() {
            py::PyDict_GetItemWithError(py::PyEval_GetBuiltins(), change.key)
        } else {
            py::_PyType_Lookup(kind, change.key)
        };
        !found.is_null()
    }
}

unsafe fn callable(value: Object) -> bool {
    // SAFETY: looks at a slot of the class only.
    !value.is_null() && unsafe { py::PyCallable_Check(value) != 0 || descriptor(value) }
}

unsafe fn descriptor(value: Object) -> bool {
    // SAFETY: compares the class only.
    unsafe {
        py::is(value, &raw mut py::PyClassMethod_Type)
            || py::is(value, &raw mut py::PyStaticMethod_Type)
            || py::is(value, &raw mut py::PyProperty_Type)
    }
}

/// A constant: a number or a text.
unsafe fn plain(value: Object) -> bool {
    // SAFETY: compares the class only.
    unsafe {
        py::is(value, &raw mut py::PyLong_Type)
            || py::is(value, &raw mut py::PyFloat_Type)
            || py::is(value, &raw mut py::PyUnicode_Type)
            || py::is(value, &raw mut py::PyBool_Type)
    }
}

/// Code of the same package does it: its globals say so, and its file is a library's.
unsafe fn self_made(scene: &Scene, name: &str) -> bool {
    // SAFETY: the frame is alive; the item is borrowed and read at once.
    unsafe {
        let globals = Owned(py::PyFrame_GetGlobals(scene.frame()));
        let of = py::text_of(py::PyDict_GetItemString(globals.0, c"__name__".as_ptr()));
        of.is_some_and(|of| top(&of) == top(name))
    }
}

/// The interpreter's own importer, which fills modules in and hangs them on their parents.
unsafe fn importer(scene: &Scene) -> bool {
    // SAFETY: the frame is alive.
    unsafe {
        let code = Owned(py::PyFrame_GetCode(scene.frame()));
        let file = py::text_attribute(code.0, c"co_filename");
        file.is_some_and(|file| file.starts_with("<frozen importlib"))
    }
}

fn top(name: &str) -> &str {
    name.split('.')
        .next()
        .unwrap_or_default()
        .trim_start_matches('_')
}
