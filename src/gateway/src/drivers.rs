//! The drivers that this gateway has: one line each.

use picket_driver::DriverKind;

/// All of them. A new driver is one more line here.
pub(crate) fn kinds() -> Vec<Box<dyn DriverKind>> {
    vec![Box::new(picket_driver_ipmi::IpmiKind), Box::new(picket_driver_sim::SimKind::default())]
}
