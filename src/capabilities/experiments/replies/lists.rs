//! The lists of experiments: a table, a few lines, or a file.

use countersign_capabilities::ShownList;
use countersign_core::{
    clock::Timestamp,
    reply::{Part, Reply, Text},
};
use serde::Deserialize as _;
use serde_json::Value;

use super::{
    super::{
        listing::{Form, ListArguments, PAGE_SIZE, Sort},
        summary::Summary,
    },
    answers::{self, json_file},
};

/// Returns a list of experiments: the answer of `get_all_experiments` to the arguments `which`.
pub fn list_reply(answer: &Value, which: &ListArguments) -> Reply {
    let listed = answer["experiments"].as_array().map(Vec::as_slice).unwrap_or_default();
    let all: Vec<_> = listed.iter().filter_map(|value| Summary::deserialize(value).ok()).collect();
    let filter = which.words();
    let limit = if filter.is_empty() { String::new() } else { format!(" ({filter})") };
    if all.is_empty() {
        return match filter.is_empty() {
            false => Reply::text(Text::new().plain(format!("No experiments in UpGrade match: {filter}.")))
                .choice("List experiments", "list experiments"),
            true => Reply::text("There are no experiments in UpGrade.")
                .hint("To create one, give me a name, a context and a decision point."),
        };
    }
    let total = answer["total"].as_u64().and_then(|total| usize::try_from(total).ok()).unwrap_or(all.len());
    let one_or_many = if total == 1 { "experiment" } else { "experiments" };
    if which.form == Form::Raw {
        let text = format!("The data of {} {one_or_many}{limit} is in the file below.", all.len());
        return json_file(Reply::text(text), "experiments", "Experiments", &Value::from(listed.to_vec()));
    }
    let pages = all.len().div_ceil(PAGE_SIZE);
    let page = which.page.unwrap_or(1).max(1);
    if page > pages {
        let count = if pages == 1 { "is 1 page".to_owned() } else { format!("are {pages} pages") };
        return Reply::text(format!("There {count} of experiments{limit}, so page {page} is empty."))
            .choice("First page", which.request(1));
    }
    let from = (page - 1) * PAGE_SIZE;
    let shown: Vec<_> = all.iter().skip(from).take(PAGE_SIZE).collect();
    let heading = match pages {
        1 => format!("{total} {one_or_many}{limit}:"),
        _ => format!("Experiments {}–{} of {total}{limit}:", from + 1, from + shown.len()),
    };
    let mut reply = Reply::text(heading).and(match which.form {
        Form::Short => Part::List(shown.iter().map(|experiment| line(experiment)).collect()),
        _ => table(&shown, which),
    });
    if page < pages {
        let next = PAGE_SIZE.min(all.len() - from - PAGE_SIZE);
        reply = reply.choice(format!("Next {next}"), which.request(page + 1));
    } else if total > all.len() {
        reply = reply.hint(format!("{} more aren't shown. Ask for one context or status.", total - all.len()));
    }
    if page > 1 {
        reply = reply.choice(format!("Previous {PAGE_SIZE}"), which.request(page - 1));
    }
    reply
}

/// Returns the entries that [`list_reply`] shows; `None` if it shows none.
pub fn shown(answer: &Value, which: &ListArguments) -> Option<ShownList> {
    let listed = answer["experiments"].as_array().filter(|listed| !listed.is_empty())?;
    if which.form == Form::Raw {
        return None;
    }
    let names = listed.iter().filter_map(|experiment| experiment["name"].as_str());
    let from = (which.page.unwrap_or(1).max(1) - 1).saturating_mul(PAGE_SIZE);
    let names: Vec<_> = names.skip(from).take(PAGE_SIZE).map(str::to_owned).collect();
    let is_complete = answer["total"].as_u64() == u64::try_from(names.len()).ok();
    (!names.is_empty()).then_some(ShownList { names, is_complete })
}

fn line(experiment: &Summary) -> Text {
    Text::new().bold(&experiment.name).plain(format!(": {}", experiment.status.display()))
}

fn table(shown: &[&Summary], which: &ListArguments) -> Part {
    let full = which.form == Form::Full;
    let order = which.order();
    let mut columns = vec!["Name", "Status", "Context", "Conditions"];
    columns.extend(full.then_some(["Decision points", "Tags"]).into_iter().flatten());
    let created = full || matches!(order, Sort::Newest | Sort::Oldest);
    let changed = full || order == Sort::Changed;
    columns.extend(created.then_some("Created"));
    columns.extend(changed.then_some("Changed"));
    let rows = shown.iter().map(|experiment| {
        let mut row = vec![
            Text::new().bold(&experiment.name),
            Text::new().plain(experiment.status.display()),
            Text::new().code(&experiment.context),
            Text::new().plain(answers::shares(&experiment.conditions)),
        ];
        if full {
            row.push(experiment.decision_points.join(", ").into());
            row.push(experiment.tags.join(", ").into());
        }
        row.extend(created.then(|| moment(experiment.created_at.as_deref())));
        row.extend(changed.then(|| moment(experiment.updated_at.as_deref())));
        row
    });
    Part::Table { columns: columns.into_iter().map(str::to_owned).collect(), rows: rows.collect() }
}

/// Parses a time in the platform's format. It is shown in the reader's time zone.
pub(super) fn moment(at: Option<&str>) -> Text {
    match at.and_then(|at| at.parse::<jiff::Timestamp>().ok()) {
        Some(moment) => Text::new().moment(Timestamp(moment.as_millisecond())),
        None => Text::from("–"),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::{super::tests::read, *};

    fn experiment(name: &str, status: &str) -> Value {
        json!({
            "id": "d56d271d-a23c-4e9b-a163-b5fd658c5b03", "name": name, "status": status, "status_words": status,
            "context": "assign-prog", "created_at": "2026-11-20T08:00:00.000Z", "tags": ["algebra"],
            "conditions": [{ "code": "control", "weight": 50 }, { "code": "variant", "weight": 50 }],
            "decision_points": ["SelectSection / area_model"],
        })
    }

    fn list(experiments: &[Value], which: Value) -> String {
        let answer = json!({ "total": experiments.len(), "experiments": experiments });
        read(&list_reply(&answer, &serde_json::from_value(which).unwrap()))
    }

    #[test]
    fn a_list_is_a_table() {
        let experiments = [experiment("Math Hints", "inactive"), experiment("Running Test", "running")];
        assert_snapshot!(list(&experiments, json!({})), @"
        2 experiments:
        Name | Status | Context | Conditions
        Math Hints | inactive | assign-prog | control 50%, variant 50%
        Running Test | running | assign-prog | control 50%, variant 50%
        ");
        assert_snapshot!(list(&experiments, json!({ "created": "today", "context": "assign-prog" })), @"
        2 experiments (in assign-prog, created today):
        Name | Status | Context | Conditions | Created
        Math Hints | inactive | assign-prog | control 50%, variant 50% | 2026-11-20T08:00:00.000Z
        Running Test | running | assign-prog | control 50%, variant 50% | 2026-11-20T08:00:00.000Z
        ");
        assert_snapshot!(list(&experiments, json!({ "form": "full" })), @"
        2 experiments:
        Name | Status | Context | Conditions | Decision points | Tags | Created | Changed
        Math Hints | inactive | assign-prog | control 50%, variant 50% | SelectSection / area_model | algebra | 2026-11-20T08:00:00.000Z | –
        Running Test | running | assign-prog | control 50%, variant 50% | SelectSection / area_model | algebra | 2026-11-20T08:00:00.000Z | –
        ");
        assert_snapshot!(list(&experiments, json!({ "form": "short" })), @"
        2 experiments:
        • Math Hints: inactive
        • Running Test: running
        ");
        assert_snapshot!(list(&[], json!({ "status": "enrolling" })), @"
        No experiments in UpGrade match: running.
        [List experiments → list experiments]
        ");
        assert_snapshot!(list(&[], json!({})), @"
        There are no experiments in UpGrade.
        To create one, give me a name, a context and a decision point.
        ");
    }

    #[test]
    fn a_long_list_has_pages() {
        let experiments: Vec<_> = (1..=13).map(|n| experiment(&format!("Twin {n}"), "inactive")).collect();
        let brief = |which| {
            list(&experiments, which).lines().filter(|line| !line.contains("Twin")).collect::<Vec<_>>().join("\n")
        };
        assert_snapshot!(brief(json!({ "context": "assign-prog" })), @"
        Experiments 1–10 of 13 (in assign-prog):
        Name | Status | Context | Conditions
        [Next 3 → list experiments in assign-prog page 2]
        ");
        assert_snapshot!(brief(json!({ "page": 2, "sort": "newest" })), @"
        Experiments 11–13 of 13:
        Name | Status | Context | Conditions | Created
        [Previous 10 → list experiments newest first]
        ");
        assert_snapshot!(brief(json!({ "page": 3 })), @"
        There are 2 pages of experiments, so page 3 is empty.
        [First page → list experiments]
        ");
    }

    #[test]
    fn raw_is_a_file() {
        let which = ListArguments { form: Form::Raw, ..ListArguments::default() };
        let reply = list_reply(&json!({ "total": 1, "experiments": [experiment("Math Hints", "inactive")] }), &which);
        assert_eq!(reply.files[0].name, "experiments.json");
        assert_snapshot!(read(&reply), @"The data of 1 experiment is in the file below.");
    }
}
