// A drop-down menu. Arrow keys move, Enter chooses, Escape or a click elsewhere closes.

import { h } from './dom.js';
import { icon } from './icons.js';
import { withEmoji } from './emoji.js';

let open = null;

/**
 * Opens a menu under `anchor`. Items: `{ label, description?, face?, checked?, danger?, choose }` or `{ heading }`.
 * With `stay`, choosing toggles the item and the menu remains open; `choose` then returns true if the item is checked.
 */
export function openMenu(anchor, items, { label, stay = false, closed = () => {} } = {}) {
  const again = open?.anchor === anchor;
  closeMenu();
  if (again) return;
  const menu = h('div', { class: 'menu', role: 'menu', 'aria-label': label }, items.map((item) => row(item, stay)));
  // A landmark, so that screen readers list it. In a dialog, the menu must be a part of it: everything
  // outside is inert while the dialog is open.
  const landmark = h('section', { 'aria-label': label ?? 'Menu' }, menu);
  (anchor.closest('dialog') ?? document.body).append(landmark);
  place(menu, anchor);
  anchor.setAttribute('aria-expanded', 'true');
  const outside = (event) => { if (!menu.contains(event.target) && !anchor.contains(event.target)) closeMenu(); };
  document.addEventListener('pointerdown', outside);
  menu.addEventListener('keydown', onKey);
  open = { anchor, menu, landmark, closed, outside };
  (menu.querySelector('[aria-checked="true"]') ?? rows(menu)[0])?.focus();
}

/** Closes the open menu, if any. */
export function closeMenu() {
  if (!open) return;
  const { anchor, menu, landmark, closed, outside } = open;
  open = null;
  document.removeEventListener('pointerdown', outside);
  const hadFocus = menu.contains(document.activeElement);
  landmark.remove();
  anchor.setAttribute('aria-expanded', 'false');
  if (hadFocus) anchor.focus();
  closed();
}

const rows = (menu) => [...menu.querySelectorAll('[role^="menuitem"]')];

function row(item, stay) {
  if (item.heading) return h('div', { class: 'menu-heading' }, item.heading);
  const checkable = item.checked !== undefined;
  const button = h('button', {
    type: 'button', class: item.danger ? 'menu-item danger' : 'menu-item', role: checkable ? 'menuitemcheckbox' : 'menuitem',
    'aria-checked': checkable ? String(item.checked) : null,
    onclick: () => {
      if (stay) button.setAttribute('aria-checked', String(item.choose()));
      else {
        closeMenu();
        item.choose();
      }
    },
  }, item.face, h('span', { class: 'menu-words' }, h('span', { class: 'menu-label' }, withEmoji(item.label)),
    item.description && h('span', { class: 'menu-description' }, item.description)),
  checkable && h('span', { class: 'menu-check' }, icon('check', 16)));
  return button;
}

function place(menu, anchor) {
  const around = anchor.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const below = around.bottom + 4 + height <= window.innerHeight || around.top < height + 8;
  menu.style.top = `${below ? around.bottom + 4 : around.top - height - 4}px`;
  const left = around.left + width <= window.innerWidth - 8 ? around.left : around.right - width;
  menu.style.left = `${Math.max(8, Math.min(left, window.innerWidth - width - 8))}px`;
  menu.style.minWidth = `${Math.min(around.width, 320)}px`;
}

function onKey(event) {
  const all = rows(open.menu);
  const at = all.indexOf(document.activeElement);
  const move = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (move !== undefined) {
    event.preventDefault();
    all[(move + all.length) % all.length]?.focus();
  } else if (event.key === 'Escape' || event.key === 'Tab') {
    event.preventDefault();
    event.stopPropagation();
    closeMenu();
  }
}
