-- Sets an unreadable entry aside. ARGV: kind, position, name, note with the reason and the time, and the thread if the
-- entry belongs to one. Returns 0 if the entry no longer exists.
local kind, seq, name, note, thread = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local content
if kind == 'letter' then
  content = redis.call('HGET', MAILBOX, seq)
  redis.call('HDEL', MAILBOX, seq)
elseif kind == 'desk' then
  content = redis.call('HGET', INBOX_ENTRIES, seq)
  take_from_inbox(seq)
else
  content = redis.call('HGET', OUTBOX_BODIES, seq)
  local meta = redis.call('HGET', OUTBOX_META, seq)
  if meta then
    redis.call('HSET', SET_ASIDE_META, name, meta)
  end
  remove_outgoing(seq)
  land(thread, seq)
  index_outbox(thread)
end
if not content then
  return 0
end
redis.call('HSET', SET_ASIDE, name, content)
redis.call('HSET', SET_ASIDE_NOTES, name, note)
return 1
