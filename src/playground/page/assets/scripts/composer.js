// The message composer. Enter sends, Shift+Enter begins a new line. A draft is kept for each
// conversation.

import * as api from './api.js';
import { h } from './dom.js';
import { icon } from './icons.js';
import { autocomplete } from './autocomplete.js';
import { openMenu } from './menu.js';
import { suggestions } from './suggestions.js';
import { bot, channel, isForBot, known, send } from './store.js';
import { toast } from './toasts.js';

const drafts = new Map();
const explained = new Set();

/** Returns a composer for the channel, or for the thread that begins with `ts`. */
export function composer(channelId, label, ts) {
  const draft = `${channelId}/${ts ?? ''}`;
  const area = h('textarea', { class: 'composer-text', rows: 1, placeholder: label, 'aria-label': label, value: drafts.get(draft) ?? '', dataset: { composer: ts ? 'thread' : 'channel' } });
  const button = h('button', { type: 'submit', class: 'send', 'aria-label': 'Send now', title: 'Send now' }, icon('send'));
  const place = h('div', { class: 'composer-place' });
  const takesKey = autocomplete(area, place);

  const grow = () => {
    drafts.set(draft, area.value);
    button.disabled = !area.value.trim();
    area.style.height = 'auto';
    area.style.height = `${Math.min(area.scrollHeight, 220)}px`;
  };
  const submit = async () => {
    const text = area.value.trim();
    if (!text) return;
    area.value = '';
    grow();
    try {
      await send(text, ts);
      if (!ts) explainMention(text);
    } catch (error) {
      if (!area.value) area.value = text;
      grow();
      toast(error.message);
    }
  };
  const insert = (text) => {
    const before = area.value.slice(0, area.selectionStart);
    area.setRangeText(before && !/\s$/.test(before) ? ` ${text}` : text, area.selectionStart, area.selectionEnd, 'end');
    area.focus();
    area.dispatchEvent(new Event('input'));
  };
  const tool = (name, title, onclick) => h('button', { type: 'button', class: 'icon-button', 'aria-label': title, title, onclick }, icon(name));
  const ideas = tool('idea', 'Things to try', () => openMenu(ideas, [
    { heading: 'Things to try' },
    ...suggestions().map(({ why, text }) => ({ label: text, description: why, choose: () => { area.value = ''; insert(text); } })),
    ...shortcuts(),
  ], { label: 'Things to try' }));

  area.addEventListener('input', grow);
  area.addEventListener('keydown', (event) => {
    if (takesKey(event) || event.isComposing) return;
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      submit();
    }
  });
  place.append(h('form', { class: 'composer', onsubmit: (event) => { event.preventDefault(); submit(); } }, area,
    h('div', { class: 'composer-tools' },
      tool('at', 'Mention someone', () => insert('@')),
      !ts && tool('slash', 'Commands', () => { area.value = ''; insert('/'); }),
      ideas, h('span', { class: 'composer-hint' }, h('kbd', {}, 'Shift'), ' + ', h('kbd', {}, 'Enter'), ' for a new line'), button)));
  requestAnimationFrame(grow);
  return place;
}

/** Says, once in each channel, how to get an answer there if a message is not for the bot. */
function explainMention(text) {
  const here = channel();
  if (here?.kind === 'im' || text.startsWith('/') || isForBot(text) || explained.has(here?.id)) return;
  explained.add(here?.id);
  toast(`Mention @${bot()?.name} to get an answer in #${here?.name}.`, 'note');
}

/** Moves the focus to the composer in `place`. On a touch screen this would open the keyboard, so it is left to the person. */
export function focusComposer(place) {
  if (!window.matchMedia('(pointer: coarse)').matches) place.querySelector('textarea')?.focus({ preventScroll: true });
}

function shortcuts() {
  const global = known.shortcuts.filter((one) => one.type !== 'message');
  if (!global.length) return [];
  return [{ heading: 'Shortcuts' }, ...global.map((one) => ({
    label: one.name ?? one.callback_id, description: one.description,
    choose: () => api.shortcut(known.me, { callback_id: one.callback_id, channel: known.channel }).catch((error) => toast(error.message)),
  }))];
}
