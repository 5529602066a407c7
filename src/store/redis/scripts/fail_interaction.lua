-- Moves a claimed interaction to the dead letters. ARGV: its position, number of earlier claims, reason, time in
-- milliseconds (people).
local seq, attempts = ARGV[1], tonumber(ARGV[2]) + 1
local stored = redis.call('HGET', INBOX_ENTRIES, seq)
if not stored or redis.call('HGET', INBOX_ATTEMPTS, seq) ~= tostring(attempts) then
  return 0 -- it was removed, or claimed again
end
local entry = string.sub(stored, string.find(stored, ' ', 1, true) + 1)
redis.call('HSET', DEAD_LETTERS, 'desk ' .. seq, cjson.encode(
  {at = tonumber(ARGV[4]), attempts = attempts, reason = ARGV[3], entry = entry}))
take_from_inbox(seq)
return 1
