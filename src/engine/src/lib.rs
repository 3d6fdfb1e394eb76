//! Where the rules meet I/O.
