//! Settings: raw to checked, every fault at once.
