//! (playground)
