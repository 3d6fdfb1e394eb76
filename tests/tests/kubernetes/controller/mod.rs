//! The controller before a real API server with real controllers, and before a real gateway by mTLS. Nodes are plain objects, whose kubelets the
//! tests play: their leases and their status are what a controller sees of a machine.

mod api;
mod escalated;
mod faulty;
mod held;
mod joined;
mod kubelets;
mod missing;
mod moved;
mod nhc;
mod not_back;
mod policies;
mod remediated;
mod retired;
mod scene;
mod trio;
mod upgraded;
mod waiting;
mod wishes;
