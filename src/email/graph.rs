//! The construction of the mail graph.

use std::{collections::BTreeMap, sync::Arc};

use countersign_graph::{
    action::ActionKind,
    definition::{DefinitionError, Graph},
};

use super::{
    MAIL,
    deps::Deps,
    listener::MailListener,
    nodes::{
        answered::Answered, classify::Classify, close::Close, decide::Decide, execute_tools::ExecuteTools,
        generate::Generate, retrieve::Retrieve, review::Review, start::Start, talk::Talk,
    },
    send::SendAnswer,
    spam::MarkAsSpam,
    state::MailState,
};

/// Returns the kinds of action of the mail graph.
pub fn actions(deps: &Deps) -> BTreeMap<&'static str, Arc<dyn ActionKind>> {
    let send = send_answer(deps);
    let spam = MarkAsSpam { account: deps.account.clone(), book: deps.book.clone() };
    let kinds: [Arc<dyn ActionKind>; 2] = [Arc::new(send), Arc::new(spam)];
    kinds.into_iter().map(|kind| (kind.name(), kind)).collect()
}

fn send_answer(deps: &Deps) -> SendAnswer {
    SendAnswer {
        account: deps.account.clone(),
        book: deps.book.clone(),
        clock: deps.clock.clone(),
        in_flight: deps.in_flight,
    }
}

/// Builds the mail graph.
///
/// # Errors
///
/// Fails if the nodes do not fit together, which is a bug.
pub fn mail_graph(deps: Arc<Deps>) -> Result<Graph<MailState>, DefinitionError> {
    let kinds = actions(&deps);
    Graph::builder(MAIL, Start::NAME, MailListener)
        .node(Start::new(deps.clone()))
        .node(Classify::new(deps.clone()))
        .node(Retrieve::new(deps.clone()))
        .node(Decide::new(deps.clone()))
        .node(ExecuteTools::new(deps.clone()))
        .node(Generate::new(deps.clone()))
        .node(Review::new(deps.clone(), kinds))
        .node(Talk::new(deps.clone()))
        .node(Answered::new(deps.clone()))
        .node(Close::new(deps))
        .build()
}
