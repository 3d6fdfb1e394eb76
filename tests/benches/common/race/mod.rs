//! What every race over IPMI has: a farm of BMCs, contestants, turns, times and costs.

pub mod contest;
pub mod cost;
pub mod farm;
pub mod floor;
pub mod goals;
pub mod line;
pub mod ours;
pub mod powerman;
pub mod series;
pub mod subject;
pub mod surroundings;
