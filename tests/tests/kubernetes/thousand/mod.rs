//! The controller before a thousand Nodes (four hundred beside the other tests), whose kubelets are kwok's, of a real API server with real controllers, and before a real gateway.

mod cost;
mod nodes;
mod scene;
mod story;
