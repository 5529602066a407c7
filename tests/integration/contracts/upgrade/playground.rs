//! What the playground starts with, and that it survives a restart.
