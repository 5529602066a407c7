// Text objects of Block Kit: `{ type: "plain_text" | "mrkdwn", text }`.

import { withEmoji } from './emoji.js';
import { mrkdwn, plainText } from './mrkdwn.js';

/** Returns the plain text of any kind of text object; an empty text if there is none. */
export const wordsOf = (text) => (text?.type === 'mrkdwn' ? plainText(text.text) : text?.text ?? '');

/** Returns a text object as nodes. */
export function textObject(text) {
  if (!text) return [];
  return text.type === 'mrkdwn' ? mrkdwn(text.text, !text.verbatim) : withEmoji(text.text ?? '', text.emoji !== false);
}
