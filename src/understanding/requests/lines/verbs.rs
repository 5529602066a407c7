//! The verbs in lines, with which a change is asked for.

use super::{Call, Lines, written::beginnings};
use crate::{asked, intents::Intent};

impl Lines {
    /// Returns the verbs of the lines whose calls `is_meant` accepts: all forms of those without an order, and the first
    /// words of the others.
    pub(crate) fn verbs(&self, is_meant: impl Fn(&Call) -> bool) -> Vec<String> {
        let mut verbs: Vec<String> =
            self.intents.iter().filter(|intent| is_meant(intent.call())).flat_map(Intent::verbs).cloned().collect();
        for line in self.lines.iter().filter(|line| is_meant(&self.calls[line.call_index])) {
            let mut firsts = Vec::new();
            beginnings(&line.parts, &mut firsts);
            verbs.extend(firsts.into_iter().filter(|first| asked::is_verb(first)));
        }
        verbs
    }
}
