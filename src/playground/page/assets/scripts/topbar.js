// The bar at the top: the title, the theme, and the current person.

import { h, fill } from './dom.js';
import { icon } from './icons.js';
import { avatar } from './avatar.js';
import { openMenu } from './menu.js';
import { becomes, known, me, nameOf, on, people } from './store.js';
import { toast } from './toasts.js';

/** Renders into `bar`, now and on each change. */
export function startTopbar(bar) {
  let drawn = null;
  const draw = () => {
    // Rendered only if it changes, because an open menu is attached to its button.
    const now = JSON.stringify([known.me, known.online, people(), theme()]);
    if (!me() || drawn === now) return;
    drawn = now;
    fill(bar,
      h('button', { class: 'icon-button only-narrow', 'aria-label': 'Channels', onclick: () => document.body.classList.toggle('has-sidebar') }, icon('menu')),
      h('span', { class: 'brand' }, h('img', { src: '/assets/mark.svg', alt: '', width: 22, height: 22 }), h('strong', {}, 'Countersign'), h('span', { class: 'brand-more' }, 'playground')),
      !known.online && h('span', { class: 'offline', role: 'alert' }, 'Reconnecting…'),
      h('span', { class: 'topbar-space' }), themeButton(draw), personButton());
  };
  for (const topic of ['workspace', 'online']) on(topic, draw);
}

function personButton() {
  const button = h('button', {
    class: 'person', 'aria-haspopup': 'menu', 'aria-expanded': 'false', id: 'person', onclick: () => openMenu(button, [
      { heading: 'Act as' },
      ...people().map((one) => ({
        label: nameOf(one), description: `@${one.name}`, face: avatar(one, 28), checked: one.id === known.me,
        choose: () => becomes(one.id).catch((error) => toast(error.message)),
      })),
      { heading: 'Open a second tab to be two people at once.' },
    ], { label: 'Switch user' }),
  }, avatar(me(), 24), h('span', {}, h('span', { class: 'person-label' }, 'You are: '), h('strong', {}, nameOf(me()))), icon('chevron', 16));
  return button;
}

const THEMES = { auto: ['auto', 'system'], light: ['sun', 'light'], dark: ['moon', 'dark'] };
const theme = () => document.documentElement.dataset.theme ?? 'auto';

function themeButton(draw) {
  const [face, words] = THEMES[theme()];
  return h('button', { class: 'icon-button', id: 'theme', 'aria-label': `Theme: ${words}. Change`, title: `Theme: ${words}`, onclick: () => {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(theme()) + 1) % names.length];
    if (next === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    localStorage.setItem('theme', next);
    draw();
    document.getElementById('theme').focus();
  } }, icon(face));
}
