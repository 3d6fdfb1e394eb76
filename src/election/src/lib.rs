//! Who leads: single.
