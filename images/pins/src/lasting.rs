//! Objects that a CPython interpreter has, made immortal where they lie, for the harness: what is immortal is not written to
//! when it is used, so its page stays shared with the processes that are forked later.
//!
//! It follows objects as the garbage collector does and never makes, ends or moves one. Whoever calls it has looked whether
//! heads of objects are laid out as here (CPython 3.12 to 3.13, PEP 683).

use crate::sys::{c_int, c_void};

const IMMORTAL: u32 = u32::MAX;
const COLLECTED: u64 = 1 << 14;

#[repr(C)]
struct Object {
    references: u32,
    _high: u32,
    kind: *const Kind,
}

type Visit = unsafe extern "C" fn(*mut Object, *mut c_void) -> c_int;
type Traverse = unsafe extern "C" fn(*mut Object, Visit, *mut c_void) -> c_int;
type IsCollected = unsafe extern "C" fn(*mut Object) -> c_int;

/// A type, as far as it matters: its flags, how to see what its instances hold, and which of them may be asked.
#[repr(C)]
struct Kind {
    _before: [usize; 21],
    flags: u64,
    _doc: usize,
    traverse: Option<Traverse>,
    _between: [usize; 17],
    is_collected: Option<IsCollected>,
}

struct Walk {
    todo: Vec<*mut Object>,
    made: usize,
}

/// # Safety
/// `walk` is a [`Walk`] that nobody else has.
unsafe extern "C" fn visit(object: *mut Object, walk: *mut c_void) -> c_int {
    // SAFETY: the caller's promise; a collector's visitor is given objects that live.
    unsafe {
        if let (Some(walk), Some(found)) = (walk.cast::<Walk>().as_mut(), object.as_mut())
            && found.references != IMMORTAL
        {
            found.references = IMMORTAL;
            walk.made += 1;
            walk.todo.push(object);
        }
    }
    0
}

/// These objects, and what can be reached from them through containers; how many there were.
///
/// # Safety
/// `objects` are `count` objects that live, of an interpreter whose only thread this is.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn tribunal_keep(objects: *const *mut c_void, count: usize) -> usize {
    let mut walk = Walk {
        todo: Vec::new(),
        made: 0,
    };
    let told = (&raw mut walk).cast::<c_void>();
    // SAFETY: the caller's promise. The walk is used through the pointer alone while objects are visited.
    unsafe {
        for number in 0..count {
            visit((*objects.add(number)).cast(), told);
        }
        loop {
            let Some(object) = (*told.cast::<Walk>()).todo.pop() else {
                return (*told.cast::<Walk>()).made;
            };
            let kind = &*(*object).kind;
            // Types that an extension wrote down are not to be asked, though types are.
            let collected = kind.flags & COLLECTED != 0
                && kind
                    .is_collected
                    .is_none_or(|is_collected| is_collected(object) != 0);
            if let (true, Some(traverse)) = (collected, kind.traverse) {
                traverse(object, visit, told);
            }
        }
    }
}
