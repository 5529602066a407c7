// The inbox: the user of the page writes as a customer and sees what the customer sees. The thread
// of a mail in the workspace opens next to it.

import * as api from './api.js';
import { h, fill, freshId, reconcile, redraw } from './dom.js';
import { icon } from './icons.js';
import { avatar } from './avatar.js';
import { go, known, me, nameOf, on, refreshInbox } from './store.js';
import { day, full, sameDay, time } from './time.js';
import { toast } from './toasts.js';

// The time between two looks for answers, in milliseconds. Sending an answer is no event of the
// workspace.
const LOOK_EVERY = 2500;

/** Renders into `pane`, now and on each change, and shows it instead of `channel` while the inbox is open. */
export function startInbox(pane, channel) {
  const head = h('div', { class: 'pane-head' });
  const news = h('p', { class: 'inbox-news', role: 'status' });
  const form = h('div', { class: 'inbox-form' });
  const list = h('div', { class: 'conversations' });
  const scroller = h('div', { class: 'scroller', tabindex: -1 }, h('div', { class: 'inbox' }, intro(), form, news, list));
  pane.append(head, scroller);
  fill(head, title());

  const writer = mailForm({
    sent() {
      fill(news, 'Sent.');
      list.firstElementChild?.scrollIntoView({ block: 'nearest' });
    },
    begun: () => fill(news),
  });
  const place = () => {
    pane.hidden = !known.inbox;
    channel.hidden = known.inbox;
    if (known.inbox) document.title = `Inbox · ${nameOf(me())} · Countersign`;
  };
  let seen = null;
  let found = null;
  const content = () => {
    if (!known.inbox || !known.mail?.available) return;
    redraw(form, JSON.stringify(known.mail.customers), () => writer.draw(known.mail.customers));
    const conversations = grouped(known.mail.mails);
    reconcile(list, conversations.length
      ? conversations.map((one) => ({ key: one.id, signature: JSON.stringify([one, known.thread?.ts]), make: () => conversation(one, writer) }))
      : [{ key: 'none', signature: '', make: () => h('p', { class: 'inbox-none' }, 'No emails yet. Send the one above to start.') }]);
    for (const mail of list.querySelectorAll('.mail')) mail.classList.toggle('mail-in-view', mail.dataset.mail === known.mailInView?.id);
    const inView = list.querySelector('.mail-in-view');
    if (inView && found !== known.mailInView) {
      found = known.mailInView;
      inView.scrollIntoView({ block: 'center' });
      inView.focus({ preventScroll: true });
    }
    const answers = known.mail.mails.filter((one) => one.is_from_team);
    const fresh = seen && answers.filter((one) => !seen.has(one.id));
    if (fresh?.length) fill(news, `${fresh.at(-1).name} replied: “${fresh.at(-1).subject}”.`);
    seen = new Set(answers.map((one) => one.id));
  };
  for (const topic of ['place', 'workspace', 'inbox']) {
    on(topic, place);
    on(topic, content);
  }
  setInterval(() => { if (known.inbox && known.online && !document.hidden) refreshInbox(); }, LOOK_EVERY);
}

function title() {
  return h('div', { class: 'pane-title' }, icon('mail'), h('h1', {}, 'Inbox'), h('span', { class: 'topic' }, 'Email as your customers see it'));
}

function intro() {
  return h('p', { class: 'inbox-intro' }, 'Write to the team as a customer. Each email becomes a thread in #mail, where the team reviews the reply before it is sent. ',
    'Replies appear here. No email leaves this machine.');
}

// The form for a new mail. It keeps its values while the page changes around it. Calls `sent` after
// a mail was sent and is shown, and `begun` when the next one is written.
function mailForm({ sent, begun }) {
  const ids = Object.fromEntries(['name', 'address', 'subject', 'text'].map((name) => [name, freshId(`mail-${name}`)]));
  const input = (name, attributes) => h('input', { class: 'field', id: ids[name], name, autocomplete: 'off', 'aria-describedby': `${ids[name]}-error`, ...attributes });
  const fields = {
    name: input('name', { maxlength: 100 }),
    address: input('address', { type: 'email', maxlength: 320, required: true }),
    subject: input('subject', { maxlength: 998 }),
    text: h('textarea', { class: 'field', id: ids.text, name: 'text', rows: 5, required: true, 'aria-describedby': `${ids.text}-error` }),
  };
  const errors = Object.fromEntries(Object.keys(fields).map((name) => [name, h('div', { class: 'input-error', id: `${ids[name]}-error` })]));
  const labelled = (name, words) => h('div', { class: 'block-input' }, h('label', { class: 'input-label', for: ids[name] }, words), fields[name], errors[name]);
  const answering = h('div', { class: 'inbox-answering' });
  const submit = h('button', { type: 'submit', class: 'button button-primary' }, h('span', { class: 'button-words' }, 'Send email'));
  const isHtml = h('input', { type: 'checkbox', name: 'is_html' });
  const people = h('div', { class: 'inbox-people', role: 'group', 'aria-label': 'Write as' });
  let answers = null;

  const answer = (to) => {
    answers = to?.id ?? null;
    fill(answering, to && [h('span', {}, 'Reply to “', h('strong', {}, to.subject || 'no subject'), '”'),
      h('button', { type: 'button', class: 'button', onclick: () => { answer(null); fields.subject.focus(); } }, 'Write a new email instead')]);
  };
  const right = (name) => {
    fill(errors[name]);
    fields[name].setAttribute('aria-invalid', 'false');
    fields[name].parentElement.classList.remove('wrong');
  };
  const show = (wrong) => {
    for (const [name, field] of Object.entries(fields)) {
      fill(errors[name], wrong[name] && [icon('alert', 15), h('span', {}, wrong[name])]);
      field.setAttribute('aria-invalid', String(Boolean(wrong[name])));
      field.parentElement.classList.toggle('wrong', Boolean(wrong[name]));
    }
    Object.keys(fields).map((name) => wrong[name] && fields[name]).find(Boolean)?.focus();
  };
  const write = (mail) => {
    for (const [name, field] of Object.entries(fields)) field.value = mail[name] ?? '';
    isHtml.checked = Boolean(mail.is_html);
    mark();
  };
  const mark = () => {
    for (const button of people.children) button.setAttribute('aria-pressed', String(button.dataset.address === fields.address.value.trim().toLowerCase()));
  };
  const send = async () => {
    if (submit.getAttribute('aria-busy')) return;
    submit.setAttribute('aria-busy', 'true');
    try {
      const mail = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, name === 'text' ? field.value : field.value.trim()]));
      const accepted = await api.writeMail({ ...mail, is_html: isHtml.checked, answers });
      show(accepted.errors ?? {});
      if (!accepted.ok) return;
      fields.subject.value = '';
      fields.text.value = '';
      isHtml.checked = false;
      answer(null);
      await refreshInbox();
      sent();
    } catch (error) {
      toast(error.message);
    } finally {
      submit.removeAttribute('aria-busy');
    }
  };

  fields.address.addEventListener('input', mark);
  // A field that is corrected is not wrong any more.
  for (const [name, field] of Object.entries(fields)) field.addEventListener('input', () => right(name));
  const form = h('form', { class: 'inbox-mail', 'aria-label': 'New email', novalidate: true, oninput: begun, onsubmit: (event) => { event.preventDefault(); send(); } },
    people, answering,
    h('div', { class: 'inbox-who' }, labelled('name', 'Name'), labelled('address', 'Email address')),
    labelled('subject', 'Subject'), labelled('text', 'Message'),
    h('label', { class: 'inbox-html' }, isHtml, h('span', {}, 'Send as HTML')), h('div', { class: 'block-actions' }, submit));

  const as = ({ name, address, example }) => {
    begun();
    answer(null);
    write({ name, address, ...example });
    show({});
    fields.text.focus();
  };
  const someone = { name: '', address: '' };
  return {
    /** Returns the form, with a button for each of these customers. */
    draw(customers) {
      fill(people, customers.map((one) => h('button', { type: 'button', class: 'small-ask', dataset: { address: one.address.toLowerCase() }, onclick: () => as(one) }, one.name)),
        h('button', { type: 'button', class: 'small-ask', dataset: { address: '' }, onclick: () => { as(someone); fields.name.focus(); } }, 'Someone else'));
      if (!fields.address.value && customers[0]) write({ ...customers[0], ...customers[0].example });
      mark();
      return form;
    },
    /** Prepares the answer of a customer to a mail of the team. */
    replyTo(mail, name) {
      begun();
      write({ name, address: mail.customer, subject: /^re:/i.test(mail.subject) ? mail.subject : `Re: ${mail.subject}`, text: '' });
      answer(mail);
      show({});
      fields.text.focus();
    },
  };
}

// Returns the conversations, the one with the newest mail first; the mails of each are in order.
function grouped(mails) {
  const found = new Map();
  for (const mail of mails) found.set(mail.conversation, [...(found.get(mail.conversation) ?? []), mail]);
  return [...found].map(([id, all]) => ({ id, mails: all })).sort((a, b) => b.mails.at(-1).at - a.mails.at(-1).at);
}

function conversation({ mails }, writer) {
  const [first] = mails;
  const last = mails.at(-1);
  const heading = freshId('conversation');
  const fromCustomer = mails.findLast((one) => !one.is_from_team);
  const answered = mails.findLast((one) => one.is_from_team);
  const about = mails.findLast((one) => one.thread)?.thread;
  const show = (tab) => go({ inbox: true, channel: about.channel, ts: about.ts, tab });
  return h('section', { class: `conversation${about && known.thread?.ts === about.ts ? ' in-view' : ''}`, 'aria-labelledby': heading },
    h('h2', { id: heading }, first.subject || 'No subject'),
    mails.map(mailOf),
    !last.is_from_team && h('p', { class: 'inbox-waits' }, 'No reply yet.'),
    h('div', { class: 'block-actions' },
      answered && h('button', { type: 'button', class: 'button', onclick: () => writer.replyTo(answered, fromCustomer?.name ?? '') }, 'Reply'),
      about && h('button', { type: 'button', class: 'button', onclick: () => show('thread') }, 'Show thread'),
      about && h('button', { type: 'button', class: 'button', onclick: () => show('trace') }, 'Show trace')));
}

function mailOf(mail) {
  const at = new Date(mail.at);
  const when = sameDay(at, new Date()) ? time(at) : `${day(at)}, ${time(at)}`;
  const face = { id: mail.customer, real_name: mail.name || mail.customer, color: mail.is_from_team ? '1f3a5f' : '6b7280' };
  const { own, quoted } = parted(mail.text);
  return h('article', { class: mail.is_from_team ? 'mail mail-from-team' : 'mail', 'aria-label': `${face.real_name}, ${when}`, tabindex: -1, dataset: { mail: mail.id } },
    h('header', { class: 'mail-head' }, avatar(face, 24), h('span', { class: 'message-name' }, face.real_name),
      mail.is_from_team && h('span', { class: 'badge' }, 'Team'), h('time', { class: 'message-time', title: full(at) }, when)),
    h('div', { class: 'mail-text' }, own),
    quoted && h('details', { class: 'mail-quoted' }, h('summary', {}, 'Quoted text'), h('div', { class: 'mail-text' }, quoted)));
}

// Divides a text into the words of its writer, and the quotation at its end.
function parted(text) {
  const lines = text.trimEnd().split('\n');
  let end = lines.length;
  while (end > 0 && /^\s*(>|$)/.test(lines[end - 1])) end -= 1;
  const quotes = lines.slice(end).some((line) => line.trimStart().startsWith('>'));
  if (!quotes || end === 0) return { own: text, quoted: null };
  // The line that introduces it, such as “Ada wrote:”, belongs to the quotation.
  if (/:\s*$/.test(lines[end - 1]) && end > 1) end -= 1;
  return { own: lines.slice(0, end).join('\n').trimEnd(), quoted: lines.slice(end).join('\n').trim() };
}
