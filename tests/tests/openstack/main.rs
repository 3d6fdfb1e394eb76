//! The OpenStack of the tests, looked at with openstacksdk alone: a test that relies on a cloud that lies by mistake shows nothing.

mod faults;
mod hosts;
mod scene;
mod volumes;
