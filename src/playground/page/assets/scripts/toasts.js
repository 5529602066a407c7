// Short notices at the bottom that disappear by themselves.

import { h } from './dom.js';
import { icon } from './icons.js';

/** Shows a notice. `kind` is `error` or `note`. */
export function toast(words, kind = 'error') {
  const close = h('button', { class: 'icon-button', 'aria-label': 'Dismiss', onclick: () => note.remove() }, icon('close', 16));
  const note = h('div', { class: `toast toast-${kind}` }, icon(kind === 'error' ? 'alert' : 'check'), h('span', {}, words), close);
  const place = document.querySelector('dialog[open]') ?? document.getElementById('toasts');
  place.append(note);
  setTimeout(() => note.remove(), 7000);
}
