//! The thread as people see it.
