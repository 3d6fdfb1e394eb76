//! The protocol: its style, and its bytes on the wire.

mod common;
mod style;
mod wire;
