// Text objects of Block Kit: `{ type: "plain_text" | "mrkdwn", text }`.

import { withEmoji } from './emoji.js';
import { mrkdwn, plainText } from './mrkdwn.js';

/** Its words alone, whatever its kind; nothing for nothing. */
export const wordsOf = (text) => (text?.type === 'mrkdwn' ? plainText(text.text) : text?.text ?? '');

/** As nodes. */
export function textObject(text) {
  if (!text) return [];
  return text.type === 'mrkdwn' ? mrkdwn(text.text, !text.verbatim) : withEmoji(text.text ?? '', text.emoji !== false);
}
