//! The texts on how two terms work together.

/// Pairs of terms, by their usual names, each with the text on both.
pub(super) const PAIRS: &[(&str, &str, &str)] = &[
    (
        "weight",
        "consistency rule",
        "*Weights* decide the first assignment; the *consistency rule* applies to users with earlier visits. A new user, or a new group, is assigned by the weights. Enrolled users keep their condition, so changing weights moves none of them.\n\nWhat people often miss: with the rule *group*, a newcomer gets the group's condition without being assigned at random, so a few large groups can pull the numbers away from the weights.",
    ),
    (
        "weight",
        "unit of assignment",
        "*Weights* are shares of what is assigned, and the *unit of assignment* says what that is. With individual assignment, 50/50 means about half of the users; with group assignment, about half of the groups, however large they are. With ten classes of different sizes, the users rarely split evenly.",
    ),
    (
        "unit of assignment",
        "consistency rule",
        "The *unit* says what is assigned; the *consistency rule* says whose earlier visits count.\n\n• individual + individual: each keeps their own condition; being there before the start excludes only that user.\n• individual + experiment: the same, and no one is excluded for having been there early.\n• group + individual: the group is assigned, but a user who changes groups keeps their first condition.\n• group + group: the whole group always has the same condition; users who change groups get the new group's condition, and one early visitor can exclude the whole group.\n• group + experiment: the group is assigned, users who change groups get the new group's condition, and no one is excluded.\n\nIndividual assignment with the rule *group* can be stored but makes no sense.",
    ),
    (
        "inclusion list",
        "exclusion list",
        "The *exclusion list* wins over the *inclusion list* of the same kind: a user on both is excluded. A user's own entry counts before those of their groups, so a user who is included by ID takes part even if their class is excluded.",
    ),
    (
        "inclusion list",
        "filter mode",
        "With the *filter mode* `excludeAll`, only users on the *inclusion list* are included; with `includeAll`, everyone who isn't excluded is included, and the inclusion list matters only for users in an excluded group. `excludeAll` with no inclusion list means nobody enrolls.",
    ),
    (
        "exclusion list",
        "filter mode",
        "The *exclusion list* counts in both *filter modes*: users on it are always excluded. With `includeAll` only this list excludes users; with `excludeAll` it overrides the inclusion list.",
    ),
    (
        "condition",
        "weight",
        "Each *condition* has a *weight*: the share of users, in percent, that should get it. The weights of all conditions total 100; a condition with weight 0 isn't assigned to new users, but users who have it keep it.",
    ),
    (
        "condition",
        "payload",
        "A *condition* says which version a user gets; a *payload* is what the application receives for it at one decision point. One condition can carry different payloads at different points; without a payload, the application uses the condition code.",
    ),
    (
        "condition",
        "decision point",
        "A user gets one *condition* for the whole experiment, the same at each of its *decision points*. Payloads can make it look different from point to point.",
    ),
    (
        "decision point",
        "payload",
        "A *payload* belongs to one condition at one *decision point*. So an experiment with two conditions and three points has up to six payloads.",
    ),
    (
        "site",
        "target",
        "*Site* and *target* together name a decision point: the site is the broader place, the target the thing within it, written `SelectSection / area_model`.",
    ),
    (
        "context",
        "decision point",
        "A *context* lists the sites and targets of its application; a *decision point* is one of those sites with one of those targets. UpGrade accepts others too, but an experiment at a place that the application never asks about enrolls nobody.",
    ),
    (
        "context",
        "condition",
        "A *context* lists the condition codes its application understands; an experiment there should use *conditions* with those codes.",
    ),
    (
        "status",
        "post-experiment rule",
        "The *post-experiment rule* applies only in the *status* `enrollmentComplete` (paused): users then keep their condition or all get the same one. While the experiment runs, each user has their own; once it is cancelled, nobody gets a condition, whatever the rule says.",
    ),
    (
        "group",
        "working group",
        "Users can be in many *groups* of one type, but work in one at a time, the *working group*. Lists consider all groups; group assignment and group consistency only the working group.",
    ),
    (
        "enrollment",
        "mark",
        "*Marking* a decision point is what *enrolls*: the application reports that the user was there and got the condition. Requesting a condition alone enrolls nobody.",
    ),
    (
        "exclude if reached",
        "consistency rule",
        "*Exclude if reached* excludes early visitors, and the *consistency rule* decides who is affected: with *individual*, only the visitor; with *group*, their whole group; with *experiment*, nobody.",
    ),
    (
        "segment",
        "inclusion list",
        "An *inclusion list* is a private *segment* of one experiment; it can contain users, groups and public segments. The *global exclude* segment of the context overrides it.",
    ),
];
