//! The conformance suite that every driver runs through.
