// Sends the use of an element to the app, and shows an error if the app does not answer.

import * as api from './api.js';
import { stateValues } from './elements.js';
import { bot, known, nameOf } from './store.js';
import { toast } from './toasts.js';

/** Returns the `act` function for elements in `where` (a message or a view). */
export function pressesIn(where, values) {
  return async (blockId, spec, chosen) => {
    try {
      // The chosen value is sent under Slack's name for it, and as `value` for kinds without a
      // special name here.
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

// Returns the reason, if it says more than that there was no answer.
const sentence = (words) => (words && !words.includes('did not respond') ? `${words[0].toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? '' : '.'}` : '');
