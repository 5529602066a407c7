//! Layout and imports.
