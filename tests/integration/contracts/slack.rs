//! (contracts/slack)
