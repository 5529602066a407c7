-- Drops a parked letter, unless somebody addressed us meanwhile. ARGV: its position, its name in PARKED.
redis.call('HDEL', ASIDE, ARGV[1])
redis.call('ZREM', PARKED, ARGV[2])
return 1
