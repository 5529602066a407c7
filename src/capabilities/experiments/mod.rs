//! (capabilities/experiments)
