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
    bot.upgrade.is_down(Some(countersign_sandbox::faults::Down::Unavailable));
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
    To *create an experiment*, I need: name, context, decision points. Everything else is optional.
    What | Needed | Meaning
    Name | yes | what it is called
    Context | yes | the application it is for
    Decision points | yes | one or several, each as site / target
    Conditions | no | their codes, with weights if they differ; otherwise the context's first two, 50/50
    Description | no | what it is about
    Copy | no | another experiment whose design, conditions or decision points it takes over
    Factors | no | for a factorial experiment: each factor with its levels
    Payloads | no | what the application receives with a condition: text, JSON or CSV
    Assignment | no | individual, by a group type such as classId, or within subjects
    Consistency | no | whose earlier visits count: individual, group or experiment
    Order of conditions | no | within subjects: random, random round robin or ordered round robin
    Algorithm | no | random, or stratified by a factor that was uploaded to UpGrade
    Early visitors | no | whether users who were at a decision point before the start are excluded
    After enrollment ends | no | enrolled users keep their condition, or all get one condition or the default
    Enrollment ends | no | the number of users or groups after which nobody else is enrolled
    Users on no list | no | included or excluded
    Lists | no | who is included or excluded: users, and groups such as classId:5B
    Start and end | no | dates such as Friday 9:00 or 2027-01-15 09:00
    Tags | no | free labels for finding it again
    New words | no | whether conditions, sites and targets may be used that the context doesn't list; I ask if there are any
    Say it in one sentence, for example “create experiment Hint Timing in assign-prog with conditions control, variant at SelectSection/area_model”, or step by step: I'll ask for what's missing.
    ");
    assert_snapshot!(thread.answer("ana", "what can I change in an experiment?").await, @"
    To *change an experiment*, I need: experiment. Everything else is optional.
    What | Needed | Meaning
    Experiment | yes | its name or ID
    Name and description | no | the new ones
    Tags | no | the new ones, or which to add or remove
    Weights | no | such as 70/30, in the order of the conditions
    Conditions | no | all codes, to add, remove or rename conditions
    Decision points | no | all of them, each as site / target
    Payloads | no | what the application receives with a condition: text, JSON or CSV
    Assignment | no | individual, by a group type such as classId, or within subjects
    Consistency | no | whose earlier visits count: individual, group or experiment
    Order of conditions | no | within subjects: random, random round robin or ordered round robin
    Algorithm | no | only the one it has: I can't change it
    Early visitors | no | whether users who were at a decision point before the start are excluded
    After enrollment ends | no | enrolled users keep their condition, or all get one condition or the default
    Enrollment ends | no | the number of users or groups after which nobody else is enrolled
    Users on no list | no | included or excluded
    Lists | no | who to add to or remove from the inclusion or exclusion list, or the whole list
    End | no | a date such as Friday or 2027-01-15 09:00
    Say it in one sentence, for example “set the weights of Math Hints to 70/30”, or step by step: I'll ask for what's missing.
    ");
    assert_snapshot!(thread.answer("ana", "how do I start an experiment?").await, @"
    To *start, stop, resume or cancel an experiment*, I need: experiment, change. Everything else is optional.
    What | Needed | Meaning
    Experiment | yes | one or several by name, or all with a status, context, tag or month
    Change | yes | start, stop, resume, cancel, archive, schedule or unschedule, or set it back to inactive
    Start | no | when a scheduled experiment starts, such as Friday 9:00
    End | no | when it ends, such as 2027-02-15; that day is included
    Say it in one sentence, for example “start Math Hints”, or step by step: I'll ask for what's missing.
    ");
    assert_snapshot!(thread.answer("ana", "help me mark a decision point").await, @"
    To *mark a visit*, I need: user, decision point. Everything else is optional.
    What | Needed | Meaning
    User | yes | the user's ID, such as student-001
    Decision point | yes | site / target
    Condition | no | the code that the user got there
    Experiment | no | its name or context, if several have the decision point
    Outcome | no | whether the condition was applied; “not applied” excludes the user
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
