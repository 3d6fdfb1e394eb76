//! The command line before a gateway that plays a script.

mod broken;
mod common;
mod complete;
mod exits;
mod failed;
mod fence;
mod fence_options;
mod help;
mod history;
mod init;
mod limits;
mod many;
mod people;
mod pki;
mod quickstart;
mod session;
mod several;
mod show;
mod storing;
mod terminal;
mod truth;
mod watch;
