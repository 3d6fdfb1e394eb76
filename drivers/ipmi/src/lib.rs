//! IPMI 2.0 over LAN.
