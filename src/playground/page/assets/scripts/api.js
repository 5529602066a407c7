// The client of the server: one function for each route, and the event stream. It does not depend
// on the view.

/** The server refused a request or did not answer. */
export class ApiError extends Error {}

async function call(path, options) {
  let response;
  try {
    response = await fetch(path, { ...options, signal: AbortSignal.timeout(15000) });
  } catch {
    throw new ApiError('The playground isn’t answering. Is it still running?');
  }
  const body = await response.json().catch(() => null);
  if (!response.ok) throw Object.assign(new ApiError(body?.error ?? `The server answered ${response.status}.`), { status: response.status });
  return body;
}

const get = (path, query = {}) => {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  return call(given.length ? `${path}?${new URLSearchParams(given)}` : path);
};

const post = (path, body) => call(path, {
  method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
});

export const state = (as) => get('/workspace/state', { as });
export const messages = (as, channel) => get('/workspace/messages', { as, channel });
export const thread = (as, channel, ts) => get('/workspace/thread', { as, channel, ts });
export const read = (as, channel) => post('/workspace/read', { as, channel });
export const send = (as, channel, text, thread_ts) => post('/workspace/post', { as, channel, text, thread_ts });
export const action = (as, details) => post('/workspace/action', { as, ...details });
export const submitView = (as, view_id, values) => post('/workspace/view_submit', { as, view_id, values });
export const closeView = (as, view_id) => post('/workspace/view_close', { as, view_id });
export const shortcut = (as, details) => post('/workspace/shortcut', { as, ...details });
export const stopSession = (as, channel, thread_ts) => post('/workspace/stop_session', { as, channel, thread_ts });
export const openHome = (as) => post('/workspace/open_home', { as });
export const home = (as) => get('/workspace/home', { as });
export const suggestions = () => get('/suggestions');
export const inbox = () => get('/inbox');
export const writeMail = (mail) => post('/inbox', mail);
export const trace = (channel, ts) => get('/trace', { channel, ts });

/** Calls `on(event)` for each event of that person, and `reopened()` when the stream opens. Returns a function to close it. */
export function listen(as, on, reopened, lost) {
  let stream;
  let waiting;
  const open = () => {
    stream = new EventSource(`/workspace/events?${new URLSearchParams({ as })}`);
    stream.addEventListener('message', (message) => on(JSON.parse(message.data)));
    stream.addEventListener('open', reopened);
    stream.addEventListener('error', () => {
      lost();
      // It reconnects automatically after a lost connection, but not after an answer that is not a
      // stream.
      if (stream.readyState === EventSource.CLOSED) waiting = setTimeout(open, 2000);
    });
  };
  open();
  return () => {
    clearTimeout(waiting);
    stream.close();
  };
}
