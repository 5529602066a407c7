-- Puts a dead letter back. ARGV: its name, now in milliseconds (people), and its thread if it is a message.
local raw = redis.call('HGET', DEAD_LETTERS, ARGV[1])
if not raw then
  return 0
end
redis.call('HDEL', DEAD_LETTERS, ARGV[1])
local letter, thread = cjson.decode(raw), ARGV[3]
if letter.entry then
  local now = server_time()
  put_in_inbox(letter.entry, now, now)
  return 1
end
-- The message counts as tried: it may exist in Slack, so it is looked up first.
put_in_outbox(thread, {
  slot = letter.slot, nonce = letter.nonce, progress = letter.progress, remove = letter.remove,
  not_before = tonumber(ARGV[2]), attempts = 1, body = letter.body,
})
index_outbox(thread)
return 1
