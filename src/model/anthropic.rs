//! (anthropic)
