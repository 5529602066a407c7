// The Home tab of the bot: one view of blocks, kept by the app for each person.

import { h } from './dom.js';
import { blocks } from './blocks.js';
import { pressesIn } from './press.js';
import { bot, nameOf } from './store.js';

/** The view as a node; a word of patience while there is none. */
export function homeView(view) {
  if (!view) {
    return h('div', { class: 'empty' }, h('img', { class: 'empty-mark', src: '/assets/mark.svg', alt: '' }),
      h('h2', {}, 'Nothing here yet'), h('p', {}, `${nameOf(bot())} fills this page when it has something for you.`));
  }
  const values = new Map();
  return h('div', { class: 'home' }, blocks(view.blocks ?? [], { values, act: pressesIn({ view_id: view.id }, values) }));
}
