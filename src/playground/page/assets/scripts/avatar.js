// Avatars: the initial of a person on their colour, or the logo of the bot.

import { h } from './dom.js';
import { bot, nameOf } from './store.js';

/** Returns the avatar of `someone`, `size` pixels wide. It is decorative, because the name is next to it. */
export function avatar(someone, size = 36) {
  const shared = { class: 'avatar', 'aria-hidden': 'true', vars: { size: `${size}px` } };
  if (someone && someone.id === bot()?.id) return h('span', shared, h('img', { src: '/assets/mark.svg', alt: '' }));
  const colour = /^#?[0-9a-f]{6}$/i.test(someone?.color ?? '') ? `#${someone.color.replace('#', '')}` : '#6b7280';
  return h('span', { ...shared, vars: { size: `${size}px`, face: colour } }, [...nameOf(someone)][0].toUpperCase());
}
