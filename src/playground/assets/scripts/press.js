// What happens when something in a block is pressed: the app is told, and so are we if it does not answer.

import * as api from './api.js';
import { stateValues } from './elements.js';
import { bot, known, nameOf } from './store.js';
import { toast } from './toasts.js';

/** For elements in `where` (a message or a view): tells the app what was pressed, and us if the app does not answer. */
export function pressesIn(where, values) {
  return async (blockId, spec, chosen) => {
    try {
      // What was chosen goes under Slack's name for it; kinds without a name of their own here also as `value`.
      const [value] = Object.values(chosen);
      const result = await api.action(known.me, {
        ...where, block_id: blockId, action_id: spec.action_id, type: spec.type, value: chosen.selected_option ? undefined : value, ...chosen, state: { values: stateValues(values) },
      });
      if (result?.ok === false) toast(`${nameOf(bot())} did not respond. ${sentence(result.error)}`.trim());
    } catch (error) {
      toast(error.message);
    }
  };
}

// The reason, where it says more than that there was no answer.
const sentence = (words) => (words && !words.includes('did not respond') ? `${words[0].toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? '' : '.'}` : '');
