//! The real daemon against BMCs that others wrote, over real machines, with other people's clients looking on.
//!
//! In every one of them a receiver of releases asks the node itself at each request: nothing is let go before it is off.

mod breach;
mod cycle;
mod hold;
mod host;
mod identity;
mod inside;
mod led_astray;
mod levels;
mod lies;
mod login;
mod network;
mod over_redfish;
mod over_sushy;
mod rack;
mod redfish;
mod restart;
mod scene;
mod silence;
mod switching;
