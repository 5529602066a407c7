-- Drops a parked message, unless somebody addressed us meanwhile. ARGV: its position, its name in PARKED.
redis.call('HDEL', ASIDE, ARGV[1])
redis.call('ZREM', PARKED, ARGV[2])
if redis.call('HLEN', META) == 1 and redis.call('EXISTS', ASIDE) == 0 then -- only `mail_seq` is left of this thread
  redis.call('DEL', META)
end
return 1
