// The trace of a thread: the runs of the bot step by step, the actions and their decisions, the
// record.

import * as api from './api.js';
import { h, fill } from './dom.js';
import { icon } from './icons.js';
import { avatar } from './avatar.js';
import { replay } from './replay.js';
import { known, nameOf, user } from './store.js';
import { full, ofRecord, recently, timeWithSeconds } from './time.js';
import { arrivalInWords, auditInWords, entryName, inWords, statusName, stepName, verdictInWords } from './trace_words.js';

/** Fetches the records and renders the trace into `pane`. Expanded parts stay expanded. */
export async function traceOf(pane, channel, thread) {
  let record;
  try {
    record = await api.trace(channel, thread.ts);
    if (known.thread !== thread) return;
  } catch (error) {
    if (known.thread !== thread) return;
    const words = error.status === 404 ? 'The bot has not been in this thread, so there is nothing to show.' : error.message;
    fill(pane, h('div', { class: 'trace-none' }, icon('trace', 28), h('p', {}, words)));
    return;
  }
  const signature = JSON.stringify(record);
  if (pane.dataset.of === thread.ts && pane.signature === signature && pane.children.length) return;
  const unfolded = new Set([...pane.querySelectorAll('details[open]')].map((one) => one.dataset.fold));
  if (pane.dataset.of !== thread.ts) pane.replayAt = null;
  pane.signature = signature;
  pane.dataset.of = thread.ts;
  const runs = (record.runs ?? []).map((one, index, all) => run(one, index, all.length));
  const steps = runs.flatMap((one) => [...one.querySelectorAll('li.step')]).map((node) => ({ node, name: stepName(node.dataset.node) }));
  fill(pane, h('div', { class: 'trace' }, summary(record), steps.length > 0 && replay(pane, steps), plans(record.events),
    runs, part('Changes to approve', (record.actions ?? []).map(action)), part('Record', audit(record.audit ?? []))));
  for (const one of pane.querySelectorAll('details')) if (unfolded.has(one.dataset.fold)) one.open = true;
}

function summary({ runs = [], actions = [] }) {
  const steps = runs.flatMap((one) => one.steps ?? []);
  const usage = steps.map((one) => one.usage).filter(Boolean);
  const sum = (name) => usage.reduce((total, one) => total + (one[name] ?? 0), 0);
  const fact = (value, words) => h('div', { class: 'trace-fact' }, h('strong', {}, value), h('span', {}, words));
  return h('div', { class: 'trace-facts' }, fact(steps.length, steps.length === 1 ? 'step' : 'steps'),
    fact(sum('calls'), sum('calls') === 1 ? 'question to the language model' : 'questions to the language model'), fact((sum('input_tokens') + sum('output_tokens')).toLocaleString(), 'tokens (its units of text)'),
    fact(actions.length, actions.length === 1 ? 'change' : 'changes'));
}

// Returns the class of an event of a plan. A person's decision, such as a stop, is no failure.
function endOf({ error, decided, complete }) {
  if (error) return decided ? 'step-decided' : 'step-failed';
  return complete ? 'step-end' : '';
}

// The events of plans as they happened, with how much was done by then.
function plans({ stream = [], progress_events: progress = [] } = {}) {
  const last = progress.at(-1);
  const event = ({ message, source, timestamp, phase, step, total_steps: total, error, decided, complete }) => h('li', { class: `step ${endOf({ error, decided, complete })}` },
    h('div', { class: 'step-head' }, h('strong', { class: 'step-node' }, phase === 'Execution' ? `Step ${step} of ${total}` : 'Plan'),
      h('span', { class: 'step-way' }, source), h('span', { class: 'step-time' }, timeWithSeconds(ofRecord(timestamp)))),
    h('div', { class: 'step-input' }, message), error && (decided ? h('div', { class: 'step-reason' }, error) : h('div', { class: 'step-error' }, icon('alert', 15), error)));
  return stream.length ? h('section', { class: 'trace-part' },
    h('h3', {}, 'Plan', last && h('span', { class: 'trace-when' }, `${Math.round(last.progress * 100)}% done`)),
    h('ol', { class: 'steps' }, stream.map(event))) : null;
}

function part(title, nodes) {
  return nodes.length ? h('section', { class: 'trace-part' }, h('h3', {}, title), nodes) : null;
}

function run({ run: id, started_at: at, steps = [], ratings = [] }, index, total) {
  const spent = steps.reduce((total, one) => total + (one.duration_ms ?? 0), 0);
  return h('section', { class: 'trace-part' },
    h('h3', { title: id }, `What the bot did${total > 1 ? `, part ${index + 1}` : ''}`, h('span', { class: 'trace-when' }, `${recently(ofRecord(at))} · ${duration(spent)}`)),
    h('ol', { class: 'steps' }, steps.map((one) => step(one, id))), opinions(ratings));
}

// Returns the feedback on an answer: the latest of each person.
function opinions(ratings) {
  const last = [...new Map(ratings.map((one) => [one.by, one])).values()];
  if (!last.length) return null;
  return h('ul', { class: 'opinions', 'aria-label': 'Whether the answer helped' }, last.map(({ by, at, helped }) => h('li', { class: helped ? 'opinion-good' : 'opinion-bad' },
    icon(helped ? 'thumbsup' : 'thumbsdown', 16), h('span', {}, person(by), `: ${opinion(helped)}`), h('time', { title: full(ofRecord(at)) }, timeWithSeconds(ofRecord(at))))));
}

const opinion = (helped) => (helped ? 'this helped' : 'this did not help');

function step(one, id) {
  const changes = one.changes ?? [];
  const fold = `${id}/${one.version}`;
  const said = inWords(changes);
  return h('li', { class: `step ${one.error ? 'step-failed' : ''} step-${wayOn(one.next).kind}`, dataset: { node: one.node } },
    h('div', { class: 'step-head' }, h('strong', { class: 'step-node', title: one.node }, stepName(one.node)), h('span', { class: 'step-way' }, wayOn(one.next).words),
      h('span', { class: 'step-time', title: full(ofRecord(one.at)) }, `${timeWithSeconds(ofRecord(one.at))} · ${duration(one.duration_ms ?? 0)}`)),
    one.input !== undefined && one.input !== null && h('div', { class: 'step-input' }, told(one.input)),
    one.error && h('div', { class: 'step-error' }, icon('alert', 15), say(one.error)),
    one.usage && h('div', { class: 'step-usage' }, usage(one.usage)),
    said.length > 0 && h('ul', { class: 'step-said' }, said.map((words) => h('li', {}, named(words)))),
    changes.length > 0 && h('details', { class: 'fold', dataset: { fold } },
      h('summary', {}, icon('right', 14), 'Details'),
      h('dl', { class: 'changes' }, changes.map(change))));
}

function change({ path, op, value }) {
  const mark = { add: '+', remove: '−', replace: '→' }[op] ?? op;
  return [h('dt', {}, h('span', { class: `change-op op-${op}`, title: op }, mark), path),
    value !== undefined && h('dd', {}, typeof value === 'string' ? value : JSON.stringify(value, null, 2))];
}

function usage({ model, calls = 0, input_tokens: input = 0, output_tokens: output = 0 }) {
  return `Asked ${model ?? 'the language model'} ${calls === 1 ? 'once' : `${calls} times`} · read ${input.toLocaleString()} tokens, wrote ${output.toLocaleString()}`;
}

// Returns the next place after a step: a node, a person, the end. The record has a word, or an
// object with one key.
function wayOn(next) {
  const [kind, to] = typeof next === 'object' && next ? Object.entries(next)[0] ?? ['end'] : [next];
  if (!kind || kind === 'end' || kind === 'finished') return { kind: 'end', words: 'done' };
  if (['ask', 'await', 'wait', 'waiting', 'interrupt'].includes(kind)) return { kind: 'ask', words: 'waits for a person' };
  return { kind: 'go', words: `then: ${nextName(typeof to === 'string' ? to : to?.node ?? kind)}` };
}

const nextName = (node) => stepName(node).replace(/^./, (letter) => letter.toLowerCase());

const STANDS = { done: 'good', approved: 'good', failed: 'bad', rejected: 'bad', unknown: 'odd', pending: 'open', intent: 'open', proposed: 'open' };

function action({ id, name, status, digest, requested_by: by, decisions = [], outcome }) {
  const moment = (who, words, at) => h('li', {}, user(who) && avatar(user(who), 18), h('span', {}, person(who), ` ${words}`), at && h('time', {}, timeWithSeconds(ofRecord(at))));
  return h('div', { class: 'action-card' },
    h('div', { class: 'action-head' }, h('strong', {}, name), h('span', { class: `pill pill-${STANDS[status] ?? 'still'}` }, statusName(status))),
    h('ul', { class: 'action-life' }, by && moment(by, 'asked'), decisions.map((one) => moment(one.by, verdictInWords(one.verdict), one.at))),
    outcome && h('div', { class: 'action-outcome' }, say(outcome)),
    h('div', { class: 'action-small' }, digest && h('span', { title: 'It changes with every detail of the request' }, 'fingerprint ', h('code', {}, digest.slice(0, 12))), h('span', {}, 'id ', h('code', {}, id))));
}

function audit(entries) {
  if (!entries.length) return [];
  return [h('p', { class: 'chain-about' }, 'Each entry has a fingerprint that includes the one before it, so a later edit would show.'),
    h('ol', { class: 'chain' }, entries.map(({ seq, at, kind, by, detail, hash }) => h('li', {},
    h('span', { class: 'chain-seq' }, seq),
    h('div', { class: 'chain-main' },
      h('div', {}, h('strong', {}, entryName(kind)), by && h('span', { class: 'chain-by' }, ' by ', person(by)), h('time', { title: full(ofRecord(at)) }, timeWithSeconds(ofRecord(at)))),
      detail && auditDetail(kind, detail), hash && h('code', { class: 'chain-hash', title: `Fingerprint ${hash}` }, icon('link', 13), hash.slice(0, 16))))))];
}

// Returns the details of an entry: a sentence, and the whole record on request.
function auditDetail(kind, detail) {
  if (kind === 'rated') return h('div', { class: 'chain-detail' }, opinion(detail.helped));
  const words = auditInWords(kind, detail);
  if (!words) return h('div', { class: 'chain-detail' }, say(detail));
  return [h('div', { class: 'chain-detail' }, named(words)),
    h('details', { class: 'fold', dataset: { fold: `audit/${kind}/${JSON.stringify(detail).slice(0, 80)}` } },
      h('summary', {}, icon('right', 14), 'Record'), h('pre', { class: 'changes chain-record' }, JSON.stringify(detail, null, 2)))];
}

// Returns a text with the names of people instead of their ids.
const named = (words) => words.replace(/@(U\w+)/g, (mention, id) => (user(id) ? `@${user(id).name}` : mention));

// Returns the input of a step: a message, decision or stop of a person; anything else as recorded.
function told(input) {
  const inside = typeof input === 'object' && !input.kind && Object.keys(input).length === 1 ? Object.values(input)[0] : input;
  if (typeof inside !== 'object' || inside === null) return say(input);
  const by = inside.by ?? inside.decision?.by;
  if (by && typeof inside.text === 'string') return [person(by), `: ${inside.text}`];
  const decided = inside.verdict ?? inside.decision?.verdict;
  if (by && decided) return [person(by), ` ${verdictInWords(decided)}`];
  if (by && inside.kind) return [person(by), `: ${inside.kind}`];
  if (inside.kind === 'external' && inside.source) return arrivalInWords(inside.source, inside.key);
  return say(input);
}

const person = (id) => h('span', { class: 'trace-person' }, user(id) ? nameOf(user(id)) : String(id));
const say = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
const duration = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
