//! What is in deploy/ for clusters: the image and the chart, before the clients that others wrote.

mod certificates;
mod chart;
mod fleet;
mod image;
mod installed;
mod lost;
mod members;
mod plugin;
mod refused;
mod same;
mod variants;
