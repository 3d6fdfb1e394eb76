//! Redfish (DMTF DSP0266) over HTTPS.
//!
//! **Purpose.** Power, identity and hold of a computer system by its manager: `ForceOff`, `On`, `PowerState`.
//! **Non-goals.** No plain HTTP, no redirects but to the same place with or without its last slash, no HTTP/2, no events, no discovery on the network; no reset, no cycle, no push of a button.
//!
//! # Invariants
//!
//! - One request is in flight a device.
//! - Only a whole, uncached answer whose `PowerState` is exactly `Off` is off (S1). Shown by
//!   `only_exactly_off_is_off`, `what_is_no_whole_answer_is_never_off`.
//! - No `ResetType` is sent that the service does not offer. Shown by
//!   `without_force_off_there_is_no_driver_for_it`.
//! - Nothing is sent to another host than the settings name, whatever links and `Location` say. Shown by
//!   `a_link_is_a_path_of_our_own_host_or_nothing`,
//!   `a_redirect_to_another_place_host_port_or_scheme_is_not_followed`.
//!
//! # What ends a late command (S8)
//!
//! A command is a few hundred bytes on a TCP connection that this driver holds. TCP delivers them once, in order or not at
//! all: there are no late *copies* of a command, but there are late commands. Three things may keep one:
//!
//! 1. *This process*, stopped between the permit and the sending. Nothing here ends that.
//! 2. *This machine's kernel*: what was written and is not acknowledged is sent again for a quarter of an hour, also while the
//!    process is stopped. `TCP_USER_TIMEOUT` ends that after ten seconds, and every connection is closed by a reset that throws
//!    away what was not sent yet; both help, and neither is a bound, because a virtual machine may stand still as a whole.
//! 3. *The service*, which reads a request late or works at it for long.
//!
//! So the far side has to bound it, and it does so by the *session*: a command carries the session's token, and one that comes
//! after the session was deleted, or after it lay idle for `SessionTimeout` (DSP0266, "Redfish session login authentication"; `SessionService.SessionTimeout`,
//! DSP2046), is answered 401 and does nothing. The session that carried a command is deleted before the opposite command, and
//! a deletion that was not answered is waited out: its idle limit and five percent. The session's place stands in the ledger with the
//! command, which goes in no other session; whoever leads later deletes it (`ending`). What the settings say of that limit is
//! compared with what the service says. An off may land for one such limit after its sender stopped. An on may leave when its
//! session is nearly over, which renews it: two limits, as with IPMI.
//!
//! Basic authentication has no session: nothing ends a late command. Where the settings allow it, the bound is what the
//! operator says (`max_life`), or there is none, and then no on is sent while such a command is open.
//!
//! What no session ends is a *task* (202 Accepted): it is followed until the service says that it ended, and a session
//! is not said to be over before that. A command that had no clear answer may have become one: after its session's end nothing
//! may be at work at the service, as after the end of another's. A gateway that dies meanwhile leaves the task to the bound above, which is true of services
//! that finish a reset within their session limit.
//!
//! # Why not a ready client
//!
//! Clients with a pool of connections open a new one when the old one is gone, and shake hands for TLS *after* the permit was
//! asked, or send again what may have been sent. Here the permit is asked when the connection stands, before each request that
//! changes something (S6), and nothing is sent twice that the caller did not count. So the driver holds its one connection
//! itself (hyper's HTTP/1 on tokio-rustls).
//!
//! From the wire inwards: `connection` (one request after another), `encoding` (of bodies), `service_request` and `answer`, `session` (tokens),
//! `service` (what was found), `discovery` (how), `redirect`, `machine_identity` (whose machine it is), `manager_life` (restarts of the manager),
//! `agreement` (whether they show), `line` (one conversation; `login`, `ready` and
//! `manager_check` are its parts), `power`, `task`, `unclear`, `hold` (by a `policy`; `bios`: a remark where there is none), `closing`, `ending`
//! (what is said in it), `quirks` (what vendors do), `driver`.

mod agreement;
mod answer;
mod bios;
mod closing;
mod connection;
mod discovery;
mod driver;
mod encoding;
mod ending;
mod exchange;
mod hold;
mod kind;
mod line;
mod login;
mod machine_identity;
mod manager_check;
mod manager_life;
mod oddities;
mod policy;
mod pool;
mod power;
mod quirks;
mod ready;
mod redirect;
mod service;
mod service_request;
mod session;
mod settings;
mod task;
mod unclear;

pub use driver::RedfishDriver;
pub use kind::RedfishKind;
pub use settings::Settings;
