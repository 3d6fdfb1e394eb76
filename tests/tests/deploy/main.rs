//! What is in deploy/ for clusters: the image, the packages, the chart and the alerts, before the clients that others wrote.

mod alerts;
mod certificates;
mod chart;
mod fleet;
mod image;
mod installed;
mod lost;
mod members;
mod packages;
mod plugin;
mod refused;
mod same;
mod variants;
