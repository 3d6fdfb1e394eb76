//! How much memory a thread holds at once, so that an input that makes a parser take more and more is seen.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, and what the present thread has of it.
pub struct Counted;

fn taken(bytes: usize) {
    // While a thread ends its counters may be gone already.
    let _ = HELD.try_with(|held| {
        held.set(held.get().saturating_add(bytes));
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

fn given_back(bytes: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(bytes)));
}

// SAFETY: every call goes to the system's allocator with what it was given; beside it only numbers are counted.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        given_back(layout.size());
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// What `work` came to, and the most bytes that this thread held at once within it, beyond what it held before.
pub fn most_within<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let done = work();
    (done, MOST.get() - before)
}
