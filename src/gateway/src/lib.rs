//! picketd: the daemon.
