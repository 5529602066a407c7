-- Deletes a parked message, unless the bot was addressed in the meantime. ARGV: its position, its member of PARKED.
redis.call('HDEL', ASIDE, ARGV[1])
redis.call('ZREM', PARKED, ARGV[2])
if redis.call('HLEN', META) == 1 and redis.call('EXISTS', ASIDE) == 0 then -- only `mail_seq` is left of this thread
  redis.call('DEL', META)
end
return 1
