// The Home tab of the bot: a view that the app publishes for each person.

import { h } from './dom.js';
import { blocks } from './blocks.js';
import { pressesIn } from './press.js';
import { bot, nameOf } from './store.js';

/** Returns the view as a node, or a notice if there is none yet. */
export function homeView(view) {
  if (!view) {
    return h('div', { class: 'empty' }, h('img', { class: 'empty-mark', src: '/assets/mark.svg', alt: '' }),
      h('h2', {}, 'Nothing here yet'), h('p', {}, `${nameOf(bot())} fills this page when it has something for you.`));
  }
  const values = new Map();
  return h('div', { class: 'home' }, blocks(view.blocks ?? [], { values, act: pressesIn({ view_id: view.id }, values) }));
}
