//! Whose code runs: frames to sides, the stack to the one who does it.
//!
//! A frame belongs to the side of its code's file. Files of the library, of the runner and of the harness belong to
//! nobody: whoever called them does what they do. Code without a file is the product's when product code compiled or
//! ran it (`own`), else that of the file its globals name, else nobody's.

use crate::py::{self, Object, Owned};
use core::ptr;
use std::collections::{HashMap, HashSet};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Product,
    Sealed,
    Harness,
    Runner,
    Library,
    /// A file that is nowhere: what `exec` made.
    Nowhere,
}

impl Side {
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "product" => Self::Product,
            "sealed" => Self::Sealed,
            "harness" => Self::Harness,
            "runner" => Self::Runner,
            "library" => Self::Library,
            _ => return None,
        })
    }

    fn decides(self) -> bool {
        match self {
            Self::Product | Self::Sealed => true,
            Self::Harness | Self::Runner | Self::Library | Self::Nowhere => false,
        }
    }
}

#[derive(Default)]
pub(crate) struct Sides {
    /// Longest first.
    prefixes: Vec<(String, Side)>,
    /// By the file name object, which is kept alive.
    cache: HashMap<usize, Side>,
    /// Code objects that product code made out of text; kept alive.
    made: HashSet<usize>,
    /// The code at the bottom of the session's stack.
    bottom: usize,
}

/// How many levels of the stack are looked at: recursion in a product must not make every look dear.
const DEPTH: usize = 400;
const OWN: usize = 50_000;
const CACHE: usize = 50_000;

/// The stack at one moment.
pub(crate) struct Scene {
    /// The frame that runs, and its side.
    pub(crate) inner: Option<(Owned, Side)>,
    /// The nearest side that decides.
    pub(crate) owner: Option<Side>,
    /// Which of the frames, counted from the inside, that was.
    pub(crate) distance: usize,
    /// The stack was looked through, and its outermost frame is the session's.
    pub(crate) session: bool,
}

impl Sides {
    pub(crate) fn set(&mut self, mut prefixes: Vec<(String, Side)>) {
        prefixes.sort_by_key(|(prefix, _)| core::cmp::Reverse(prefix.len()));
        self.prefixes = prefixes;
        for file in self.cache.drain() {
            drop(Owned(file.0 as Object));
        }
    }

    /// Whether it lies in no place that anything is loaded from.
    pub(crate) fn is_foreign(&self, path: &str) -> bool {
        let fits = |prefix: &str| path == prefix || path.starts_with(prefix);
        path.starts_with('/') && !self.prefixes.iter().any(|(prefix, _)| fits(prefix))
    }

    pub(crate) fn of_path(&self, path: &str) -> Side {
        let fits = |prefix: &str| {
            path == prefix || (prefix.ends_with(['/', '<', ' ']) && path.starts_with(prefix))
        };
        self.prefixes
            .iter()
            .find(|(prefix, _)| fits(prefix))
            .map_or_else(|| nowhere(path), |(_, side)| *side)
    }

    /// The side of a code object by its file alone.
    pub(crate) unsafe fn of_code(&mut self, code: Object) -> Side {
        if self.made.contains(&(code as usize)) {
            return Side::Product;
        }
        // SAFETY: called with the lock held and a code object.
        unsafe {
            let file = py::attribute(code, c"co_filename");
            if let Some(side) = self.cache.get(&(file.0 as usize)) {
                return *side;
            }
            let side = py::text_of(file.0).map_or(Side::Nowhere, |path| self.of_path(&path));
            if self.cache.len() < CACHE && !file.0.is_null() {
                self.cache.insert(file.0 as usize, side);
                core::mem::forget(file);
            }
            side
        }
    }

    unsafe fn of_frame(&mut self, frame: Object) -> Side {
        // SAFETY: called with the lock held and a frame.
        unsafe {
            let code = Owned(py::PyFrame_GetCode(frame));
            let side = self.of_code(code.0);
            if side != Side::Nowhere {
                return side;
            }
            let globals = Owned(py::PyFrame_GetGlobals(frame));
            self.of_globals(globals.0)
        }
    }

    /// Only what decides counts: a dict can name any file of the library as its own.
    pub(crate) unsafe fn of_globals(&self, globals: Object) -> Side {
        // SAFETY: called with the lock held; the item is borrowed and read at once.
        unsafe {
            if !py::is_dict(globals) {
                return Side::Nowhere;
            }
            let file = py::PyDict_GetItemString(globals, c"__file__".as_ptr());
            match py::text_of(file).map(|path| self.of_path(&path)) {
                Some(side) if side.decides() => side,
                Some(_) | None => Side::Nowhere,
            }
        }
    }

    /// The side of a function's code, or of the module that a class says it is of.
    pub(crate) unsafe fn of_value(&mut self, value: Object) -> Side {
        // SAFETY: called with the lock held; each object is asked only for what its exact type has.
        unsafe {
            if py::is(value, &raw mut py::PyFunction_Type) {
                return self.of_code(py::PyFunction_GetCode(value));
            }
            if py::is(value, &raw mut py::PyMethod_Type) {
                return self.of_value(py::PyMethod_Function(value));
            }
            for (kind, name) in [
                (&raw mut py::PyClassMethod_Type, c"__func__"),
                (&raw mut py::PyStaticMethod_Type, c"__func__"),
                (&raw mut py::PyProperty_Type, c"fget"),
            ] {
                if py::is(value, kind) {
                    let inner = py::attribute(value, name);
                    return self.of_value(inner.0);
                }
            }
            if py::is(value, &raw mut py::PyModule_Type) {
                return self.of_module(value);
            }
            if py::is_type(value) {
                return self.of_class(value.cast());
            }
            if value.is_null() || value == py::none() {
                return Side::Library;
            }
            let kind = py::kind_of(value);
            let name = core::ffi::CStr::from_ptr((*kind).name);
            if name == c"functools.partial" {
                let inner = py::attribute(value, c"func");
                return self.of_value(inner.0);
            }
            if (*kind).flags & py::HEAP_TYPE != 0 {
                return self.of_class(kind);
            }
            Side::Library
        }
    }

    /// A class is the product's as soon as one function of it is, whatever module it says it is of.
    pub(crate) unsafe fn of_class(&mut self, kind: *mut py::Type) -> Side {
        // SAFETY: called with the lock held; functions are only asked for their code.
        unsafe {
            let dict = Owned(py::PyType_GetDict(kind));
            let (mut at, mut key, mut value) = (0, ptr::null_mut(), ptr::null_mut());
            while py::PyDict_Next(dict.0, &raw mut at, &raw mut key, &raw mut value) != 0 {
                if py::is(value, &raw mut py::PyFunction_Type)
                    && self.of_code(py::PyFunction_GetCode(value)) == Side::Product
                {
                    return Side::Product;
                }
            }
            self.of_type(kind)
        }
    }

    /// The side of the module that a class was made in; its name for it must lead to a module with that side.
    pub(crate) unsafe fn of_type(&self, kind: *mut py::Type) -> Side {
        // SAFETY: called with the lock held; items of dicts are borrowed and read at once.
        unsafe {
            if (*kind).flags & py::HEAP_TYPE == 0 {
                return Side::Library;
            }
            let dict = Owned(py::PyType_GetDict(kind));
            let name = py::PyDict_GetItemString(dict.0, c"__module__".as_ptr());
            if !py::is_text(name) {
                return Side::Nowhere;
            }
            let module = py::PyDict_GetItemWithError(py::modules(), name);
            if !py::is_module(module) {
                return Side::Nowhere;
            }
            self.of_module(module)
        }
    }

    pub(crate) unsafe fn of_module(&self, module: Object) -> Side {
        // SAFETY: as for `of_type`.
        unsafe {
            let dict = py::PyModule_GetDict(module);
            let file = py::PyDict_GetItemString(dict, c"__file__".as_ptr());
            match py::text_of(file) {
                Some(path) => self.of_path(&path),
                // Built in, or frozen.
                None => Side::Library,
            }
        }
    }

    /// Product code made this code, and all code within.
    pub(crate) unsafe fn own(&mut self, code: Object) {
        // SAFETY: called with the lock held and a code object; constants are a tuple.
        unsafe {
            if self.made.len() >= OWN || !self.made.insert(code as usize) {
                return;
            }
            py::Py_IncRef(code);
            let constants = py::attribute(code, c"co_consts");
            for n in 0..py::PyTuple_Size(constants.0).max(0) {
                let inner = py::PyTuple_GetItem(constants.0, n);
                if py::is(inner, &raw mut py::PyCode_Type) {
                    self.own(inner);
                }
            }
        }
    }

    pub(crate) unsafe fn look(&mut self) -> Scene {
        let mut scene = Scene {
            inner: None,
            owner: None,
            distance: 0,
            session: false,
        };
        // SAFETY: called with the lock held; the running frame is borrowed and so taken once more.
        unsafe {
            let mut frame = py::PyEval_GetFrame();
            if frame.is_null() {
                return scene;
            }
            py::Py_IncRef(frame);
            for distance in 0..DEPTH {
                let side = self.of_frame(frame);
                if distance == 0 {
                    py::Py_IncRef(frame);
                    scene.inner = Some((Owned(frame), side));
                }
                if scene.owner.is_none() && side.decides() {
                    scene.owner = Some(side);
                    scene.distance = distance;
                }
                let code = Owned(py::PyFrame_GetCode(frame));
                let back = py::PyFrame_GetBack(frame);
                py::Py_DecRef(frame);
                frame = back;
                if frame.is_null() {
                    scene.session = code.0 as usize == self.bottom;
                }
                if frame.is_null() || scene.owner.is_some() {
                    break;
                }
            }
            if !frame.is_null() {
                py::Py_DecRef(frame);
            }
        }
        scene
    }

    /// The thread that calls this is the session's.
    pub(crate) unsafe fn begin(&mut self) {
        // SAFETY: as for `look`.
        unsafe {
            let mut frame = Owned(py::PyEval_GetFrame());
            if !frame.0.is_null() {
                py::Py_IncRef(frame.0);
            }
            while !frame.0.is_null() {
                self.bottom = Owned(py::PyFrame_GetCode(frame.0)).0 as usize;
                frame = Owned(py::PyFrame_GetBack(frame.0));
            }
        }
    }

    /// The side of the n-th frame from the inside.
    pub(crate) unsafe fn nth(&mut self, n: usize) -> (Side, Owned) {
        // SAFETY: as for `look`.
        unsafe {
            let mut frame = py::PyEval_GetFrame();
            if !frame.is_null() {
                py::Py_IncRef(frame);
            }
            for _ in 0..n {
                if frame.is_null() {
                    break;
                }
                let back = py::PyFrame_GetBack(frame);
                py::Py_DecRef(frame);
                frame = back;
            }
            if frame.is_null() {
                return (Side::Nowhere, Owned(ptr::null_mut()));
            }
            let side = self.of_frame(frame);
            (side, Owned(frame))
        }
    }
}

/// A file that is nobody's can only be one that was written in the attempt: the product's. What is no path is no file.
fn nowhere(path: &str) -> Side {
    if path.starts_with('/') {
        Side::Product
    } else {
        Side::Nowhere
    }
}

impl Scene {
    pub(crate) fn inner_side(&self) -> Side {
        self.inner.as_ref().map_or(Side::Nowhere, |(_, side)| *side)
    }

    pub(crate) fn frame(&self) -> Object {
        self.inner
            .as_ref()
            .map_or(ptr::null_mut(), |(frame, _)| frame.0)
    }

    pub(crate) fn by_product(&self) -> bool {
        self.owner == Some(Side::Product)
    }

    /// Neither product nor sealed code is on the stack, and it is not the session's: a thread, or a callback of C
    /// code, that product code left behind.
    pub(crate) fn stray(&self) -> bool {
        self.owner.is_none() && !self.session
    }
}
