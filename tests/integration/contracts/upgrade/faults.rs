//! The stand-in going wrong on purpose, and its ledger telling what happened all the same.
