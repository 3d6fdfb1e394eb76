//! Instances of Compute Engine, as the peer of the tests has it, which other people's clients must agree with first.

mod clients;
mod law;
mod world;
