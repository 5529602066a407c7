// Messages, with author, time, content and actions. The channel and the thread use the same
// rendering.

import * as api from './api.js';
import { h } from './dom.js';
import { icon } from './icons.js';
import { avatar } from './avatar.js';
import { mrkdwn, plainText } from './mrkdwn.js';
import { blocks } from './blocks.js';
import { pressesIn } from './press.js';
import { openMenu } from './menu.js';
import { toast } from './toasts.js';
import { bot, known, nameOf, openThread, statusIn, user } from './store.js';
import { day, full, ofTs, recently, sameDay, time } from './time.js';

/** Returns the items for `reconcile`: messages in order, with dividers between days. */
export function messageItems(messages, { inThread = false } = {}) {
  return messages.flatMap((message, index) => {
    const before = messages[index - 1];
    const newDay = !before || !sameDay(ofTs(before.ts), ofTs(message.ts));
    const follows = !newDay && continues(before, message, inThread);
    const status = inThread ? null : statusIn(message.channel ?? known.channel, message.ts);
    const item = {
      key: `${message.ts}${message.ephemeral ? 'e' : ''}`,
      signature: JSON.stringify([message, follows, status, known.me, known.thread?.ts === message.ts]),
      make: () => draw(message, { follows, inThread, status }),
    };
    const divider = { key: `day-${ofTs(message.ts).toDateString()}`, signature: day(ofTs(message.ts)), make: () => dayDivider(ofTs(message.ts)) };
    return newDay && !inThread ? [divider, item] : [item];
  });
}

/** Returns the status line, such as “countersign is thinking…”. */
export function statusLine(words, stop) {
  return h('div', { class: 'status-line', role: 'status' }, h('span', { class: 'status-dots', 'aria-hidden': 'true' }, h('i'), h('i'), h('i')),
    h('span', {}, `${nameOf(bot())} ${words}`),
    stop && h('button', { type: 'button', class: 'button status-stop', onclick: stop }, 'Stop'));
}

// Messages of a person within five minutes share one avatar. In the channel, a thread in between
// ends the group.
function continues(before, message, inThread) {
  const close = ofTs(message.ts) - ofTs(before.ts) < 5 * 60 * 1000;
  return close && before.user === message.user && !before.ephemeral && !message.ephemeral && !before.deleted
    && (inThread || !before.reply_count);
}

function dayDivider(date) {
  return h('div', { class: 'day', role: 'separator' }, h('span', {}, day(date)));
}

function draw(message, { follows, inThread, status }) {
  const who = user(message.user);
  const at = ofTs(message.ts);
  const classes = ['message', follows && 'follows', message.ephemeral && 'ephemeral', !inThread && known.thread?.ts === message.ts && 'in-view'];
  return h('article', { class: classes.filter(Boolean).join(' '), 'aria-label': `${nameOf(who)}, ${time(at)}`, dataset: { ts: message.ts } },
    h('div', { class: 'message-left' }, follows ? h('time', { class: 'gutter-time', title: full(at) }, time(at)) : avatar(who)),
    h('div', { class: 'message-main' },
      message.ephemeral && h('div', { class: 'only-you' }, icon('eye', 14), 'Only visible to you'),
      !follows && h('div', { class: 'message-head' },
        h('span', { class: 'message-name' }, nameOf(who)), who?.is_bot && h('span', { class: 'badge' }, 'App'),
        h('time', { class: 'message-time', title: full(at) }, time(at))),
      body(message),
      (message.files ?? []).map(fileCard),
      !inThread && thread(message),
      status && !inThread && statusLine(status)),
    !message.deleted && tools(message, inThread));
}

function body(message) {
  if (message.deleted) return h('div', { class: 'tombstone' }, 'This message was deleted.');
  const edited = message.edited && h('span', { class: 'edited' }, ' (edited)');
  if (!message.blocks?.length) return h('div', { class: 'message-text mrkdwn' }, mrkdwn(message.text ?? ''), edited);
  const values = new Map();
  const where = { channel: message.channel ?? known.channel, message_ts: message.ts };
  return h('div', { class: message.streaming ? 'message-blocks streaming' : 'message-blocks', 'aria-busy': message.streaming && 'true' }, blocks(message.blocks, { values, act: pressesIn(where, values) }), edited);
}

function thread(message) {
  const count = message.reply_count ?? 0;
  if (!count) return null;
  return h('button', { class: 'replies', onclick: () => openThread(message.ts) },
    h('span', { class: 'replies-faces' }, (message.reply_users ?? []).slice(0, 4).map((id) => avatar(user(id), 22))),
    h('span', { class: 'replies-count' }, count === 1 ? '1 reply' : `${count} replies`),
    message.latest_reply && h('span', { class: 'replies-last' }, `Last reply ${recently(ofTs(message.latest_reply))}`), icon('right', 15));
}

function fileCard(file) {
  const address = `/workspace/file/${encodeURIComponent(file.id)}`;
  const name = file.title ?? file.name ?? file.id;
  if (file.mimetype?.startsWith('image/')) return h('a', { class: 'file-image', href: address, target: '_blank' }, h('img', { src: address, alt: file.alt_txt || name }));
  const size = file.size ? `${(file.size / 1024).toFixed(file.size < 10240 ? 1 : 0)} kB` : (file.mimetype ?? '');
  return h('a', { class: 'file-card', href: address, download: file.name ?? name }, icon('file', 24),
    h('span', {}, h('span', { class: 'file-name' }, name), h('span', { class: 'file-size' }, size)), icon('download'));
}

function tools(message, inThread) {
  const root = message.thread_ts ?? message.ts;
  const shortcuts = known.shortcuts.filter((one) => one.type === 'message');
  const run = async (callback_id) => {
    try {
      await api.shortcut(known.me, { callback_id, channel: message.channel ?? known.channel, message_ts: message.ts });
    } catch (error) {
      toast(error.message);
    }
  };
  const copy = () => navigator.clipboard?.writeText(plainText(message.text ?? '')).then(() => toast('Copied.', 'note'), () => {});
  const more = h('button', {
    class: 'icon-button', 'aria-label': 'More actions', title: 'More actions', 'aria-haspopup': 'menu', 'aria-expanded': 'false',
    onclick: () => openMenu(more, [
      ...shortcuts.map((one) => ({ label: one.name ?? one.callback_id, description: one.description, choose: () => run(one.callback_id) })),
      { label: 'Copy text', choose: copy },
    ], { label: 'More actions' }),
  }, icon('more'));
  return h('div', { class: 'tools', role: 'toolbar', 'aria-label': 'Message actions' },
    !inThread && !message.ephemeral && h('button', { class: 'icon-button', 'aria-label': 'Reply in thread', title: 'Reply in thread', onclick: () => openThread(root) }, icon('reply')),
    !message.ephemeral && h('button', { class: 'icon-button', 'aria-label': 'Show trace', title: 'Show what the bot did', onclick: () => openThread(root, 'trace') }, icon('trace')),
    more);
}
