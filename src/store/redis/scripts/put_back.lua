-- Puts an entry that was set aside back into its place. ARGV: kind, position, name, and the thread if the entry belongs
-- to one.
local kind, seq, name, thread = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local content = redis.call('HGET', SET_ASIDE, name)
if not content then
  return 0
end
if kind == 'letter' then
  redis.call('HSET', MAILBOX, seq, content)
  wake(thread, server_time())
elseif kind == 'desk' then
  redis.call('HSET', INBOX_ENTRIES, seq, content)
  redis.call('ZADD', INBOX, server_time(), seq)
  hint()
else
  local meta = redis.call('HGET', SET_ASIDE_META, name)
  if meta then
    redis.call('HSET', OUTBOX_BODIES, seq, content)
    redis.call('HSET', OUTBOX_META, seq, meta)
    index_outbox(thread)
  end
end
for _, key in ipairs({SET_ASIDE, SET_ASIDE_META, SET_ASIDE_NOTES}) do
  redis.call('HDEL', key, name)
end
return 1
