//! The tool that ends watches and digests: which of them the words mean, and the question if that is not clear.

use countersign_capabilities::{ToolError, dates};
use countersign_graph::action::Reader;
use countersign_understanding::lexicon::fold;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    register::Contents,
    replies,
    tools::{Deps, answer, is_visible, nobody, unavailable},
    watch::{Digest, Watch},
};

/// The arguments of `stop_watching`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct StopArguments {
    /// The thing by name, if watches of one thing are to end.
    #[serde(default)]
    thing: Option<String>,
    /// The part to end: `watch` for the only watch, `digest` for one digest, `digests` for all of them, or `everything`.
    #[serde(default)]
    what: Option<String>,
    /// The days of the digest to end, such as `Monday` or `weekly`, if there are several.
    #[serde(default)]
    days: Option<String>,
    /// The time of day of the digest to end, such as `9am`, if there are several on these days.
    #[serde(default)]
    time: Option<String>,
}

impl StopArguments {
    /// Returns the digests that these arguments mean among those that the reader may stop. Without days, a digest of the
    /// thread itself is meant before others.
    fn digests<'d>(&self, all: &'d [Digest], reader: &Reader) -> Vec<&'d Digest> {
        let at = self.time.as_deref().and_then(dates::time_of_day);
        let is_meant = |digest: &&Digest| {
            is_visible(&digest.by, &digest.thread, reader)
                && self.days.as_deref().is_none_or(|days| digest.schedule.is_called(days))
                && at.is_none_or(|at| digest.schedule.at == at)
        };
        let meant: Vec<&Digest> = all.iter().filter(is_meant).collect();
        let here = |digest: &&Digest| reader.thread.as_ref() == Some(&digest.thread);
        match self.what.as_deref() {
            Some("everything" | "digests") => meant,
            Some("digest") if meant.iter().any(here) => meant.into_iter().filter(here).collect(),
            Some("digest") => meant,
            _ => Vec::new(),
        }
    }

    /// Returns the watches that these arguments mean among those that the reader may stop. Without a thing, a watch of
    /// the thread itself is meant before others.
    fn watches<'w>(&self, all: &'w [Watch], reader: &Reader) -> Vec<&'w Watch> {
        let name = self.thing.as_deref().map(fold);
        let is_named = |watch: &&Watch| {
            name.as_ref().is_some_and(|name| *name == fold(&watch.name) || *name == fold(&watch.thing))
        };
        let visible: Vec<&Watch> = all.iter().filter(|watch| is_visible(&watch.by, &watch.thread, reader)).collect();
        let here = |watch: &&Watch| reader.thread.as_ref() == Some(&watch.thread);
        match self.what.as_deref() {
            Some("everything") => visible,
            Some("watch") if name.is_none() && visible.iter().any(here) => visible.into_iter().filter(here).collect(),
            Some("watch") if name.is_none() => visible,
            _ => visible.into_iter().filter(is_named).collect(),
        }
    }

    /// Returns true if it has to be asked which of these watches is to end: one is meant, and there are several.
    fn is_unclear_watch(&self, watches: &[&Watch]) -> bool {
        self.what.as_deref() == Some("watch") && self.thing.is_none() && watches.len() > 1
    }

    /// Returns true if it has to be asked which of these digests is to end: one is meant, and their times differ.
    fn is_unclear(&self, digests: &[&Digest]) -> bool {
        let first = digests.first().map(|digest| &digest.schedule);
        self.what.as_deref() == Some("digest") && digests.iter().any(|digest| Some(&digest.schedule) != first)
    }
}

/// The outcome of a request to stop.
enum Stopped {
    /// These watches, and this number of digests, have ended.
    Ended(Vec<Watch>, usize),
    /// Nothing has ended, since one of these digests is meant.
    Unclear(Vec<Digest>),
    /// Nothing has ended, since one of these watches is meant.
    UnclearWatch(Vec<Watch>),
}

/// Ends watches and digests.
pub(super) async fn stop_watching(
    deps: &Deps,
    asked: StopArguments,
    reader: Option<&Reader>,
) -> Result<Value, ToolError> {
    let reader = reader.ok_or_else(nobody)?;
    let change = |contents: &mut Contents| {
        let digests = asked.digests(&contents.digests, reader);
        if asked.is_unclear(&digests) {
            return Stopped::Unclear(digests.into_iter().cloned().collect());
        }
        let watches = asked.watches(&contents.watches, reader);
        if asked.is_unclear_watch(&watches) {
            return Stopped::UnclearWatch(watches.into_iter().cloned().collect());
        }
        let ended: Vec<String> = digests.iter().map(|digest| digest.id.clone()).collect();
        let ended_watches: Vec<String> = watches.iter().map(|watch| watch.id.clone()).collect();
        let (over, others): (Vec<Watch>, Vec<Watch>) =
            std::mem::take(&mut contents.watches).into_iter().partition(|watch| ended_watches.contains(&watch.id));
        contents.watches = others;
        contents.digests.retain(|digest| !ended.contains(&digest.id));
        Stopped::Ended(over, ended.len())
    };
    Ok(answer(&match deps.book.change(change).await.map_err(|error| unavailable(&error))? {
        Stopped::Ended(watches, digests) => replies::stopped(&watches, digests),
        Stopped::Unclear(digests) => replies::which_digest(&digests),
        Stopped::UnclearWatch(watches) => replies::which_watch(&watches),
    }))
}
