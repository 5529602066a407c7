// Suggestions: shown in empty conversations, and behind the light bulb of each composer.

import { h } from './dom.js';
import { icon } from './icons.js';
import { bot, channel, known, nameOf, send, user } from './store.js';
import { toast } from './toasts.js';

/** Returns the suggestions, `[{ why, text }]`, with a mention of the bot if the channel requires it. */
export function suggestions() {
  const address = channel()?.kind === 'im' ? '' : `@${bot()?.name} `;
  const here = known.suggestions.filter((one) => one.channel && one.channel === channel()?.name);
  const fitting = here.length ? here : known.suggestions.filter((one) => !one.channel);
  return fitting.map(({ why, text }) => ({ why, text: `${address}${text}` }));
}

/** Returns the welcome in an empty conversation. */
export function emptyState() {
  const here = channel();
  const name = nameOf(bot());
  const isBot = here.kind === 'im' && here.with === bot()?.id;
  return h('div', { class: 'empty' },
    h('img', { class: 'empty-mark', src: '/assets/mark.svg', alt: '' }),
    h('h2', {}, isBot ? `Talk to ${name}` : `Mention @${bot()?.name} in #${here.name}`),
    h('p', {}, `${name} works out the exact change you ask for and shows it on a card. `,
      'Nothing is changed until someone approves it.'),
    h('p', { class: 'empty-tip' }, icon('idea', 16), 'Some changes need a second person. Switch user at the top right.'),
    h('div', { class: 'asks', role: 'group', 'aria-label': 'Things to try' }, suggestions().map(({ why, text }) => (
      h('button', { class: 'ask', onclick: () => say(text) },
        h('span', { class: 'ask-text' }, text), h('span', { class: 'ask-why' }, why), icon('send', 16))
    ))));
}

/** Returns the introduction above the first message: the place, and the same suggestions in a smaller form. */
export function beginning() {
  const here = channel();
  const other = here.kind === 'im' && user(here.with);
  return h('div', { class: 'beginning' },
    h('h2', {}, other ? nameOf(other) : `# ${here.name}`),
    h('p', {}, other ? `This is the beginning of your conversation with ${nameOf(other)}.`
      : `This is the beginning of #${here.name}. Mention @${bot()?.name} to ask for something:`),
    (!other || other.id === bot()?.id) && h('div', { class: 'small-asks', role: 'group', 'aria-label': 'Things to try' },
      suggestions().map(({ why, text }) => h('button', { class: 'small-ask', title: why, onclick: () => say(text) }, text))));
}

const say = (text) => send(text).catch((error) => toast(error.message));
