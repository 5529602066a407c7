// The replay of a trace, step by step: buttons, and the arrow keys while the focus is in the trace. Steps
// that come later are dimmed; before the first press, all steps are shown.

import { h, fill } from './dom.js';
import { icon } from './icons.js';

/** Returns the controls for the steps inside `pane`, and keeps the position in `pane.replayAt`. */
export function replay(pane, steps) {
  const words = h('span', { class: 'replay-words', role: 'status' });
  const move = (by) => {
    const at = pane.replayAt ?? -1;
    show(pane.replayAt === null || pane.replayAt === undefined ? (by > 0 ? 0 : steps.length - 1) : Math.max(0, Math.min(steps.length - 1, at + by)));
  };
  const button = (name, label, onclick) => h('button', { type: 'button', class: 'icon-button', 'aria-label': label, title: label, onclick }, icon(name));
  const previous = button('left', 'Previous step', () => move(-1));
  const next = button('right', 'Next step', () => move(1));
  const all = h('button', { type: 'button', class: 'button replay-all', onclick: () => show(null) }, 'Show all');

  function show(at) {
    pane.replayAt = at;
    steps.forEach(({ node }, index) => {
      node.classList.toggle('step-now', index === at);
      node.classList.toggle('step-later', at !== null && index > at);
      node.setAttribute('aria-current', index === at ? 'step' : 'false');
    });
    previous.disabled = at === 0;
    next.disabled = at === steps.length - 1;
    all.hidden = at === null;
    fill(words, at === null ? `${steps.length} ${steps.length === 1 ? 'step' : 'steps'}` : `Step ${at + 1} of ${steps.length}: ${steps[at].name}`);
    if (at !== null) steps[at].node.scrollIntoView({ block: 'nearest' });
  }

  pane.onkeydown = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey || event.target.closest('input, textarea, select')) return;
    event.preventDefault();
    move(by);
  };
  show(pane.replayAt < steps.length ? pane.replayAt ?? null : null);
  return h('div', { class: 'replay', role: 'group', 'aria-label': 'Replay step by step' }, previous, next, words, all);
}
