//! The driver `aws`.
