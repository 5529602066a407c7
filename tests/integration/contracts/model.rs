//! (contracts/model)
