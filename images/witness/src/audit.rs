//! The audit hook: what product code asks the interpreter for and has no business with, to a fact.
//!
//! It refuses nothing: an event that honest code causes too is seen on base as well, and the judge takes that off. What
//! is told names the event and the thing asked for, nothing that differs from run to run.

use crate::py::{self, Object};
use crate::sides::{Scene, Side, Sides};
use std::ffi::CStr;
use std::path::{Component, Path, PathBuf};

/// Told by their name alone.
const TOLD: &[&str] = &[
    "gc.get_objects",
    "gc.get_referrers",
    "gc.get_referents",
    "sys.settrace",
    "sys.setprofile",
    "sys._current_frames",
    "sys._current_exceptions",
    "sys.addaudithook",
    "sys.monitoring.register_callback",
    "ctypes.call_function",
    "ctypes.PyObj_FromPtr",
    "ctypes.string_at",
    "ctypes.wstring_at",
    "ctypes.cdata",
    "ctypes.cdata/buffer",
    "ctypes.addressof",
    "ctypes.create_string_buffer",
    "cpython._PySys_ClearAuditHooks",
    "code.__new__",
    "marshal.loads",
    "marshal.load",
    "sys.set_asyncgen_hooks_firstiter",
]; // fmt: skip
/// Told with the name that is asked for.
const NAMED: &[&str] = &["ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle"];
/// Whose arguments may name a file that the product must not open.
const FILES: &[&str] = &[
    "open",
    "os.open",
    "os.listdir",
    "os.scandir",
    "os.link",
    "os.symlink",
    "shutil.copyfile",
    "shutil.copytree",
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "glob.glob",
]; // fmt: skip

#[derive(Default)]
pub(crate) struct Audit {
    /// Sealed test files and conftests, absolute, and their bare names.
    pub(crate) sealed: Vec<(String, String)>,
    /// Names in the environment that are pins.
    pub(crate) pinned: Vec<String>,
    /// Where the session was before product code went elsewhere.
    home: Option<PathBuf>,
}

impl Audit {
    pub(crate) unsafe fn event(
        &mut self,
        sides: &mut Sides,
        event: &str,
        arguments: Object,
    ) -> Option<String> {
        // SAFETY: called with the lock held, with the event's own tuple of arguments.
        unsafe {
            if event == "exec" || event == "function.__new__" {
                return self.made(sides, arguments);
            }
            if event == "os.putenv" || event == "os.unsetenv" {
                return self.environment(sides, event, arguments);
            }
            if event == "os.chdir" || event == "open" {
                let moved = self.working_directory(sides, event, arguments);
                if moved.is_some() {
                    return moved;
                }
            }
            if event == "import" {
                return self.finders(sides, arguments);
            }
            if event == "compile" {
                return self.compiled(sides, arguments);
            }
            if event == "object.__setattr__" || event == "object.__delattr__" {
                return self.attribute(sides, arguments);
            }
            if FILES.contains(&event) {
                return self.file(sides, event, arguments);
            }
            let named = NAMED.contains(&event);
            if !named && !TOLD.contains(&event) {
                return None;
            }
            let scene = sides.look();
            if !(scene.by_product() || scene.stray()) || own_import(&scene, event) {
                return None;
            }
            if !named {
                return Some(event.to_owned());
            }
            let last = py::PyTuple_Size(arguments) - 1;
            let name = py::text_of(py::PyTuple_GetItem(arguments, last.max(0)));
            py::PyErr_Clear();
            Some(format!("{event} {}", name.unwrap_or_default()))
        }
    }

    /// Code that product code runs out of a text is the product's, whatever file it says it is of.
    unsafe fn made(&self, sides: &mut Sides, arguments: Object) -> Option<String> {
        // SAFETY: as for `event`.
        unsafe {
            let code = py::PyTuple_GetItem(arguments, 0);
            if !py::is(code, &raw mut py::PyCode_Type) {
                py::PyErr_Clear();
                return None;
            }
            let file = py::text_attribute(code, c"co_filename").unwrap_or_default();
            let foreign = sides.is_foreign(&file);
            if !foreign && sides.of_code(code) != Side::Nowhere {
                return None;
            }
            let scene = sides.look();
            if !(scene.by_product() || scene.stray()) {
                return None;
            }
            sides.own(code);
            foreign.then(|| "code from outside src and its dependencies".to_owned())
        }
    }

    /// A pin that tests read from the environment.
    unsafe fn environment(
        &self,
        sides: &mut Sides,
        event: &str,
        arguments: Object,
    ) -> Option<String> {
        // SAFETY: as for `event`.
        unsafe {
            let name = py::PyTuple_GetItem(arguments, 0);
            let name = py::text_of(name).or_else(|| {
                py::bytes_of(name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            })?;
            if !self.pinned.contains(&name) {
                return None;
            }
            let scene = sides.look();
            (scene.by_product() || scene.stray()).then(|| format!("{event} {name}"))
        }
    }

    /// A sealed test opens a file by a relative name, and product code left it in another directory.
    unsafe fn working_directory(
        &mut self,
        sides: &mut Sides,
        event: &str,
        arguments: Object,
    ) -> Option<String> {
        if event == "open" && self.home.is_none() {
            return None;
        }
        // SAFETY: as for `event`.
        unsafe {
            let scene = sides.look();
            if event == "os.chdir" {
                // Asked once: in a path longer than the kernel tells, the C library searches for it folder by folder.
                if !(scene.by_product() || scene.stray()) {
                    self.home = None;
                } else if self.home.is_none() {
                    self.home = std::env::current_dir().ok();
                }
                return None;
            }
            let here = std::env::current_dir().ok();
            let name = py::text_of(py::PyTuple_GetItem(arguments, 0))?;
            let lost =
                scene.owner == Some(Side::Sealed) && !name.starts_with('/') && self.home != here;
            lost.then(|| "a sealed test was left in another directory".to_owned())
        }
    }

    /// Who will be asked for a module: a finder of the product can answer for any.
    unsafe fn finders(&self, sides: &mut Sides, arguments: Object) -> Option<String> {
        // SAFETY: as for `event`.
        unsafe {
            for (n, name) in [(3, "sys.meta_path"), (4, "sys.path_hooks")] {
                let list = py::PyTuple_GetItem(arguments, n);
                py::PyErr_Clear();
                if !py::is_list(list) {
                    continue;
                }
                for n in 0..py::PyList_Size(list) {
                    if sides.of_value(py::PyList_GetItem(list, n)) == Side::Product {
                        return Some(format!("{name} holds a finder of the product"));
                    }
                }
            }
            None
        }
    }

    /// A text compiled under the name of a file that says something else.
    unsafe fn compiled(&self, sides: &mut Sides, arguments: Object) -> Option<String> {
        // SAFETY: as for `event`.
        unsafe {
            let (source, file) = (
                py::PyTuple_GetItem(arguments, 0),
                py::PyTuple_GetItem(arguments, 1),
            );
            py::PyErr_Clear();
            let file = py::text_of(file)?;
            if matches!(sides.of_path(&file), Side::Product | Side::Nowhere) {
                return None;
            }
            let scene = sides.look();
            if !(scene.by_product() || scene.stray()) {
                return None;
            }
            let source =
                py::bytes_of(source).or_else(|| py::text_of(source).map(String::into_bytes));
            if source.is_some() && source == std::fs::read(&file).ok() {
                return None;
            }
            Some(format!("compile as {}", base_name(&file)))
        }
    }

    /// A new class, code or base for what is not the product's.
    unsafe fn attribute(&self, sides: &mut Sides, arguments: Object) -> Option<String> {
        // SAFETY: as for `event`.
        unsafe {
            let (object, name) = (
                py::PyTuple_GetItem(arguments, 0),
                py::PyTuple_GetItem(arguments, 1),
            );
            py::PyErr_Clear();
            let name = py::text_of(name)?;
            // Names and texts are the dicts' affair, code and defaults the functions'.
            if !matches!(name.as_str(), "__class__" | "__bases__") {
                return None;
            }
            if object.is_null() || matches!(sides.of_value(object), Side::Product | Side::Nowhere) {
                return None;
            }
            let scene = sides.look();
            if !(scene.by_product() || scene.stray()) {
                return None;
            }
            let kind = CStr::from_ptr((*py::kind_of(object)).name).to_string_lossy();
            Some(format!("{name} of a {kind} replaced"))
        }
    }

    unsafe fn file(&self, sides: &mut Sides, event: &str, arguments: Object) -> Option<String> {
        // SAFETY: as for `event`.
        unsafe {
            let scene = sides.look();
            if !(scene.by_product() || scene.stray()) {
                return None;
            }
            let mut names = Vec::new();
            texts(sides, arguments, &mut names, 0);
            let hit = names.iter().find_map(|name| self.forbidden(event, name))?;
            (!shows_source(sides, &scene)).then(|| format!("{event} {hit}"))
        }
    }

    /// A sealed test file, or the memory of a process.
    fn forbidden(&self, event: &str, name: &str) -> Option<String> {
        let program = matches!(
            event,
            "subprocess.Popen" | "os.exec" | "os.posix_spawn" | "os.spawn" | "os.system"
        );
        for (path, bare) in &self.sealed {
            if program && (name.contains(bare.as_str()) || name.contains(path.as_str())) {
                return Some(bare.clone());
            }
            if !program && base_name(name) == bare {
                return Some(bare.clone());
            }
        }
        if program {
            return name.contains("/proc/").then(|| "/proc".to_owned());
        }
        let path = resolved(name);
        if self
            .sealed
            .iter()
            .any(|(sealed, _)| path == Path::new(sealed))
        {
            return Some(base_name(name).to_owned());
        }
        let text = path.to_string_lossy();
        let private = [
            "mem",
            "maps",
            "smaps",
            "fd",
            "fdinfo",
            "map_files",
            "stack",
            "auxv",
            "pagemap",
        ];
        let in_proc = text.starts_with("/proc/") && !text.starts_with("/proc/sys/");
        if in_proc
            && path
                .components()
                .any(|c| matches!(c, Component::Normal(n) if private.iter().any(|p| n == *p)))
        {
            return Some("/proc of a process".to_owned());
        }
        None
    }
}

/// Modules are loaded on behalf of whoever imports them, by the interpreter's own importer.
unsafe fn own_import(scene: &Scene, event: &str) -> bool {
    if event != "marshal.loads" && event != "code.__new__" {
        return false;
    }
    // SAFETY: the scene's frame is alive.
    unsafe {
        let frame = scene.frame();
        if frame.is_null() {
            return false;
        }
        let code = py::Owned(py::PyFrame_GetCode(frame));
        let file = py::text_attribute(code.0, c"co_filename").unwrap_or_default();
        let inner = scene.inner_side() != Side::Product && scene.inner_side() != Side::Nowhere;
        (event == "marshal.loads" && file.starts_with("<frozen importlib"))
            || (event == "code.__new__" && inner)
    }
}

/// `traceback` and `warnings` show the line that they are about, through `linecache`.
unsafe fn shows_source(sides: &mut Sides, scene: &Scene) -> bool {
    let mut seen = false;
    for n in 0..scene.distance {
        // SAFETY: called with the lock held; frames within the distance are there.
        unsafe {
            let (_, frame) = sides.nth(n);
            if frame.0.is_null() {
                return false;
            }
            let code = py::Owned(py::PyFrame_GetCode(frame.0));
            let file = py::text_attribute(code.0, c"co_filename").unwrap_or_default();
            seen |= file.ends_with("/linecache.py");
            if seen && (file.ends_with("/traceback.py") || file.ends_with("/warnings.py")) {
                return true;
            }
        }
    }
    false
}

/// Every text among the arguments, and in the lists among them.
unsafe fn texts(sides: &mut Sides, value: Object, into: &mut Vec<String>, depth: u8) {
    // SAFETY: called with the lock held; items are borrowed and read at once. A path's `__fspath__` is asked only
    // where it is the library's own.
    unsafe {
        if value.is_null() || depth > 3 || into.len() > 256 {
            return;
        }
        if let Some(text) = py::text_of(value) {
            into.push(text);
        } else if let Some(bytes) = py::bytes_of(value) {
            into.push(String::from_utf8_lossy(&bytes).into_owned());
        } else if py::is_tuple(value) {
            for n in 0..py::PyTuple_Size(value) {
                texts(sides, py::PyTuple_GetItem(value, n), into, depth + 1);
            }
        } else if py::is_list(value) {
            for n in 0..py::PyList_Size(value) {
                texts(sides, py::PyList_GetItem(value, n), into, depth + 1);
            }
        } else if !py::is_int(value) && sides.of_class(py::kind_of(value)) == Side::Library {
            let path = py::Owned(py::PyOS_FSPath(value));
            py::PyErr_Clear();
            if py::is_text(path.0) || py::is_bytes(path.0) {
                texts(sides, path.0, into, depth + 1);
            }
        }
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Where a name leads, links followed as far as they can be.
fn resolved(name: &str) -> PathBuf {
    let absolute = std::path::absolute(name).unwrap_or_else(|_| PathBuf::from(name));
    std::fs::canonicalize(&absolute).unwrap_or(absolute)
}
