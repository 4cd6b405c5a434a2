//! Rules about where things stand in the sources, each of which fails as a test: what differs between systems is in twins
//! (`platforms`), and the modules of a crate have an order (`cycles`).
#[path = "architecture/cycles.rs"]
mod cycles;
#[path = "architecture/modules.rs"]
mod modules;
#[path = "architecture/order.rs"]
mod order;
#[path = "architecture/platforms.rs"]
mod platforms;
#[path = "architecture/reader.rs"]
mod reader;
#[path = "architecture/tokens.rs"]
mod tokens;
