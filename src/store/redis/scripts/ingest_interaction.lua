-- Stores an entry for the inbox. ARGV: time in milliseconds (people), entry, duration of a claim in microseconds or 0,
-- deduplication keys.
if is_repeat(ARGV[1], 4) then
  return {'duplicate', 0, false}
end
local now = server_time()
return {'new', put_in_inbox(ARGV[2], now, now + tonumber(ARGV[3])), false}
