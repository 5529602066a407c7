// What happens when something in a block is pressed: the app is told, and so are we if it does not answer.

import * as api from './api.js';
import { stateValues } from './elements.js';
import { bot, known } from './store.js';
import { toast } from './toasts.js';

/** For elements in `where` (a message or a view): tells the app what was pressed, and us if the app does not answer. */
export function pressesIn(where, values) {
  return async (blockId, spec, chosen) => {
    try {
      const result = await api.action(known.me, {
        ...where, block_id: blockId, action_id: spec.action_id, type: spec.type, ...chosen, state: { values: stateValues(values) },
      });
      if (result?.ok === false) toast(`${bot()?.name ?? 'The app'} did not respond: ${result.error ?? 'no reason given'}.`);
    } catch (error) {
      toast(error.message);
    }
  };
}
