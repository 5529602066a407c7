//! The texts on how two terms work together.

/// Pairs of terms, by their usual names, each with the text on both.
pub(super) const PAIRS: &[(&str, &str, &str)] = &[
    (
        "weight",
        "consistency rule",
        "*Weights* decide the first draw; the *consistency rule* decides what holds once somebody has a past. A new person, or a new group, draws by the weights. Whoever is enrolled keeps their condition, so changing weights moves nobody who is inside.\n\nWhat people often miss: with the rule *group* a newcomer takes the group's condition without any draw, so a few large groups can pull the numbers away from the weights.",
    ),
    (
        "weight",
        "unit of assignment",
        "*Weights* are shares of whatever draws the lot, and the *unit of assignment* says what that is. With individual assignment 50/50 means about half of the people; with group assignment about half of the groups, however large they are. With ten classes of different size the people will seldom split evenly.",
    ),
    (
        "unit of assignment",
        "consistency rule",
        "The *unit* says who draws, the *consistency rule* whose past wins.\n\n• individual + individual: each keeps their own condition; being there before the start keeps only that person out.\n• individual + experiment: the same, and nobody is left out for having been there early.\n• group + individual: the group draws, but a person who changes groups keeps what they first had.\n• group + group: the whole group is always alike; whoever changes groups takes the new group's condition, and one early visitor can keep the whole group out.\n• group + experiment: the group draws, whoever changes groups takes the new group's condition, and nobody is left out.\n\nIndividual assignment with the rule *group* can be stored but makes no sense.",
    ),
    (
        "inclusion list",
        "exclusion list",
        "The *exclusion list* wins over the *inclusion list* of the same kind: a person on both is out. A person's own entry counts before those of their groups, so someone who is included by name takes part even if their class is excluded.",
    ),
    (
        "inclusion list",
        "filter mode",
        "With the *filter mode* `excludeAll` only people on the *inclusion list* take part; with `includeAll` everybody does who is not excluded, and the inclusion list matters only for people in an excluded group. `excludeAll` with no inclusion list means nobody enrolls.",
    ),
    (
        "exclusion list",
        "filter mode",
        "The *exclusion list* counts in both *filter modes*: whoever is on it is out. With `includeAll` it is the only thing that keeps people out; with `excludeAll` it takes people off the inclusion list again.",
    ),
    (
        "condition",
        "weight",
        "Each *condition* has a *weight*: the share of people, in percent, that should get it. The weights of all conditions total 100; a condition with weight 0 is given to nobody new, but whoever has it keeps it.",
    ),
    (
        "condition",
        "payload",
        "A *condition* says which version a person gets; a *payload* is what the application is handed for it at one decision point. One condition can carry different payloads at different points; without a payload the application goes by the condition's code.",
    ),
    (
        "condition",
        "decision point",
        "A person is given one *condition* for the whole experiment, and gets that same one at each of its *decision points*. Payloads can make it look different from point to point.",
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
        "A *context* lists the sites and targets of its application; a *decision point* is one of those sites with one of those targets. Outside the application's vocabulary nothing would ever ask.",
    ),
    (
        "context",
        "condition",
        "A *context* lists the condition codes its application understands; an experiment there should use *conditions* with those codes.",
    ),
    (
        "status",
        "post-experiment rule",
        "The *post-experiment rule* speaks only in the *status* `enrollmentComplete` (paused): then people keep their condition or all get the same. While the experiment runs everybody has their own, and once it is cancelled nobody gets any, whatever the rule says.",
    ),
    (
        "group",
        "working group",
        "People can be in many *groups* of one type, but act in one at a time, the *working group*. Lists look at all groups; group assignment and group consistency only at the working group.",
    ),
    (
        "enrollment",
        "mark",
        "*Marking* a decision point is what *enrolls*: the application says that the person was there and got the condition. Asking for a condition alone enrolls nobody.",
    ),
    (
        "exclude if reached",
        "consistency rule",
        "*Exclude if reached* keeps early visitors out, and the *consistency rule* says how far that goes: with *individual* only the visitor, with *group* their whole group, and with *experiment* nobody at all.",
    ),
    (
        "segment",
        "inclusion list",
        "An *inclusion list* is a private *segment* of one experiment; it can hold people, groups, and public segments as parts. The *global exclude* segment of the context beats it.",
    ),
];
