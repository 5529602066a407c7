//! Starting, stopping and the like, at once or at a moment; deleting.

use serde_json::{Map, Value, json};

use super::super::{
    changes::{DELETE, STATUS},
    intents::{Intent, Taken, Takes},
    slots::Slot,
    wish::Wish,
};

const NOUNS: &[&str] = &["enrollment", "enrolment", "up", "live"];
const NOW: &[Takes] = &[Takes::Subjects];
const LATER: &[Takes] = &[Takes::Subjects, Takes::Moment];
const ANY_TIME: &[Takes] = &[Takes::Subjects, Takes::Moment, Takes::Until];

/// A change of status: `with` is the status.
const fn row(verbs: &'static str, with: &'static str) -> Intent {
    Intent { action: STATUS, verbs, nouns: NOUNS, takes: NOW, make: become_now, with }
}

/// What can be done with an experiment as it is.
pub(super) const ROWS: &[Intent] = &[
    row(
        "start/starting/started|begin/beginning/begun|launch/launching/launched|run/running/run|go/going/gone|\
         activate/activating/activated|kick off/kicking off/kicked off|turn on/turning on/turned on|\
         switch on/switching on/switched on|enable/enabling/enabled|get running|get going|get started|bring live|\
         go live|take live|put live|set live|make live|set off|enroll/enrolling/enrolled|start enrolling|start enrolling users",
        "start",
    ),
    row(
        "resume/resuming/resumed|restart/restarting/restarted|unpause/unpausing/unpaused|continue/continuing/continued|\
         reopen/reopening/reopened|start again|bring back|take back up|pick up again|put back on",
        "resume",
    ),
    row(
        "stop/stopping/stopped|halt/halting/halted|turn off/turning off/turned off|switch off/switching off/switched off|\
         disable/disabling/disabled|shut down/shutting down/shut down|shut off|take offline|stop enrolling|stop enrolling users|stop enrolling new users|stop enrolling students|\
         stop new users",
        "stop",
    ),
    row("pause/pausing/paused|suspend/suspending/suspended|put hold|put pause|put ice", "pause"),
    row(
        "cancel/cancelling/cancelled|cancel/canceling/canceled|abort/aborting/aborted|call off/calling off/called off|cancel good|stop good|end good|terminate good",
        "cancel",
    ),
    row("archive/archiving/archived|can go archive|go archive|move archive|put archive|send archive", "archived"),
    row("unschedule/unscheduling/unscheduled", "unschedule"),
    row("deactivate/deactivating/deactivated", "inactive"),
    Intent {
        action: STATUS,
        verbs: "start/starting/started|begin/beginning/begun|launch/launching/launched|run/running/run|activate/activating/activated|\
                kick off/kicking off/kicked off|turn on/turning on/turned on|go live|enable/enabling/enabled|starts|begins",
        nouns: NOUNS,
        takes: LATER,
        make: scheduled,
        with: "",
    },
    Intent {
        action: STATUS,
        verbs: "schedule/scheduling/scheduled|schedule start|reschedule/rescheduling/rescheduled|postpone/postponing/postponed|\
                delay/delaying/delayed|put off|bring forward|move start|move start date|change start|change start date|\
                set start|set start date|shift start|postpone start|delay start|set start time|change start time|move start time",
        nouns: &[],
        takes: ANY_TIME,
        make: scheduled,
        with: "any",
    },
    Intent {
        action: DELETE,
        verbs: "delete/deleting/deleted|remove/removing/removed|erase/erasing/erased|get rid|drop/dropping/dropped|\
                destroy/destroying/destroyed|delete permanently|permanently delete",
        nouns: &["permanently", "completely"],
        takes: NOW,
        make: deleted,
        with: "",
    },
];

fn become_now(taken: &Taken<'_>, status: &'static str) -> Option<Wish> {
    let subjects = taken.subjects()?;
    let mut params = Map::from_iter([("status".to_owned(), Value::from(status))]);
    match subjects.as_slice() {
        [one] => params.insert("experiment".to_owned(), one.clone().into()),
        several => params.insert("experiments".to_owned(), json!(several)),
    };
    Some(Wish::change(STATUS, params))
}

fn scheduled(taken: &Taken<'_>, which: &'static str) -> Option<Wish> {
    let when = taken.find(|slot| match slot {
        Slot::Moment { when, until } if !until || which == "any" => Some(when.clone()),
        _ => None,
    });
    let mut params = Map::from_iter([("status".to_owned(), Value::from("scheduled"))]);
    params.insert("experiment".to_owned(), taken.subject()?.into());
    match when {
        Some(when) => params.insert("start_on".to_owned(), when.into()),
        None if which == "any" => None, // asked for
        None => return None,
    };
    Some(Wish::change(STATUS, params))
}

fn deleted(taken: &Taken<'_>, _: &'static str) -> Option<Wish> {
    let params = Map::from_iter([("experiment".to_owned(), Value::from(taken.subject()?))]);
    Some(Wish::change(DELETE, params))
}
