//! Bad input, and a bad world: each is told with what was wrong, where, and what would be right; nothing is begun.

mod callers;
mod devices;
mod full_disk;
mod home;
mod places;
mod secrets;
mod services;
mod settings;
mod start;
