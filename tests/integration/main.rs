//! Everything that is tested from outside: one binary, so that it is linked once.

mod contracts;
mod dialogues;
mod durability;
mod page;
mod stores;
mod support;
mod tidy;
