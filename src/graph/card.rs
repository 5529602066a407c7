//! The state of a card, derived only from its action's record.
//!
//! All code that draws a card (the step that asks, the click that decides, the outcome) uses
//! [`ActionRecord::card_state`], so a card never shows anything that is not in its record.

use countersign_core::{
    ids::{ChannelId, UserId},
    reply::{CardState, EndedBy, FollowUp, Meter, Text},
};

use super::action::{ActionRecord, Approver, ErrorKind, Escalation, IS_BACK, Outcome, Policy, Status, Undo, Verdict};

/// The label of the button that withdraws a request.
pub const WITHDRAW: &str = "Withdraw";

impl ActionRecord {
    /// Returns the state of the card.
    pub fn card_state(&self) -> CardState {
        match self.status {
            Status::Proposed | Status::Pending => CardState::Open {
                approval: self.approval.clone(),
                asked_by: self.requested_by.clone(),
                deciders: match self.is_out_of_reach() {
                    true => Text::from("no one here"),
                    false => self.deciders(),
                },
                expires_at: self.expires_at,
                digest: self.digest.short().to_owned(),
                approved_by: self.approved_by(),
                needed: self.policy.needed,
                edited_by: self.edited_by(),
                because: self.policy.because.clone(),
                is_risky: self.scope.is_risky,
                ended_by: self.ended_by(),
                origin: self.origin(),
            },
            Status::Approved | Status::Intent => CardState::Running {
                by: self.approved_by(),
                at: self.decisions.last().map_or(self.requested_at, |decision| decision.at),
                meter: self.meter(),
                is_elsewhere: self.requested_by.key().is_some(),
            },
            Status::Done
            | Status::Failed
            | Status::Unknown
            | Status::Settled
            | Status::Rejected
            | Status::Expired
            | Status::Superseded
            | Status::Cancelled => CardState::Closed {
                decision: self.decision_line(),
                outcome: self.outcome_line(),
                digest: self.digest.short().to_owned(),
                approval: Some(self.approval.clone()),
                follow_ups: self.follow_ups(),
                newer: self.replaced_by.as_ref().map(|newer| newer.slot.clone()),
                asked_by: Some(self.requested_by.clone()),
                edited_by: self.edited_by(),
                is_suggested: self.is_suggested(),
            },
        }
    }

    /// Returns the buttons with which the request can be ended. A label other than that of a rejection serves both.
    fn ended_by(&self) -> EndedBy {
        let Policy { approvers, also, .. } = &*self.policy;
        let own = |approver: &Approver| *approver == Approver::Requester;
        let of_readers = |approver: &Approver| own(approver) || *approver == Approver::Channel;
        let mut all = approvers.iter().chain(also.iter().flatten()).chain(self.brought_in());
        let is_alone = match self.thread.channel.is_direct() {
            true => all.all(of_readers),
            false => !approvers.is_empty() && all.all(own),
        };
        match self.card.asks_for_reason() && !self.is_judged_by(&self.requested_by) {
            true if is_alone => EndedBy::Withdrawing,
            true => EndedBy::Both,
            false => EndedBy::Rejecting,
        }
    }

    /// Returns what no person named of a suggested change, as the first line of its card.
    fn origin(&self) -> Option<Text> {
        Some(self.evidence.suggested.as_ref()?.sentence(&self.requested_by))
    }

    /// Returns the action that would undo the change; `None` unless the change was made and is still to be undone.
    pub fn possible_undo(&self) -> Option<&Undo> {
        let is_back = matches!(&self.outcome, Some(Outcome::Done { result, .. }) if result[IS_BACK] == true);
        self.undo.as_deref().filter(|_| self.status == Status::Done && !is_back)
    }

    /// Returns the buttons of the closed card.
    pub fn follow_ups(&self) -> Vec<FollowUp> {
        let again = || FollowUp::Again("Try again".to_owned());
        match self.status {
            // Only the program itself can ask again.
            Status::Failed if self.requested_by.key().is_some() => Vec::new(),
            Status::Unknown if self.requested_by.key().is_some() => vec![FollowUp::MarkDone, FollowUp::Abandon],
            Status::Done => self.possible_undo().into_iter().map(|undo| FollowUp::Undo(undo.label.clone())).collect(),
            Status::Failed => match &self.outcome {
                Some(Outcome::Failed { error: ErrorKind::NotFound | ErrorKind::Already, .. }) => Vec::new(),
                _ => vec![again()],
            },
            Status::Unknown => vec![FollowUp::Check, FollowUp::MarkDone, again(), FollowUp::Abandon],
            Status::Rejected | Status::Cancelled if self.card.editable => vec![FollowUp::Change],
            _ => Vec::new(),
        }
    }

    /// Returns the people who edited the request, each once.
    pub fn edited_by(&self) -> Vec<UserId> {
        let mut people: Vec<UserId> = Vec::new();
        for edit in &self.edits {
            if !people.contains(&edit.by) {
                people.push(edit.by.clone());
            }
        }
        people
    }

    /// Returns true if no one can approve it in its conversation: only readers of the conversation
    /// may approve it, the person who asked is the only reader, and their approval is not enough.
    pub fn is_out_of_reach(&self) -> bool {
        let Policy { approvers, also, own_request, needed, .. } = &*self.policy;
        let readers = |approver: &Approver| matches!(approver, Approver::Channel | Approver::Requester);
        let of_readers = std::iter::once(approvers).chain(also).any(|list| list.iter().all(readers));
        let alone = self.thread.channel.is_direct() && !approvers.is_empty() && of_readers;
        alone && (!own_request || *needed > 1)
    }

    /// Returns the progress, if the change is made in batches.
    fn meter(&self) -> Option<Meter> {
        if let Some(note) = self.waits_for_claim() {
            let (approval, seconds_left, asks) = (self.approval.clone(), None, None);
            return Some(Meter { approval, done: 0, total: 1, seconds_left, note, asks });
        }
        let progress = self.progress.as_ref()?;
        let elapsed = self.progress_at?.since(self.intent_at?);
        Some(Meter {
            approval: self.approval.clone(),
            done: progress.done,
            total: progress.total,
            seconds_left: progress.left(elapsed).map(|left| left.as_secs()),
            note: progress.note.clone(),
            asks: self.waits.as_ref().and_then(|wait| wait.open_question().cloned()),
        })
    }

    /// Returns the title without the question mark, for lists and sentences.
    pub fn act(&self) -> &str {
        self.card.title.trim().trim_end_matches('?')
    }

    /// Describes the decision, with the people and the time.
    pub fn decision_line(&self) -> Text {
        let Some(last) = self.decisions.last() else {
            return Text::from("Not decided");
        };
        if let (Some(under), Verdict::Approved) = (&self.under, &last.verdict) {
            if under.is_setting() {
                let line = Text::from("Approved by the operator's setting ").code(&under.id);
                return line.plain(" · ").moment(last.at);
            }
            let granted = under.granted_by.iter().enumerate().fold(Text::new(), |text, (nth, person)| {
                if nth > 0 { text.plain(" and ").person(person.clone()) } else { text.person(person.clone()) }
            });
            let line = Text::from("Approved under the standing approval ").code(&under.id).plain(" of ");
            return line.join(granted).plain(" · ").moment(last.at);
        }
        let by = |text: Text, who: &Option<UserId>| match who {
            Some(user) => text.plain(" by ").person(user.clone()),
            None => text,
        };
        let line = match &last.verdict {
            Verdict::Approved => {
                self.approved_by().into_iter().enumerate().fold(Text::from("Approved by "), |line, (n, user)| {
                    if n == 0 { line.person(user) } else { line.plain(" and ").person(user) }
                })
            }
            Verdict::Rejected { .. } => by(Text::from("Rejected"), &last.by),
            Verdict::Expired => match self.approvals_so_far() {
                None => Text::from("Expired: no one decided in time"),
                Some((count, who)) => {
                    let line = Text::from("Expired: ").plain(count).plain(" had approved (").join(who);
                    line.plain(") when it expired")
                }
            },
            Verdict::Cancelled => {
                by(Text::from(if self.was_closed_by_another() { "Closed" } else { "Withdrawn" }), &last.by)
            }
            Verdict::Superseded if self.was_edited() => by(Text::from("Edited"), &last.by),
            Verdict::Superseded => Text::from("Replaced by a newer request"),
            Verdict::Obsolete { why } => return why.clone(),
        };
        let line = line.plain(" · ").moment(last.at);
        match &last.verdict {
            Verdict::Rejected { reason: Some(reason) } => line.plain(" · ").italic(reason.clone()),
            _ => line,
        }
    }

    /// Returns the count of approvals so far, such as “1 of 2”, and the people; `None` if there are none.
    pub fn approvals_so_far(&self) -> Option<(String, Text)> {
        let so_far = self.approved_by();
        let count = format!("{} of {}", so_far.len(), self.policy.needed);
        let mut who = Text::new();
        for (n, person) in so_far.iter().enumerate() {
            who = if n > 0 { who.plain(" and ") } else { who }.person(person.clone());
        }
        (!so_far.is_empty()).then_some((count, who))
    }

    /// Returns true if it was cancelled by a person who neither asked for it nor edited it.
    pub fn was_closed_by_another(&self) -> bool {
        let last = self.decisions.last();
        last.is_some_and(|last| {
            last.verdict == Verdict::Cancelled && last.by.as_ref().is_some_and(|by| !self.is_request_of(by))
        })
    }

    fn outcome_line(&self) -> Option<Text> {
        let mark = match self.status {
            Status::Done if self.cut_short => "⏹ ",
            Status::Done => "✅ ",
            Status::Failed => "❌ ",
            Status::Unknown | Status::Settled => "❔ ",
            _ => return None,
        };
        let line = Text::from(mark).join(self.outcome.as_ref()?.summary().clone());
        match (self.status, self.intent_at) {
            (Status::Unknown, Some(sent)) => Some(line.plain(" It was sent ").moment(sent).plain(".")),
            _ => Some(line),
        }
    }
}

impl ActionRecord {
    /// Names those who may decide, as the subject of a sentence: “anyone in this channel”.
    pub fn deciders(&self) -> Text {
        self.deciders_of(if self.thread.channel.is_direct() { AskedIn::Directly } else { AskedIn::Here })
    }

    /// Names the people who may decide, for a reader outside the channel of the request: “anyone in
    /// #research”.
    pub fn deciders_elsewhere(&self) -> Text {
        self.deciders_of(AskedIn::Elsewhere(&self.thread.channel))
    }

    fn deciders_of(&self, place: AskedIn<'_>) -> Text {
        let Policy { approvers, also, own_request, apart, .. } = &*self.policy;
        let usual = ApproverLists { approvers: approvers.iter().collect(), also, apart: apart.as_deref() };
        let more: Vec<_> = match also.as_slice() {
            [] => self.brought_in().iter().filter(|one| !approvers.contains(one)).collect(),
            _ => self.brought_in().iter().collect(),
        };
        let but = match (own_request, self.edits.is_empty()) {
            (true, _) => "",
            (false, true) => "the requester",
            (false, false) => "the requester and editors",
        };
        approvers_text(usual, more, but, place, |approver| self.is_excluded(approver))
    }

    /// Returns the people whom the escalation adds and who could not decide before.
    pub fn newcomers(&self) -> Vec<&Approver> {
        let Policy { approvers, also, escalation, .. } = &*self.policy;
        let mut new: Vec<&Approver> = Vec::new();
        for approver in escalation.iter().flat_map(|escalation| &escalation.approvers) {
            let known = (also.is_empty() && approvers.contains(approver)) || new.contains(&approver);
            if !known && !self.is_excluded(approver) {
                new.push(approver);
            }
        }
        new
    }

    /// Names the added people, as the subject of a sentence.
    pub fn newcomers_in_words(&self) -> Text {
        let new = ApproverLists { approvers: self.newcomers(), also: &[], apart: None };
        approvers_text(new, Vec::new(), "", AskedIn::Here, |_| false)
    }

    /// Returns true if the approver may not decide because it is their own request.
    fn is_excluded(&self, approver: &Approver) -> bool {
        let is_own = match approver {
            Approver::Requester => true,
            Approver::User(user) => self.is_request_of(user),
            Approver::Channel | Approver::Group(_) => false,
        };
        is_own && !self.policy.own_request
    }
}

impl Policy {
    /// Names those who may decide, as the subject of a sentence: “anyone in this channel”.
    pub fn deciders(&self) -> Text {
        let but = if self.own_request { "" } else { "the requester" };
        let listed = ApproverLists {
            approvers: self.approvers.iter().collect(),
            also: &self.also,
            apart: self.apart.as_deref(),
        };
        approvers_text(listed, Vec::new(), but, AskedIn::Here, |approver| {
            *approver == Approver::Requester && !self.own_request
        })
    }
}

impl Escalation {
    /// Names the additional people who may decide, as the subject of a sentence.
    pub fn deciders(&self) -> Text {
        let listed = ApproverLists { approvers: self.approvers.iter().collect(), also: &[], apart: None };
        approvers_text(listed, Vec::new(), "", AskedIn::Here, |_| false)
    }
}

/// The place where a sentence is read.
#[derive(Clone, Copy)]
enum AskedIn<'a> {
    /// In the channel of the request.
    Here,
    /// In the direct message of the request.
    Directly,
    /// Elsewhere, with the channel of the request.
    Elsewhere(&'a ChannelId),
}

/// The people who are in the list `approvers` and in every list of `also`.
struct ApproverLists<'a> {
    approvers: Vec<&'a Approver>,
    also: &'a [Vec<Approver>],
    /// The contexts whose lists have nobody in common, if that is the reason why nobody may decide.
    apart: Option<&'a [String]>,
}

/// Names the people who may decide: those of `usual` and `more`, except `but` and those for whom
/// `is_excluded` returns true.
fn approvers_text(
    usual: ApproverLists<'_>,
    more: Vec<&Approver>,
    but: &str,
    place: AskedIn<'_>,
    is_excluded: impl Fn(&Approver) -> bool,
) -> Text {
    let ApproverLists { approvers, also, apart } = usual;
    if approvers.is_empty() && more.is_empty() {
        return nobody_may_decide(apart);
    }
    let eligible = |named: Vec<&Approver>| {
        let mut eligible: Vec<Approver> = Vec::new();
        for approver in named {
            if !is_excluded(approver) && !eligible.contains(approver) {
                eligible.push(approver.clone());
            }
        }
        eligible
    };
    let (mut usual, mut more) = (eligible(approvers), eligible(more));
    if also.is_empty() {
        usual.append(&mut more);
    }
    let who = match usual.as_slice() {
        [] if more.is_empty() => {
            return Text::from(format!("no one (only {but} is listed, and another person has to approve this)"));
        }
        [] => join_approvers(Text::new(), &more, place, "anyone in "),
        usual => {
            let lists = also.iter().fold(join_approvers(Text::new(), usual, place, "anyone in "), |who, list| {
                join_approvers(who.plain(", who also has to be "), list, place, "in ")
            });
            if more.is_empty() { lists } else { join_approvers(lists.plain(", or "), &more, place, "anyone in ") }
        }
    };
    match usual.as_slice() {
        _ if but.is_empty() => who,
        [Approver::Channel] if also.is_empty() => who.plain(format!(" except {but}")),
        _ => who.plain(format!(" (but not {but})")),
    }
}

/// Describes that nobody may decide, with the reason.
fn nobody_may_decide(apart: Option<&[String]>) -> Text {
    match apart {
        None => Text::from("no one (no approvers are configured)"),
        Some([]) => Text::from("no one (the lists of approvers that apply have no one in common)"),
        Some(contexts) => {
            let named = Text::listed(contexts.iter().map(|context| Text::new().code(context)), "and");
            Text::from("no one (the approvers of ").join(named).plain(" have no one in common)")
        }
    }
}

/// Joins the names of approvers, as in `a member of S1, @bo or anyone in this channel`. `within`
/// precedes the channel.
fn join_approvers(who: Text, approvers: &[Approver], place: AskedIn<'_>, within: &str) -> Text {
    let named = |approver: &Approver| match approver {
        Approver::Channel => match place {
            AskedIn::Here => Text::from(format!("{within}this channel")),
            AskedIn::Directly => Text::from(format!("{within}this conversation")),
            AskedIn::Elsewhere(channel) if channel.is_direct() => {
                Text::from(format!("{within}the conversation of the request"))
            }
            AskedIn::Elsewhere(channel) => Text::from(within).channel(channel.clone()),
        },
        Approver::Requester => Text::from("the requester"),
        Approver::User(user) => Text::new().person(user.clone()),
        Approver::Group(group) => Text::from("a member of ").group(group),
    };
    who.join(Text::listed(approvers.iter().map(named), "or"))
}
