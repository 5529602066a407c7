//! The core terms: the parts of an experiment, its participants, and its life cycle.

use super::{Example, Term};

/// The terms, in the order in which they are listed.
pub(super) const TERMS: &[Term] = &[
    Term {
        names: &["a/b testing", "a/b test", "ab testing", "ab test", "a/b tests", "a b testing", "split testing"],
        meaning: "*A/B testing* shows different versions of the same thing to different people at the same time, assigned at random, and compares how they do. Because assignment is random, a difference beyond chance is caused by the version.\n\nOn UpGrade such a comparison is an *experiment*, and its versions are *conditions*.",
        example: None,
    },
    Term {
        names: &["experiment", "experiments", "study"],
        meaning: "An *experiment* compares two or more conditions inside one application. It defines where it runs (decision points), what is compared (conditions and their weights), who is included, how users are assigned, and what they see after enrollment ends.\n\nIts name is only a label and need not be unique; the ID identifies it.",
        example: Some(Example::Experiment),
    },
    Term {
        names: &["context", "contexts", "app context", "app contexts", "application context"],
        meaning: "A *context* is the application an experiment belongs to, such as `assign-prog`. Each context has its own condition codes, group types, sites and targets, set up by the server's administrator.\n\nUpGrade checks only that the context exists. I also check the codes, sites and targets before I post a card.",
        example: Some(Example::Contexts),
    },
    Term {
        names: &["context metadata", "metadata"],
        meaning: "The *context metadata* is the vocabulary of each context: its suggested condition codes, kinds of groups, sites and targets. There, sites are called `EXP_POINTS` and targets `EXP_IDS`, which are easy to mix up.",
        example: Some(Example::GroupTypes),
    },
    Term {
        names: &["decision point", "decision points", "partition", "partitions"],
        meaning: "A *decision point* is a place where the application asks “which version for this user?” It is named by a site and a target, such as `SelectSection / area_model`.\n\nA user gets the same condition at all decision points of an experiment.",
        example: Some(Example::Points),
    },
    Term {
        names: &["site", "sites"],
        meaning: "A *site* is the broader place of a decision point: a page, a function, a step. Together with a *target* it names the exact spot.",
        example: Some(Example::Points),
    },
    Term {
        names: &["target", "targets"],
        meaning: "A *target* is the thing within a site that a decision point is about: a problem, a button, a lesson. A design can leave it out, but a visit can't be marked without one.",
        example: Some(Example::Points),
    },
    Term {
        names: &["condition", "conditions", "arm", "treatment", "variant"],
        meaning: "A *condition* is one of the versions being compared, known to the application by its code, such as `control`.\n\n“Default” isn't a condition: it is what the application does when UpGrade gives no condition, and it never appears in the statistics.",
        example: Some(Example::Conditions),
    },
    Term {
        names: &["condition code", "condition codes"],
        meaning: "The *condition code* tells the application which version to show, such as `control`. Use codes that the application knows; `default` is reserved.",
        example: None,
    },
    Term {
        names: &["default", "default condition", "no condition"],
        meaning: "The *default* is what the application does without a condition from UpGrade: when no experiment runs there, or the user is excluded. It isn't a condition of the experiment and doesn't appear in the statistics, so it isn't the same as `control`.",
        example: None,
    },
    Term {
        names: &["weight", "weights", "assignment weight", "weighting", "assignment weights"],
        meaning: "A *weight* is the share of participants, in percent, that a condition should get. Weights total 100.\n\nIt is a probability, not a quota: with 200 users at 50/50, a split such as 94 to 106 is normal. Enrolled users keep their condition when weights change.",
        example: Some(Example::Conditions),
    },
    Term {
        names: &["payload", "payloads"],
        meaning: "A *payload* is the value that is handed to the application for one condition at one decision point: text, JSON or CSV. It lets one condition carry different content at different points. Without one, the application uses the condition code.",
        example: None,
    },
    Term {
        names: &["participant", "participants"],
        meaning: "A *participant* is an end user of the application under test, known by an opaque ID. They are not the people who manage experiments.",
        example: None,
    },
    Term {
        names: &["group", "groups", "group type", "group types"],
        meaning: "A *group type* is a kind of group, such as `classId` or `schoolId`; a *group* is one of them, such as class 5B. Lists consider all groups of a user; group assignment considers only the one they currently work in, the *working group*.",
        example: Some(Example::GroupTypes),
    },
    Term {
        names: &["working group", "working groups"],
        meaning: "The *working group* is, for each group type, the group that a user currently works in. It decides group assignment, and it must be one of the user's groups; otherwise the user gets the default.",
        example: None,
    },
    Term {
        names: &["tag", "tags"],
        meaning: "A *tag* is a free label for finding experiments again. It has no effect on assignment.",
        example: Some(Example::Tags),
    },
    Term {
        names: &["metric", "metrics"],
        meaning: "A *metric* is an outcome that the application reports. It is stored only if some experiment asks for it.",
        example: None,
    },
    Term {
        names: &["segment", "segments"],
        meaning: "A *segment* is a named collection of users, groups and other segments, used to include or exclude them. *Public* ones can be shared by experiments, *private* ones are the lists of a single experiment, and the *global exclude* segment of a context overrides everything else.",
        example: None,
    },
    Term {
        names: &["global exclude", "global exclude segment", "global exclusion"],
        meaning: "Each context has a *global exclude* segment. Its members are excluded from every experiment there, whatever any list says.",
        example: None,
    },
    Term {
        names: &["inclusion list", "include list", "inclusion", "inclusion lists"],
        meaning: "The *inclusion list* names users who are included. It matters when the filter mode excludes everyone else. Someone on the exclusion list stays out even if they are listed here.",
        example: None,
    },
    Term {
        names: &["exclusion list", "exclude list", "exclusion", "exclusion lists", "exclude lists"],
        meaning: "The *exclusion list* names users who are excluded. A user on it is always excluded.",
        example: None,
    },
    Term {
        names: &["filter mode", "filter modes", "inclusion mode"],
        meaning: "The *filter mode* applies to users on no list: `includeAll` includes them, `excludeAll` excludes them. If an experiment is running and nobody enrolls, the usual cause is `excludeAll` with an empty inclusion list.",
        example: None,
    },
    Term {
        names: &["order of precedence", "precedence"],
        meaning: "Inclusion is decided in this *order*: the global exclude segment, then the user's own exclusion, their own inclusion, the exclusion of one of their groups, the inclusion of one of their groups, and last the filter mode. The first that applies decides. Lists consider all groups of a user, not only the working group.",
        example: None,
    },
    Term {
        names: &["preview user", "preview users"],
        meaning: "A *preview user* is a test user who also sees experiments in `preview`. Everyone else gets the default there.",
        example: None,
    },
    Term {
        names: &["status", "experiment status", "statuses", "experiment statuses", "state"],
        meaning: "An experiment is `inactive` while it is being designed, `enrolling` (shown as *running*) while it assigns users, `enrollmentComplete` (*paused*) when it enrolls no new users and can be resumed, and `cancelled` (*completed*) when nobody gets its conditions anymore. `preview` is for test users, `scheduled` waits for a date, and `archived` keeps only its design and results.",
        example: Some(Example::Statuses),
    },
    Term {
        names: &["inactive"],
        meaning: "An `inactive` experiment is being designed. Everyone gets the default, and nothing is counted.",
        example: None,
    },
    Term {
        names: &["preview"],
        meaning: "An experiment in `preview` gives conditions only to registered test users. Everyone else gets the default.",
        example: None,
    },
    Term {
        names: &["scheduled"],
        meaning: "A `scheduled` experiment starts automatically on a date. This needs the server's scheduler; without it, nothing happens on that date.",
        example: None,
    },
    Term {
        names: &["running"],
        meaning: "A `running` experiment, stored as `enrolling`, assigns conditions and enrolls every included user who reaches a decision point.",
        example: None,
    },
    Term {
        names: &["paused", "enrollmentcomplete", "enrollment complete"],
        meaning: "A *paused* experiment, stored as `enrollmentComplete`, enrolls no new users. The post-experiment rule decides what enrolled users get: they keep their condition or all get the same one. It can be resumed.",
        example: None,
    },
    Term {
        names: &["cancelled", "canceled", "completed"],
        meaning: "A *cancelled* experiment, shown as `completed` by newer servers, no longer gives anyone a condition, whatever its post-experiment rule says. I treat it as final. If users should keep their condition, pause it instead.",
        example: None,
    },
    Term {
        names: &["archived"],
        meaning: "An `archived` experiment is no longer in use. Its results are kept, and nobody gets a condition from it.",
        example: None,
    },
    Term { names: &["draft"], meaning: "`draft` exists as a status, but nothing uses it yet.", example: None },
    Term {
        names: &[
            "post-experiment rule",
            "post experiment rule",
            "post rule",
            "post-experiment rules",
            "post rules",
            "pause behaviour",
            "pause behavior",
        ],
        meaning: "The *post-experiment rule* says what participants see once enrollment is complete. *continue*: enrolled users keep their condition. *assign* with a condition: all participants get that one. *assign* without: all get the default.\n\nUsers who were never enrolled get the default either way.",
        example: Some(Example::Afterwards),
    },
    Term {
        names: &["newcomer", "newcomers"],
        meaning: "A *newcomer* is a user who was never enrolled and visits after enrollment is complete. They get the default, even if the post-experiment rule gives enrolled users a condition. With group assignment, they get what their group gets.",
        example: None,
    },
    Term {
        names: &["history", "state history", "status history", "state time log", "state time logs"],
        meaning: "The *status history* is the dated list of an experiment's changes of status. Ask me to show an experiment in detail to see it.",
        example: None,
    },
    Term {
        names: &["audit log", "audit"],
        meaning: "The platform's *audit log* says who created, changed or deleted what there. For what was approved through me, ask “what have we done so far?”",
        example: None,
    },
    Term {
        names: &["upgrade"],
        meaning: "*UpGrade* is the A/B testing platform that your experiments run on. It assigns conditions at random, remembers each assignment and tracks enrollment.",
        example: None,
    },
    Term {
        names: &["countersign"],
        meaning: "That's me. I look things up on your experiment platform and prepare changes; a person here countersigns each one before it is made.",
        example: None,
    },
];
