// The confirmation dialog of an element, a <dialog>.

import { h } from './dom.js';
import { withEmoji } from './emoji.js';
import { textObject, wordsOf } from './text.js';

/** Asks with the texts of a confirm object. Resolves to true if the person agrees. */
export function confirm(spec) {
  return new Promise((answer) => {
    const refuse = h('button', { class: 'button', value: 'no' }, withEmoji(wordsOf(spec.deny) || 'Cancel'));
    const agree = h('button', { class: `button button-${spec.style ?? 'primary'}`, value: 'yes' }, withEmoji(wordsOf(spec.confirm) || 'Yes'));
    const dialog = h('dialog', { class: 'dialog dialog-small', 'aria-label': wordsOf(spec.title) },
      h('form', { method: 'dialog' },
        h('header', { class: 'dialog-head' }, h('h2', {}, withEmoji(wordsOf(spec.title)))),
        h('div', { class: 'dialog-body mrkdwn' }, textObject(spec.text)),
        h('footer', { class: 'dialog-foot' }, refuse, agree)));
    dialog.addEventListener('close', () => {
      dialog.remove();
      answer(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
    // A hasty Enter must not confirm something that cannot be undone.
    (spec.style === 'danger' ? refuse : agree).focus();
  });
}
