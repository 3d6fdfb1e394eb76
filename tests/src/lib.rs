//! End to end, against peers that others wrote.
