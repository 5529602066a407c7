-- Stores an entry for the inbox. ARGV: time in milliseconds (people), entry, duration of a claim in microseconds or 0,
-- deduplication keys.
local keys = {unpack(ARGV, 4)}
if is_known(keys) then
  return {'duplicate', 0, false}
end
remember(keys, ARGV[1])
local now = server_time()
return {'new', put_in_inbox(ARGV[2], now, now + tonumber(ARGV[3])), false}
