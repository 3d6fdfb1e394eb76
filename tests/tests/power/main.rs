//! Off is off: what the gateway says of a machine is held against the machine itself, a real one behind a BMC that others wrote.

mod bmc;
mod peers;
mod survival;
