//! Engines on a network in memory, under a clock that moves when it is told to.

mod attack;
mod claim;
mod find;
mod meet;
mod relay;
mod world;
