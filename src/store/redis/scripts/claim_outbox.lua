-- Claims the next message of a thread. ARGV: thread, ttl in microseconds, now in milliseconds (people).
return claim_next(ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), 1)
