//! The controller before a real API server.
