//! The core terms: the parts of an experiment, its participants, and its life cycle.

use super::{Example, Term};

/// The terms, in the order in which they are listed.
pub(super) const TERMS: &[Term] = &[
    Term {
        names: &["a/b testing", "a/b test", "ab testing", "ab test", "a/b tests", "a b testing", "split testing"],
        meaning: "*A/B testing* shows different versions of the same thing to different people at the same time, decided by lot, and compares how they do. Because only chance decides who gets which, a difference beyond ordinary luck is owed to the version.\n\nOn UpGrade such a comparison is an *experiment*, and its versions are *conditions*.",
        example: None,
    },
    Term {
        names: &["experiment", "experiments", "study"],
        meaning: "An *experiment* compares two or more conditions inside one application. It says where it runs (decision points), what is compared (conditions and their weights), who takes part, how people are assigned, and what they see afterwards.\n\nIts name is only a label and may occur twice; the id is what identifies it.",
        example: Some(Example::Experiment),
    },
    Term {
        names: &["context", "contexts", "app context", "app contexts", "application context"],
        meaning: "A *context* is the application an experiment belongs to, such as `assign-prog`. Each has a vocabulary of its own: condition codes, group types, sites and targets, set up by the server's administrator.\n\nUpGrade itself checks only that the context exists, not that an experiment keeps to its words; I check those before I show a card.",
        example: Some(Example::Contexts),
    },
    Term {
        names: &["context metadata", "metadata"],
        meaning: "The *context metadata* is the vocabulary of each context: its suggested condition codes, kinds of groups, sites and targets. Sites are called `EXP_POINTS` there and targets `EXP_IDS`, which is easily swapped.",
        example: Some(Example::GroupTypes),
    },
    Term {
        names: &["decision point", "decision points", "partition", "partitions"],
        meaning: "A *decision point* is a place where the application asks “which version for this person?” It is named by a site and a target, such as `SelectSection / area_model`.\n\nAt all decision points of one experiment a person gets the same condition.",
        example: Some(Example::Points),
    },
    Term {
        names: &["site", "sites"],
        meaning: "A *site* is the broader place of a decision point: a page, a function, a step. Together with a *target* it names the exact spot.",
        example: Some(Example::Points),
    },
    Term {
        names: &["target", "targets"],
        meaning: "A *target* is the thing within a site that a decision point is about: a problem, a button, a lesson. A design may leave it out, but a visit cannot be marked without one.",
        example: Some(Example::Points),
    },
    Term {
        names: &["condition", "conditions", "arm", "treatment", "variant"],
        meaning: "A *condition* is one of the versions being compared, known to the application by its code, such as `control`.\n\n“Default” is not a condition: it is what the application does when UpGrade gives no answer, and it never shows up in the statistics.",
        example: Some(Example::Conditions),
    },
    Term {
        names: &["condition code", "condition codes"],
        meaning: "The *condition code* is the word that the application acts on, such as `control`. Codes should be ones the application knows; `default` is reserved and refused.",
        example: None,
    },
    Term {
        names: &["default", "default condition", "no condition"],
        meaning: "The *default* is what the application does without a word from UpGrade: when no experiment runs there, or the person may not take part. It is not a condition of the experiment and does not appear in the statistics, so it is not the same as `control`.",
        example: None,
    },
    Term {
        names: &["weight", "weights", "assignment weight", "weighting", "assignment weights"],
        meaning: "A *weight* is the share of participants, in percent, that a condition should get. Weights total 100.\n\nIt is a chance, not a quota: with 200 people at 50/50, something like 94 to 106 is perfectly normal. People who are enrolled keep their condition when weights change.",
        example: Some(Example::Conditions),
    },
    Term {
        names: &["payload", "payloads"],
        meaning: "A *payload* is the value that is handed to the application for one condition at one decision point: text, JSON or CSV. It lets one condition carry different content at different points. Without one the application goes by the condition's code.",
        example: None,
    },
    Term {
        names: &["participant", "participants"],
        meaning: "A *participant* is an end user of the application under test, known by an opaque id. They are not the people who manage experiments.",
        example: None,
    },
    Term {
        names: &["group", "groups", "group type", "group types"],
        meaning: "A *group type* is a kind of group, such as `classId` or `schoolId`; a *group* is one of them, such as class 5B. Lists look at all groups of a person, group assignment only at the one they work in at the moment, the *working group*.",
        example: Some(Example::GroupTypes),
    },
    Term {
        names: &["working group", "working groups"],
        meaning: "The *working group* is, for each group type, the one group in which a person is acting now. It decides group assignment, and it must be one of the person's groups; otherwise the person gets the default.",
        example: None,
    },
    Term {
        names: &["tag", "tags"],
        meaning: "A *tag* is a free label for finding experiments again. It has no effect on who gets what.",
        example: Some(Example::Tags),
    },
    Term {
        names: &["metric", "metrics"],
        meaning: "A *metric* is an outcome that the application reports. It is stored only if some experiment asks for it.",
        example: None,
    },
    Term {
        names: &["segment", "segments"],
        meaning: "A *segment* is a named collection of people, groups and other segments, used to include or exclude them. *Public* ones can be shared by experiments, *private* ones are the lists of a single experiment, and the *global exclude* segment of a context beats everything.",
        example: None,
    },
    Term {
        names: &["global exclude", "global exclude segment", "global exclusion"],
        meaning: "The *global exclude* segment exists once for each context. Whoever is in it takes part in no experiment there, whatever any list says.",
        example: None,
    },
    Term {
        names: &["inclusion list", "include list", "inclusion", "inclusion lists"],
        meaning: "The *inclusion list* says who may take part. It matters when the filter mode keeps everyone else out. Someone on the exclusion list stays out even if they are listed here.",
        example: None,
    },
    Term {
        names: &["exclusion list", "exclude list", "exclusion", "exclusion lists", "exclude lists"],
        meaning: "The *exclusion list* says who must not take part. A person listed there is out, whatever else holds.",
        example: None,
    },
    Term {
        names: &["filter mode", "filter modes", "inclusion mode"],
        meaning: "The *filter mode* says what happens to people on no list: `includeAll` lets them in, `excludeAll` keeps them out. The usual reason why an experiment runs and nobody enrolls is `excludeAll` with no inclusion list.",
        example: None,
    },
    Term {
        names: &["order of precedence", "precedence"],
        meaning: "Whether someone takes part is decided in this *order*: the global exclude segment, then the person's own exclusion, their own inclusion, the exclusion of one of their groups, the inclusion of one of their groups, and last the filter mode. The first that says anything wins. Lists look at all groups of a person, not only at the working group.",
        example: None,
    },
    Term {
        names: &["preview user", "preview users"],
        meaning: "A *preview user* is a test user who also sees experiments in `preview`. Everybody else gets the default there.",
        example: None,
    },
    Term {
        names: &["status", "experiment status", "statuses", "experiment statuses", "state"],
        meaning: "An experiment is `inactive` while it is being designed, `enrolling` (shown as *running*) while it assigns people, `enrollmentComplete` (*paused*) when it takes nobody new and can be resumed, and `cancelled` (*completed*) when it gives nobody a condition any more. `preview` is for test users, `scheduled` waits for a date, and `archived` is put away with its results.",
        example: Some(Example::Statuses),
    },
    Term {
        names: &["inactive"],
        meaning: "An `inactive` experiment is being designed. Everybody gets the default, and nothing is counted.",
        example: None,
    },
    Term {
        names: &["preview"],
        meaning: "An experiment in `preview` gives conditions to registered test users alone. Everybody else gets the default.",
        example: None,
    },
    Term {
        names: &["scheduled"],
        meaning: "A `scheduled` experiment starts by itself on a date. That needs a scheduler beside the server; without one nothing happens on the day.",
        example: None,
    },
    Term {
        names: &["running"],
        meaning: "A `running` experiment, stored as `enrolling`, assigns conditions and enrolls whoever comes by and may take part.",
        example: None,
    },
    Term {
        names: &["paused", "enrollmentcomplete", "enrollment complete"],
        meaning: "A *paused* experiment, stored as `enrollmentComplete`, takes nobody new. For those inside the post-experiment rule speaks: they keep their condition or all get the same. It can be resumed.",
        example: None,
    },
    Term {
        names: &["cancelled", "canceled", "completed"],
        meaning: "A *cancelled* experiment, shown as `completed` by newer servers, gives nobody a condition any more, whatever its post-experiment rule says. I treat it as final. If people should keep something, pause it instead.",
        example: None,
    },
    Term {
        names: &["archived"],
        meaning: "An `archived` experiment is put away. Its results are kept, and nobody gets a condition from it.",
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
        meaning: "The *post-experiment rule* says what participants see once enrollment is complete. *continue*: everyone keeps their condition. *assign* with a condition: all participants get that one. *assign* without: all get the default.\n\nPeople who were never enrolled get the default either way.",
        example: Some(Example::Afterwards),
    },
    Term {
        names: &["newcomer", "newcomers"],
        meaning: "A *newcomer* is someone who was never enrolled and comes by after enrollment is complete. They get the default, also where the post-experiment rule gives everyone inside a condition; only with group assignment they share their group's fate.",
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
        meaning: "*UpGrade* is the A/B testing platform that your experiments run on. It draws the lots, remembers who got what, and counts.",
        example: None,
    },
    Term {
        names: &["countersign"],
        meaning: "That's me. I look things up on your experiment platform and prepare changes; a person here countersigns each one before it is made.",
        example: None,
    },
];
