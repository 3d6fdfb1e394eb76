//! Stores of the node records: memory and embedded.
