// Times in the time zone and the language of the reader. Slack's `ts` is seconds with a fraction,
// as a string.

const clock = new Intl.DateTimeFormat([], { hour: 'numeric', minute: '2-digit' });
const clockWithSeconds = new Intl.DateTimeFormat([], { hour: 'numeric', minute: '2-digit', second: '2-digit' });
const short = new Intl.DateTimeFormat([], { month: 'short', day: 'numeric', year: 'numeric' });
const medium = new Intl.DateTimeFormat([], { month: 'long', day: 'numeric', year: 'numeric' });
const long = new Intl.DateTimeFormat([], { weekday: 'long', month: 'long', day: 'numeric', year: 'numeric' });
const weekday = new Intl.DateTimeFormat([], { weekday: 'long', month: 'long', day: 'numeric' });

/** Returns the time of a Slack `ts`. */
export const ofTs = (ts) => new Date(Number.parseFloat(ts) * 1000);

/** Returns a time of the bot's records: seconds, milliseconds, or a date as text. */
export const ofRecord = (at) => new Date(typeof at === 'number' && at < 1e11 ? at * 1000 : at);

export const time = (date) => clock.format(date);
export const timeWithSeconds = (date) => clockWithSeconds.format(date);
export const full = (date) => (Number.isNaN(date.getTime()) ? '' : `${long.format(date)} at ${clockWithSeconds.format(date)}`);

/** Returns the name of the day for a divider: Today, Yesterday, Tuesday, March 3. */
export function day(date) {
  return near(date) ?? weekday.format(date);
}

/** Returns the time for “last reply …”: today at 10:02. */
export function recently(date) {
  const close = near(date);
  return close ? `${close.toLowerCase()} at ${time(date)}` : `${short.format(date)} at ${time(date)}`;
}

/** Returns true if both times are on the same day in the reader's time zone. */
export const sameDay = (a, b) => a.toDateString() === b.toDateString();

/** Replaces the tokens in the format of `<!date^…^format|…>`. */
export function slackDate(seconds, format) {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return null;
  const close = near(date)?.toLowerCase();
  const words = {
    date_num: [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((n) => String(n).padStart(2, '0')).join('-'),
    date: medium.format(date), date_long: long.format(date), date_short: short.format(date),
    date_pretty: close ?? medium.format(date), date_long_pretty: close ?? long.format(date),
    date_short_pretty: close ?? short.format(date), time: time(date), time_secs: timeWithSeconds(date), ago: ago(date),
  };
  return format.replace(/\{(\w+)\}/g, (token, name) => words[name] ?? token);
}

function near(date) {
  const now = new Date();
  for (const [away, word] of [[0, 'Today'], [-1, 'Yesterday'], [1, 'Tomorrow']]) {
    const other = new Date(now);
    other.setDate(now.getDate() + away);
    if (sameDay(date, other)) return word;
  }
  return null;
}

function ago(date) {
  const seconds = (date - Date.now()) / 1000;
  const words = new Intl.RelativeTimeFormat([], { numeric: 'auto' });
  for (const [unit, size] of [['day', 86400], ['hour', 3600], ['minute', 60]]) {
    if (Math.abs(seconds) >= size) return words.format(Math.round(seconds / size), unit);
  }
  return words.format(Math.round(seconds), 'second');
}
