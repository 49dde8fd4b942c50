//! Top-level modules that src would put before others: of the standard library, and of the runner.

use super::{Src, prefix_of, told};
use crate::git::Mode;
use crate::plan::{Finding, SrcEntry};
use crate::reason::Reason;

/// `sys.stdlib_module_names` of Python 3.13, on all platforms.
const STDLIB: &str = "\
    __future__ _abc _aix_support _android_support _ast _asyncio _bisect _blake2 _bz2 _codecs _codecs_cn \
    _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _collections _collections_abc _colorize \
    _compat_pickle _compression _contextvars _csv _ctypes _curses _curses_panel _datetime _dbm _decimal \
    _elementtree _frozen_importlib _frozen_importlib_external _functools _gdbm _hashlib _heapq _imp \
    _interpchannels _interpqueues _interpreters _io _ios_support _json _locale _lsprof _lzma _markupbase \
    _md5 _multibytecodec _multiprocessing _opcode _opcode_metadata _operator _osx_support _overlapped \
    _pickle _posixshmem _posixsubprocess _py_abc _pydatetime _pydecimal _pyio _pylong _pyrepl _queue _random \
    _scproxy _sha1 _sha2 _sha3 _signal _sitebuiltins _socket _sqlite3 _sre _ssl _stat _statistics _string \
    _strptime _struct _suggestions _symtable _sysconfig _thread _threading_local _tkinter _tokenize \
    _tracemalloc _typing _uuid _warnings _weakref _weakrefset _winapi _wmi _zoneinfo abc antigravity \
    argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 cProfile calendar cmath cmd \
    code codecs codeop collections colorsys compileall concurrent configparser contextlib contextvars copy \
    copyreg csv ctypes curses dataclasses datetime dbm decimal difflib dis doctest email encodings ensurepip \
    enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt \
    getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib importlib inspect io \
    ipaddress itertools json keyword linecache locale logging lzma mailbox marshal math mimetypes mmap \
    modulefinder msvcrt multiprocessing netrc nt ntpath nturl2path numbers opcode operator optparse os \
    pathlib pdb pickle pickletools pkgutil platform plistlib poplib posix posixpath pprint profile pstats \
    pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource \
    rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtplib socket \
    socketserver sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct \
    subprocess symtable sys sysconfig syslog tabnanny tarfile tempfile termios textwrap this threading time \
    timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing \
    unicodedata unittest urllib uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xml \
    xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// What the runner imports into the process that src shares: the modules of `images/python/requirements.txt`.
const RUNNER: [&str; 12] = [
    "pytest",
    "_pytest",
    "py",
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "hypothesis",
    "_hypothesis_pytestplugin",
    "_hypothesis_ftz_detector",
    "_hypothesis_globals",
    "sortedcontainers",
];

/// New top-level modules with a name of the standard library: base has none of that name on that import root.
pub(super) fn stdlib_shadows(import_roots: &[String], src: &Src<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for entry in src.changed() {
        for root in import_roots {
            let prefix = prefix_of(root);
            let Some(name) = top_level(prefix.as_bytes(), entry.path.as_bytes(), entry.entry.mode)
            else {
                continue;
            };
            if is_stdlib(name) && !base_has(src, prefix.as_bytes(), name) {
                findings.push(Finding::at(
                    Reason::OverlayModuleShadow,
                    &entry.path,
                    format!("it would be imported as the standard library's {name}"),
                ));
                break;
            }
        }
    }
    findings
}

/// The first module under src that the runner would import in the place of its own.
pub(super) fn runner_clash(
    import_roots: &[String],
    entries: &[SrcEntry],
) -> Option<(String, String)> {
    entries.iter().find_map(|entry| {
        let path = entry.path.as_bytes();
        let names = import_roots.iter().filter_map(|root| {
            top_level(prefix_of(root).as_bytes(), path, entry.entry.mode).map(str::to_owned)
        });
        let clash = names
            .into_iter()
            .find(|name| RUNNER.contains(&name.as_str()))?;
        Some((clash, told(path)))
    })
}

/// The name under which this leaf makes a top-level module importable. A folder without `__init__.py` never wins over a
/// module that stands later on the import path.
fn top_level<'p>(prefix: &[u8], path: &'p [u8], mode: Mode) -> Option<&'p str> {
    let rest = std::str::from_utf8(path.strip_prefix(prefix)?).ok()?;
    match rest.split_once('/') {
        Some((package, "__init__.py")) => Some(package),
        Some(_) => None,
        None => match (rest.strip_suffix(".py"), mode) {
            (Some(module), _) => Some(module),
            // It may lead to a package.
            (None, Mode::Symlink | Mode::Gitlink) => Some(rest),
            (None, Mode::File | Mode::Executable | Mode::Tree) => None,
        },
    }
}

fn is_stdlib(name: &str) -> bool {
    STDLIB.split_ascii_whitespace().any(|module| module == name)
}

fn base_has(src: &Src<'_>, prefix: &[u8], name: &str) -> bool {
    ["", ".py", "/__init__.py"].into_iter().any(|end| {
        let path = [prefix, name.as_bytes(), end.as_bytes()].concat();
        src.base.contains_key(path.as_slice())
    })
}
