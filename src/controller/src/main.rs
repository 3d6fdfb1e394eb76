//! `picket-controller`.

fn main() {}
