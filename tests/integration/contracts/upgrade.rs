//! (contracts/upgrade)
