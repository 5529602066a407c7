//! What words mean, how they go together, and what a change takes.

use insta::assert_snapshot;

use crate::support::bot::TestBot;

#[tokio::test(flavor = "multi_thread")]
async fn words_are_explained_with_an_example_from_the_platform() {
    let (_bot, mut thread) = TestBot::hears("ana", "What is an app context?").await;
    assert_snapshot!(thread.in_short(), @"
    A *context* is the application an experiment belongs to, such as `assign-prog`. Each has a vocabulary of its own: condition codes, group types, sites and targets, set up by the server's administrator.

    UpGrade itself checks only that the context exists, not that an experiment keeps to its words; I check those before I show a card.
    The contexts here are `assign-prog`, `livehint-ai` and `mathstream`.
    ");
    assert_snapshot!(thread.answer("ana", "what is a weight?").await, @"
    A *weight* is the share of participants, in percent, that a condition should get. Weights total 100.

    It is a chance, not a quota: with 200 people at 50/50, something like 94 to 106 is perfectly normal. People who are enrolled keep their condition when weights change.
    For example, “Class Hint Rollout” has control 34%, question-hint-default 33%, question-hint-tutorbot 33%.
    ");
    assert_snapshot!(thread.answer("ana", "what does status mean?").await, @"
    An experiment is `inactive` while it is being designed, `enrolling` (shown as *running*) while it assigns people, `enrollmentComplete` (*paused*) when it takes nobody new and can be resumed, and `cancelled` (*completed*) when it gives nobody a condition any more. `preview` is for test users, `scheduled` waits for a date, and `archived` is put away with its results.
    Experiments here at the moment: 1 inactive, 2 running, 1 paused, 1 completed and 1 archived.
    ");
    assert_snapshot!(thread.answer("ana", "what is the unit of assignment?").await, @"
    The *unit of assignment* says who draws a lot. *Individual*: each person, so classmates may differ. *Group*: the whole group, such as a class, draws once and everybody in it gets the same. *Within-subjects*: each visit, so one person meets several conditions.

    Group assignment needs a group type, and people without a valid working group get the default.
    For example, “Class Hint Rollout” assigns all of a group together, by classId.
    ");
    assert_snapshot!(thread.answer("ana", "explain the post-experiment rule").await, @"
    The *post-experiment rule* says what participants see once enrollment is complete. *continue*: everyone keeps their condition. *assign* with a condition: all participants get that one. *assign* without: all get the default.

    People who were never enrolled get the default either way.
    For example, after “Class Hint Rollout” everyone keeps their condition.
    ");
    assert_snapshot!(thread.answer("ana", "what are tags?").await, @"
    A *tag* is a free label for finding experiments again. It has no effect on who gets what.
    Tags in use here: 2025, algebra, fractions, hints, test and 2 more.
    ");
    assert_snapshot!(thread.answer("ana", "what is an experiment?").await, @"
    An *experiment* compares two or more conditions inside one application. It says where it runs (decision points), what is compared (conditions and their weights), who takes part, how people are assigned, and what they see afterwards.

    Its name is only a label and may occur twice; the id is what identifies it.
    For example, “Class Hint Rollout” compares control, question-hint-default and question-hint-tutorbot in `mathstream`.
    ");
    assert_snapshot!(thread.answer("ana", "what are group types?").await, @"
    A *group type* is a kind of group, such as `classId` or `schoolId`; a *group* is one of them, such as class 5B. Lists look at all groups of a person, group assignment only at the one they work in at the moment, the *working group*.
    The group types of `assign-prog` are schoolId, classId and instructorId.
    ");
    assert_snapshot!(thread.answer("ana", "what is exclude if reached?").await, @"*Exclude if reached* keeps people out for good who were at the decision point before the start. It works only when the experiment is started by a change of status, and not with the consistency rule *experiment*. With group consistency one early visitor keeps the whole group out.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_is_explained_although_the_platform_is_away() {
    let bot = TestBot::start().await;
    bot.upgrade.is_down(Some(countersign::sandbox::upgrade::faults::Down::Unavailable));
    assert_snapshot!(bot.user("ana").answer("What is a decision point?").await, @"
    A *decision point* is a place where the application asks “which version for this person?” It is named by a site and a target, such as `SelectSection / area_model`.

    At all decision points of one experiment a person gets the same condition.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn how_words_work_together() {
    let (_bot, mut thread) = TestBot::hears("ana", "How do weights and consistency rules work together?").await;
    assert_snapshot!(thread.in_short(), @"
    *Weights* decide the first draw; the *consistency rule* decides what holds once somebody has a past. A new person, or a new group, draws by the weights. Whoever is enrolled keeps their condition, so changing weights moves nobody who is inside.

    What people often miss: with the rule *group* a newcomer takes the group's condition without any draw, so a few large groups can pull the numbers away from the weights.
    ");
    assert_snapshot!(thread.answer("ana", "what is the difference between tags and metrics?").await, @"
    A *tag* is a free label for finding experiments again. It has no effect on who gets what.

    A *metric* is an outcome that the application reports. It is stored only if some experiment asks for it.
    ");
    assert_snapshot!(thread.answer("ana", "What concepts can you explain?").await, @"
    I can explain these words. Ask for example “what is a weight?”, or “how do weights and consistency rules work together?”
    *Experiments*
    a/b testing, experiment, context, context metadata, decision point, site, target, condition, condition code, default, weight, payload, participant, group, working group, tag, metric, segment, global exclude, inclusion list, exclusion list, filter mode, order of precedence, preview user, status, inactive, preview, scheduled, running, paused, cancelled, archived, draft, post-experiment rule, newcomer, history, audit log, upgrade, countersign
    *Assignment*
    unit of assignment, individual assignment, group assignment, within-subjects, consistency rule, assignment algorithm, random, stratification, ts_configurable, factorial design, factor, enrollment, excluded users, exclude if reached, competing experiments, ending criterion, mark, uniquifier
    [Core terms] [Assignment terms]
    ");
    assert_snapshot!(thread.outcome("ana", "Assignment terms").await, @"
    • The *unit of assignment* says who draws a lot.
    • With *individual assignment* every person draws their own lot.
    • With *group assignment* the working group, such as a class, draws once, and everybody in it gets the same condition.
    • In a *within-subjects* design one person meets several conditions over repeated visits, in random or fixed order.
    • The *consistency rule* decides whose past counts when histories conflict, for example when someone moves to another class.
    • The *assignment algorithm* is how the lot is drawn: plainly at *random*, by *stratified random sampling*, or adaptively (`ts_configurable`).
    • *Random* assignment compares a fixed pseudo-random number for each person (or group) and experiment with the weights.
    • *Stratification* keeps the mix of an attribute, such as grade, even across conditions by favouring those that have too few.
    • `ts_configurable` is adaptive assignment: conditions that do better get more people as the experiment goes on.
    • In a *factorial* design the conditions are all combinations of the levels of two or more factors, such as hint × colour.
    • A *factor* is a dimension that a factorial experiment varies, and a *level* is one of its values.
    • *Enrollment* is the moment a participant becomes part of the data: when they visit a decision point and the application marks it.
    • *Excluded* people, as a number, came to a decision point but may not take part.
    • *Exclude if reached* keeps people out for good who were at the decision point before the start.
    • *Competing experiments* share a decision point.
    • The *ending criterion* pauses an experiment by itself when enough people, or enough groups, are enrolled.
    • *Marking* is the application's report that a person reached a decision point.
    • A *uniquifier* tells repeated visits of one person apart.
    Ask about one of them to hear more.
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_change_takes() {
    let (bot, mut thread) = TestBot::hears("ana", "What parameters does create take?").await;
    assert_snapshot!(thread.in_short(), @"
    To *create an experiment* I need: context, decision points, name. The rest is up to you.
    What | Needed | Meaning
    context | yes | The context (client application) it belongs to.
    decision points | yes | Where it takes place: one or several, each as site / target.
    name | yes | Its name.
    algorithm | no | How the lot is drawn: random (default), or stratified random sampling by a factor that another experiment draws by already; others are refused.
    condition order | no | In which order people meet conditions, within subjects: random (default), random round robin or ordered round robin.
    conditions | no | What is compared: their codes, with weights if they differ. Without: the context's first two, half and half.
    consistency | no | Whose past decides: individual, group or experiment.
    description | no | What it is about.
    end on | no | When it is to end, in the same form.
    ends after groups | no | Enrolment ends by itself after so many groups.
    ends after users | no | Enrolment ends by itself after so many users.
    exclude if reached | no | Whether people who were at the decision points before the start stay out. Default: no.
    exclusion | no | Who stays out by name: user ids, groups such as classId:5B.
    factors | no | For a factorial experiment: what it varies, each with name and levels. The conditions are then all combinations; conditions names only some of them, such as hi…
    filter mode | no | Whether people on no list take part: includeAll (default) or excludeAll.
    group | no | The type of group, with unit group.
    inclusion | no | Who takes part by name: user ids, groups such as classId:5B.
    payloads | no | What the application is told with a condition: by condition code, or objects with condition, value and perhaps decision_point and type (string, json, csv).
    post rule | no | What people get once enrollment is complete: continue (default: keep their condition), assign <condition code>, or assign default.
    site | no | The site, if there is one decision point.
    start on | no | When it starts by itself, such as 2027-01-15 09:00 (UTC). Without: when somebody starts it.
    stratification factor | no | What a stratified draw goes by.
    tags | no | Labels for finding it.
    target | no | The target, if there is one decision point.
    unit | no | Who draws a lot: individual (default), group, or within-subjects (each person meets several conditions).
    weights | no | Weights in percent, in the order of the conditions, or 70/30.
    Say it in one sentence, such as “create experiment Hint Timing in assign-prog with conditions control, variant at SelectSection/area_model”, or piece by piece: I ask for what is missing.
    ");
    assert_snapshot!(thread.answer("ana", "what can I change in an experiment?").await, @"
    To *change an experiment* I need: experiment. The rest is up to you.
    What | Needed | Meaning
    experiment | yes | The experiment, by name or id.
    add to exclusion | no | Who is put on the exclusion list besides those who are.
    add to inclusion | no | Who is put on the inclusion list besides those who are.
    algorithm | no | How the lot is drawn: random; others are refused.
    condition order | no | In which order people meet conditions, within subjects: random, random round robin, ordered round robin.
    conditions | no | All conditions from now on: their codes, with weights if they differ. Only to add or remove conditions.
    consistency | no | Whose past decides: individual, group or experiment.
    decision points | no | All decision points from now on: one or several, each as site / target.
    description | no | A new description.
    end on | no | When it is to end, such as 2027-01-15 09:00 (UTC).
    ends after groups | no | Enrolment ends by itself after so many groups; 0 for never.
    ends after users | no | Enrolment ends by itself after so many users; 0 for never.
    exclude if reached | no | Whether people who were at the decision points before the start stay out; for each point there is.
    exclusion | no | Who is on the exclusion list from now on.
    filter mode | no | Whether people on no list take part: includeAll or excludeAll.
    group | no | The type of group, with unit group.
    inclusion | no | Who is on the inclusion list from now on: user ids, groups such as classId:5B.
    new name | no | A new name.
    payloads | no | What the application is told with a condition: by condition code, or objects with condition, value and perhaps decision_point and type (string, json, csv). Wha…
    post rule | no | What people get once enrollment is complete: continue (keep their condition), assign <condition code>, or assign default.
    remove from exclusion | no | Who is taken off the exclusion list.
    remove from inclusion | no | Who is taken off the inclusion list.
    tags | no | All tags from now on. +pilot adds a tag to those there are, -pilot takes it off.
    unit | no | Who draws a lot: individual, group, or within-subjects.
    weights | no | New weights in percent for the conditions there are, in their order, by code, or 70/30.
    Say it in one sentence, such as “set the weights of Math Hints to 70/30”, or piece by piece: I ask for what is missing.
    ");
    assert_snapshot!(thread.answer("ana", "how do I start an experiment?").await, @"
    To *start, stop, resume or cancel an experiment* I need: experiment, status. The rest is up to you.
    What | Needed | Meaning
    experiment | yes | The experiment, by name or id.
    status | yes | What it is to become: enrolling (start, resume), enrollmentComplete (stop, pause), cancelled (cancel, final), archived (only what is cancelled), scheduled (sta…
    all | no | All experiments of a kind, instead of one.
    experiments | no | Several experiments, by name or id, instead of one.
    start on | no | When it starts by itself, with scheduled: such as 2027-01-15 09:00 or Friday 9:00 (UTC). To move the start of what is scheduled, give the new moment.
    Say it in one sentence, such as “start Math Hints”, or piece by piece: I ask for what is missing.
    ");
    assert_snapshot!(thread.answer("ana", "help me mark a decision point").await, @"
    To *mark a visit* I need: site, target, user. The rest is up to you.
    What | Needed | Meaning
    site | yes | The site of the decision point.
    target | yes | The target of the decision point.
    user | yes | The participant's id.
    condition | no | The condition code the participant was given.
    context | no | The context, if several have the point.
    experiment | no | The experiment, by name or id, if several share the point.
    status | no | condition applied (default), condition not applied (excludes the participant) or no condition assigned.
    Say it in one sentence, such as “mark SelectSection/area_model for u1 in Math Hints”, or piece by piece: I ask for what is missing.
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
    In use | By
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
