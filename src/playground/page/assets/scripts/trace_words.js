// What happened in words: the steps, and what the bot noted, decided, said or waits for in each. The names in
// the record and the raw changes stay behind “Details”.

// The steps, for people who do not know the bot's graphs.
const STEPS = {
  analyze: 'Understand the message', clarify: 'Ask what is missing', gather: 'Look things up', confirm: 'Ask for approval',
  respond: 'Answer', replan: 'Adjust the plan', carry_on: 'Continue with the plan',
  start: 'Receive the email', retrieve: 'Look up what is known', classify: 'Sort the email', decide: 'Decide what to do',
  execute_tools: 'Look things up', generate: 'Draft a reply', review: 'Ask for a review', talk: 'Discuss the draft',
  answered: 'Notice a reply sent by hand', close: 'Close the email',
};

/** Returns the name of a step for people. */
export const stepName = (node) => STEPS[node] ?? capital(spoken(node));

// The kinds of entries in the record.
const ENTRIES = {
  said: 'Message', answered: 'Answer', posted: 'Update sent', asked: 'Request', shown: 'Card shown', click_refused: 'Not allowed',
  decided: 'Decision', policy_changed: 'Approval rules changed', executed: 'About to send', sent: 'Sent', outcome: 'Outcome',
  stopped: 'Stopped', waits: 'Waiting for an event', arrived: 'Event arrived', progress: 'Progress', ran: 'Language model used',
  attached: 'File attached', edited: 'Request edited', reasoned: 'Reason given', reminded: 'Reminder', settled: 'Outcome confirmed',
  rated: 'Feedback', exported: 'Record exported', forgotten: 'Old messages deleted', unreadable: 'Unreadable entry',
};

/** Returns the name of a kind of entry for people. */
export const entryName = (kind) => ENTRIES[kind] ?? capital(spoken(kind));

const STATUSES = { proposed: 'prepared', pending: 'waiting', intent: 'sending', unknown: 'outcome unknown', settled: 'confirmed', superseded: 'replaced', cancelled: 'withdrawn', obsolete: 'no longer needed' };

/** Returns the status of a change for people. */
export const statusName = (status) => STATUSES[status] ?? spoken(status);

/** Returns the sentences about the changes of a step, each once, the most telling first. */
export function inWords(changes) {
  const sentences = changes.flatMap((change) => (change.path === '' ? ofStart(change.value) : ofChange(change)));
  return [...new Set(sentences.filter(Boolean))];
}

// The first step stores the whole state at once.
function ofStart(record) {
  const turn = record?.state?.turn ?? {};
  return Object.entries(turn).flatMap(([name, value]) => ofChange({ path: `/state/turn/${name}`, op: 'add', value }));
}

function ofChange({ path, op, value }) {
  const words = SENTENCES.find(([pattern]) => pattern.test(path))?.[1];
  const sentence = words === undefined ? fallback(path, op, value) : words && words(value, op, path);
  return sentence ? [sentence] : [];
}

// A path and its sentence; null for bookkeeping, about which there is nothing to say.
const SENTENCES = [
  [/^\/state\/turn\/analysis/, (value) => value?.user_request_summary && `Understood: “${value.user_request_summary}”.`],
  [/^\/state\/turn\/names$/, (value) => listed('Recognized', value?.map((one) => `“${one.name}”`))],
  [/^\/state\/turn\/missing$/, (value) => listed('Still needed:', value?.map(brief))],
  [/^\/state\/turn\/errors/, (value) => listed('Errors:', [value].flat().map(brief))],
  [/^\/state\/turn\/reads/, (value, op) => op !== 'remove' && listed('Looked up', [value].flat().map(nameOfRead))],
  [/^\/state\/turn\/proposal$/, (value) => value?.card?.title && `Prepared the card “${value.card.title}”.`],
  [/^\/state\/turn\/change$/, (value) => value?.action && `Chose the change: ${spoken(value.action)}.`],
  [/^\/state\/turn\/(final_response|reply)/, (value) => quoted('Answered', textOf(value))],
  [/^\/state\/turn\/gathered/, (value) => listed('Collected', Object.keys(Object(value)).map(spoken))],
  [/^\/state\/draft$/, (value) => (value ? 'Kept the request until nothing is missing.' : 'Nothing is missing any more.')],
  [/^\/state\/(last_[a-z]+|subjects)/, (value) => aboutThing(value)],
  [/^\/state\/topic/, (value) => value?.capability && `This is about ${spoken(value.capability)}.`],
  [/^\/state\/conversation\/lines/, (value, op) => op !== 'remove' && quoted('Remembered', lastText(value))],
  [/^\/state\/log/, (value) => (value ? 'Added an entry to the list of changes made here.' : null)],
  [/^\/suspended/, (value, op) => (op === 'remove' || !value ? 'No longer waits for a person.' : 'Waits for a person’s decision.')],
  [/^\/state\/(turn\/)?(began|cause)(\/|$)/, null],
  [/^\/state\/(shown_contact|shown_context|is_shown)\b|^\/with_buttons\b/, null],
  [/^\/state\/email$/, (value) => value?.subject && `Read the email “${value.subject}”.`],
  [/^\/state\/asked_for_changes$/, (value) => value && 'Asked what the new draft should do differently.'],
  [/^\/state\/is_answered$/, (value) => value && 'The email is answered.'],
  [/^\/state\/steps\b/, (value) => value?.reasoning && `${capital(short(value.reasoning).replace(/\.$/, ''))}.`],
  [/^\/state\/tool_results\b/, (value) => listed('Looked things up with', [value].flat().flatMap((one) => one?.tool ?? Object.keys(Object(one)).map(spoken)))],
  [/^\/state\/draft_response$/, (value) => quoted('Drafted', textOf(value))],
  [/^\/state\/selected_tools\b/, (value) => listed('Decided to use', [value].flat().map((one) => spoken(brief(one))))],
  [/^\/state\/classification$/, (value) => value && `Sorted as: ${spoken(value)}.`],
  [/^\/state\/confidence$/, (value) => value > 0 && `${Math.round(value * 100)}% sure of that.`],
  [/^\/state\/classified_by$/, (value) => sourceName(value) && `Sorted by ${sourceName(value)}.`],
  [/^\/state\/drafted_by$/, (value) => sourceName(value) && `Drafted by ${sourceName(value)}.`],
  [/^\/state\/reasoning$/, (value) => value && `Because: ${short(value)}`],
  [/^\/state\/context$/, (value) => value?.length && `Found ${value.length === 1 ? '1 related text' : `${value.length} related texts`}.`],
  [/^\/state\/contact$/, (value) => value && `The sender is known: ${short(value)}.`],
  [/^\/state\/requires_approval$/, (value) => (value ? 'A person decides whether to send a reply.' : 'No person has to decide.')],
  [/^\/state\/final_response$/, (value) => quoted('The reply', textOf(value))],
  [/^\/state\/(stored|generation_confidence|tool_params)\b/, null],
  [/^\/state\/(mail|message|classification|class)\b/, (value, op, path) => `${capital(last(path))}: ${brief(value)}.`],
  [/^\/cursor\/performing$/, (value, op) => op === 'remove' && 'The change was carried out, and its outcome was read.'],
  [/^\/cursor$/, (value) => value?.performing && 'The change is sent next.'],
  [/^\/(cursor|voice|turns|format|run|said_at)\b|^\/state\/(on_card|on_card_turn|speakers|draft_turn|context)\b/, null],
  [/^\/state\/turn\/(phase|at|by|number|rounds|exchange|said|zone|without_model)\b/, null],
];

function fallback(path, op, value) {
  const name = spoken(path.replace(/^\/(state\/)?(turn\/)?/, '').replace(/\/(\d+|-)(?=\/|$)/g, ' ').replaceAll('/', ' '));
  const empty = value === null || value === undefined || value === '' || (typeof value === 'object' && !Object.keys(value).length);
  if (op === 'remove') return `Removed: ${name}.`;
  return empty ? null : `${capital(name)}: ${brief(value)}.`;
}

const sourceName = (source) => ({ model: 'the language model', rules: 'fixed rules', person: 'a person' })[source];
const listed = (before, items) => (items?.length ? `${before} ${items.join(', ')}.` : null);
const quoted = (before, words) => (words ? `${before}: “${short(words)}”` : null);
const spoken = (name) => String(name).replaceAll('_', ' ').replace(/\s+/g, ' ').trim();
const capital = (words) => `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
const last = (path) => spoken(path.split('/').at(-1));
const short = (words) => (words.length > 160 ? `${words.slice(0, 159).trimEnd()}…` : words);
const nameOfRead = (read) => spoken(read?.tool ?? read?.name ?? brief(read));

function aboutThing(value) {
  const name = typeof value === 'string' ? value : Object.values(Object(value)).at(-1);
  return typeof name === 'string' ? `“It” now means “${name}”.` : null;
}

function lastText(value) {
  const line = Array.isArray(value) ? value.at(-1) : value;
  return typeof line === 'string' ? line : line?.text;
}

// Returns the words of a reply: strings below `plain`, `bold`, `text` and the like, in order.
function textOf(value) {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(textOf).join('');
  return value && typeof value === 'object' ? Object.values(value).map(textOf).join(' ').trim() : '';
}

// Returns a value in a few words, without the braces of its record.
function brief(value) {
  if (value === null || value === undefined) return 'nothing';
  if (typeof value !== 'object') return short(String(value));
  if (Array.isArray(value)) return value.length > 3 ? `${value.length} entries` : value.map(brief).join(', ');
  return short(Object.entries(value).map(([name, one]) => `${spoken(name)} ${typeof one === 'object' && one ? '…' : one}`).join(', '));
}

/** Returns what happened elsewhere, for people; `source` is the system and `key` its name for the event. */
export function arrivalInWords(source, key) {
  if (source !== 'mail') return `An event from ${spoken(source)} arrived.`;
  return String(key).endsWith(ANSWER) ? 'Someone answered the email in the mailbox.' : 'An email arrived.';
}

// The end of the keys of answers that people sent with a mail program.
const ANSWER = '#answered';

// The orders that the bot sends to other systems.
const ORDERS = {
  'mail-headings': 'The first message of the thread was updated.', 'mail-labels': 'The label in the mailbox was updated.',
  'mail-drafts': 'A draft that is no longer needed was removed from the mailbox.',
};

const METHODS = { button: ', with a button', typed: ', by typing' };

/** Returns a verdict for people: a word, or an object with the word as its only key. */
export function verdictInWords(verdict) {
  const [word, more] = typeof verdict === 'object' && verdict ? Object.entries(verdict)[0] ?? ['decided'] : [verdict];
  const reason = textOf(more?.reason ?? more?.why).trim().replace(/[.,]$/, '');
  return `${statusName(word)}${reason ? `: ${reason}` : ''}`;
}

function decisionInWords({ verdict, how }) {
  const method = typeof how === 'object' && how ? Object.keys(how)[0] : how;
  const typed = textOf(how?.typed?.text);
  return `${capital(verdictInWords(verdict))}${METHODS[method] ?? ''}${typed ? ` “${short(typed)}”` : ''}.`;
}

/** Returns the details of an entry of the audit chain in a sentence; null if only the record says them. */
export function auditInWords(kind, detail) {
  switch (kind) {
    case 'said': case 'answered': return detail.text && short(detail.text);
    case 'asked': case 'shown': return detail.title ?? detail.card?.title ?? null;
    case 'decided': return detail.verdict && decisionInWords(detail);
    case 'arrived': return arrivalInWords(detail.source, detail.key);
    case 'posted': return ORDERS[detail.channel] ?? `A message was sent by ${spoken(detail.channel)}.`;
    case 'reasoned': return detail.reason && short(detail.reason);
    case 'executed': return 'The change was about to be sent.';
    case 'sent': return (detail.exchanges ?? []).map((one) => `${one.method} ${one.path}: ${one.status}${one.count > 1 ? `, ${one.count} times` : ''}`).join('; ') || null;
    case 'outcome': case 'settled': return detail.summary ?? null;
    case 'attached': return detail.title ? `File “${detail.title}”.` : null;
    default: return null;
  }
}
