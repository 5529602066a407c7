//! What words mean, how they go together, and what a change takes.

use insta::assert_snapshot;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn words_are_explained_with_an_example_from_the_platform() {
    let (_bot, mut thread) = TestBot::hears("ana", "What is an app context?").await;
    assert_snapshot!(thread.in_short(), @"
    A *context* is the application an experiment belongs to, such as `assign-prog`. Each context has its own condition codes, group types, sites and targets, set up by the server's administrator.

    UpGrade checks only that the context exists. I also check the codes, sites and targets before I post a card.
    The contexts here are `assign-prog`, `livehint-ai` and `mathstream`.
    ");
    assert_snapshot!(thread.answer("ana", "what is a weight?").await, @"
    A *weight* is the share of participants, in percent, that a condition should get. Weights total 100.

    It is a probability, not a quota: with 200 users at 50/50, a split such as 94 to 106 is normal. Enrolled users keep their condition when weights change.
    For example, “Class Hint Rollout” has control 34%, question-hint-default 33%, question-hint-tutorbot 33%.
    ");
    assert_snapshot!(thread.answer("ana", "what does status mean?").await, @"
    An experiment is `inactive` while it is being designed, `enrolling` (shown as *running*) while it assigns users, `enrollmentComplete` (*paused*) when it enrolls no new users and can be resumed, and `cancelled` (*completed*) when nobody gets its conditions anymore. `preview` is for test users, `scheduled` waits for a date, and `archived` keeps only its design and results.
    Experiments here at the moment: 1 inactive, 2 running, 1 paused, 1 completed and 1 archived.
    ");
    assert_snapshot!(thread.answer("ana", "what is the unit of assignment?").await, @"
    The *unit of assignment* is what a condition is assigned to. *Individual*: each user, so classmates may get different conditions. *Group*: a whole group, such as a class, so everyone in it gets the same condition. *Within-subjects*: each visit, so one user gets several conditions.

    Group assignment needs a group type, and users without a valid working group get the default.
    For example, “Class Hint Rollout” assigns by group (classId).
    ");
    assert_snapshot!(thread.answer("ana", "explain the post-experiment rule").await, @"
    The *post-experiment rule* says what participants see once enrollment is complete. *continue*: enrolled users keep their condition. *assign* with a condition: all participants get that one. *assign* without: all get the default.

    Users who were never enrolled get the default either way.
    For example, after “Class Hint Rollout” enrolled users keep their condition.
    ");
    assert_snapshot!(thread.answer("ana", "what are tags?").await, @"
    A *tag* is a free label for finding experiments again. It has no effect on assignment.
    Tags in use here: 2025, algebra, fractions, hints, test and 2 more.
    ");
    assert_snapshot!(thread.answer("ana", "what is an experiment?").await, @"
    An *experiment* compares two or more conditions inside one application. It defines where it runs (decision points), what is compared (conditions and their weights), who is included, how users are assigned, and what they see after enrollment ends.

    Its name is only a label and need not be unique; the ID identifies it.
    For example, “Class Hint Rollout” compares control, question-hint-default and question-hint-tutorbot in `mathstream`.
    ");
    assert_snapshot!(thread.answer("ana", "what are group types?").await, @"
    A *group type* is a kind of group, such as `classId` or `schoolId`; a *group* is one of them, such as class 5B. Lists consider all groups of a user; group assignment considers only the one they currently work in, the *working group*.
    The group types of `assign-prog` are schoolId, classId and instructorId.
    ");
    assert_snapshot!(thread.answer("ana", "what is exclude if reached?").await, @"*Exclude if reached* permanently excludes users who were at the decision point before the start. It works only when a status change starts the experiment, and not with the consistency rule *experiment*. With group consistency, one early visitor excludes the whole group.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_is_explained_although_the_platform_is_away() {
    let bot = TestBot::start().await;
    bot.upgrade.is_down(Some(countersign::sandbox::upgrade::faults::Down::Unavailable));
    assert_snapshot!(bot.user("ana").answer("What is a decision point?").await, @"
    A *decision point* is a place where the application asks “which version for this user?” It is named by a site and a target, such as `SelectSection / area_model`.

    A user gets the same condition at all decision points of an experiment.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn how_words_work_together() {
    let (_bot, mut thread) = TestBot::hears("ana", "How do weights and consistency rules work together?").await;
    assert_snapshot!(thread.in_short(), @"
    *Weights* decide the first assignment; the *consistency rule* applies to users with earlier visits. A new user, or a new group, is assigned by the weights. Enrolled users keep their condition, so changing weights moves none of them.

    What people often miss: with the rule *group*, a newcomer gets the group's condition without being assigned at random, so a few large groups can pull the numbers away from the weights.
    ");
    assert_snapshot!(thread.answer("ana", "what is the difference between tags and metrics?").await, @"
    A *tag* is a free label for finding experiments again. It has no effect on assignment.

    A *metric* is an outcome that the application reports. It is stored only if some experiment asks for it.
    ");
    assert_snapshot!(thread.answer("ana", "What concepts can you explain?").await, @"
    I can explain these terms. For example, ask “what is a weight?” or “how do weights and consistency rules work together?”
    *Experiments*
    a/b testing, experiment, context, context metadata, decision point, site, target, condition, condition code, default, weight, payload, participant, group, working group, tag, metric, segment, global exclude, inclusion list, exclusion list, filter mode, order of precedence, preview user, status, inactive, preview, scheduled, running, paused, cancelled, archived, draft, post-experiment rule, newcomer, history, audit log, upgrade, countersign
    *Assignment*
    unit of assignment, individual assignment, group assignment, within-subjects, consistency rule, assignment algorithm, random, stratification, ts_configurable, factorial design, factor, enrollment, excluded users, exclude if reached, competing experiments, ending criterion, mark, uniquifier
    [Core terms] [Assignment terms]
    ");
    assert_snapshot!(thread.outcome("ana", "Assignment terms").await, @"
    @ana chose *Assignment terms*.
    ---
    • The *unit of assignment* is what a condition is assigned to.
    • With *individual assignment*, each user is assigned separately.
    • With *group assignment*, the working group, such as a class, is assigned once, and everyone in it gets the same condition.
    • In a *within-subjects* design, each user gets several conditions over repeated visits, in random or fixed order.
    • The *consistency rule* decides whose earlier visits count when they conflict, for example when a user moves to another class.
    • The *assignment algorithm* decides how conditions are assigned: at *random*, by *stratified random sampling*, or adaptively (`ts_configurable`).
    • *Random* assignment compares a fixed pseudo-random number for each user (or group) and experiment with the weights.
    • *Stratification* keeps the mix of an attribute, such as grade, even across conditions by favoring those that have too few.
    • `ts_configurable` is adaptive assignment: conditions that do better get more users as the experiment runs.
    • In a *factorial* design the conditions are all combinations of the levels of two or more factors, such as hint × color.
    • A *factor* is a dimension that a factorial experiment varies, and a *level* is one of its values.
    • *Enrollment* is the moment a participant becomes part of the data: when they visit a decision point and the application marks it.
    • The *excluded* count is the number of users who reached a decision point but are excluded.
    • *Exclude if reached* permanently excludes users who were at the decision point before the start.
    • *Competing experiments* share a decision point.
    • The *ending criterion* pauses an experiment automatically when enough users or groups are enrolled.
    • *Marking* is the application's report that a user reached a decision point.
    • A *uniquifier* tells repeated visits of one user apart.
    Ask about any of them to learn more.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_change_takes() {
    let (bot, mut thread) = TestBot::hears("ana", "What parameters does create take?").await;
    assert_snapshot!(thread.in_short(), @"
    To *create an experiment*, I need: context, decision points, name. Everything else is optional.
    What | Needed | Meaning
    context | yes | The context (client application).
    decision points | yes | The decision points: one or several, each as site / target.
    name | yes | The name.
    algorithm | no | The assignment algorithm: random (default), or stratified random sampling by a factor that another experiment already uses; others are refused.
    condition order | no | The order of conditions within subjects: random (default), random round robin or ordered round robin.
    conditions | no | The conditions: their codes, with weights if they differ. Default: the first two of the context, 50/50.
    conditions of | no | The name of an experiment whose conditions and weights are copied.
    consistency | no | The consistency rule: individual, group or experiment.
    copy of | no | The name of an experiment whose design is copied. The other parameters replace parts of it.
    description | no | A description.
    end on | no | The end, in the same format, or a day, which is included.
    ends after groups | no | The number of groups after which enrollment ends.
    ends after users | no | The number of users after which enrollment ends.
    exclude if reached | no | True to exclude people who reached a decision point before the start. Default: false.
    exclusion | no | The exclusion list: user ids, groups such as classId:5B.
    factors | no | The factors of a factorial experiment, each with name and levels. Its conditions are all combinations of levels, or only those in conditions, such as hints=non…
    filter mode | no | The rule for people on no list: includeAll (default) or excludeAll.
    group | no | The group type, with unit group.
    inclusion | no | The inclusion list: user ids, groups such as classId:5B.
    payloads | no | The payloads sent to the application with a condition: by condition code, or objects with condition, value and optionally decision_point and type (string, json…
    points of | no | The name of an experiment whose decision points are copied.
    post rule | no | The rule after enrollment is complete: continue (default: keep their condition), assign <condition code>, or assign default.
    site | no | The site, if there is one decision point.
    start on | no | The scheduled start, such as 2027-01-15 09:00. Default: none; it is started by hand.
    stratification factor | no | The factor of a stratified assignment.
    tags | no | The tags.
    target | no | The target, if there is one decision point.
    unit | no | The unit of assignment: individual (default), group, or within-subjects (each person gets several conditions).
    weights | no | Weights in percent, in the order of the conditions, or 70/30.
    Say it in one sentence, for example “create experiment Hint Timing in assign-prog with conditions control, variant at SelectSection/area_model”, or step by step: I'll ask for what's missing.
    ");
    assert_snapshot!(thread.answer("ana", "what can I change in an experiment?").await, @"
    To *change an experiment*, I need: experiment. Everything else is optional.
    What | Needed | Meaning
    experiment | yes | The experiment, by name or id.
    add to exclusion | no | The entries to add to the exclusion list.
    add to inclusion | no | The entries to add to the inclusion list.
    algorithm | no | The assignment algorithm: random; others are refused.
    condition order | no | The order of conditions within subjects: random, random round robin, ordered round robin.
    conditions | no | The new conditions, all of them: their codes, with weights if they differ. Only to add or remove conditions.
    consistency | no | The consistency rule: individual, group or experiment.
    decision points | no | The new decision points, all of them: one or several, each as site / target.
    description | no | The new description.
    end on | no | The end, such as 2027-01-15 09:00, or a day, which is included.
    ends after groups | no | The number of groups after which enrollment ends; 0 for no limit.
    ends after users | no | The number of users after which enrollment ends; 0 for no limit.
    exclude if reached | no | True to exclude people who reached a decision point before the start; applies to every decision point.
    exclusion | no | The new exclusion list.
    filter mode | no | The rule for people on no list: includeAll or excludeAll.
    group | no | The group type, with unit group.
    inclusion | no | The new inclusion list: user ids, groups such as classId:5B.
    new name | no | The new name.
    payloads | no | The payloads sent to the application with a condition: by condition code, or objects with condition, value and optionally decision_point and type (string, json…
    post rule | no | The rule after enrollment is complete: continue (keep their condition), assign <condition code>, or assign default.
    remove from exclusion | no | The entries to remove from the exclusion list.
    remove from inclusion | no | The entries to remove from the inclusion list.
    tags | no | The new tags. +pilot adds a tag to the present ones, -pilot removes it.
    unit | no | The unit of assignment: individual, group, or within-subjects.
    weights | no | The new weights in percent: in the order of the conditions, by code, or 70/30.
    Say it in one sentence, for example “set the weights of Math Hints to 70/30”, or step by step: I'll ask for what's missing.
    ");
    assert_snapshot!(thread.answer("ana", "how do I start an experiment?").await, @"
    To *start, stop, resume or cancel an experiment*, I need: experiment, status. Everything else is optional.
    What | Needed | Meaning
    experiment | yes | The experiment, by name or id.
    status | yes | The new status: enrolling (start, resume), enrollmentComplete (stop, pause), cancelled (cancel, final), archived (only from cancelled), scheduled (starts at st…
    all | no | A filter for several experiments, instead of one.
    end on | no | The end, with enrolling or scheduled: such as 2027-02-15 or Friday. The last day is included.
    experiments | no | Several experiments, by name or id, instead of one.
    start on | no | The start, with scheduled: such as 2027-01-15 09:00 or Friday 9:00. To move a scheduled start, give the new time.
    Say it in one sentence, for example “start Math Hints”, or step by step: I'll ask for what's missing.
    ");
    assert_snapshot!(thread.answer("ana", "help me mark a decision point").await, @"
    To *mark a visit*, I need: site, target, user. Everything else is optional.
    What | Needed | Meaning
    site | yes | The site of the decision point.
    target | yes | The target of the decision point.
    user | yes | The participant's id.
    condition | no | The condition code assigned to the participant.
    context | no | The context, if several define the decision point.
    experiment | no | The experiment, by name or id, if several use the decision point.
    status | no | condition applied (default), condition not applied (excludes the participant) or no condition assigned.
    Say it in one sentence, for example “mark SelectSection/area_model for u1 in Math Hints”, or step by step: I'll ask for what's missing.
    ");
    assert!(bot.upgrade.ledger().is_empty(), "nothing has to be looked up for that");
}

#[tokio::test(flavor = "multi_thread")]
async fn contexts_part_by_part() {
    let (_bot, mut thread) = TestBot::hears("ana", "what decision points does assign-prog have?").await;
    assert_snapshot!(thread.in_short(), @"
    A decision point in `assign-prog` is one of its sites with one of its targets.
    *Sites*
    `SelectSection`, `SelectProblem`
    *Targets*
    `absolute_value_plot_equality`, `area_model`, `fraction_intro`
    Decision point in use | Used by
    SelectProblem / fraction_intro | Concrete Fractions
    SelectSection / absolute_value_plot_equality | Math Hints
    SelectSection / area_model | Running Test
    ");
    assert_snapshot!(thread.answer("ana", "which group types are there in mathstream?").await, @"Group types in `mathstream`: `classId`, `schoolId`.");
    assert_snapshot!(thread.answer("ana", "what does livehint-ai know?").await, @"
    livehint-ai
    *Conditions*
    control, tutor-a, tutor-b
    *Sites*
    chat
    *Targets*
    chat-tone
    *Group types*
    classId
    ");
    assert_snapshot!(thread.answer("ana", "which sites are there in asign-prog?").await, @"‹there is no “asign-prog”›");
}
