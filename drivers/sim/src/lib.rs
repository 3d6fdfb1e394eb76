//! A simulated fleet with faults.
